#!/usr/bin/env bash
# polars 2.1.0: an inner join with the key NaN, of one row and of two.
#
# One would guess: NaN equals NaN in polars, so each pair of rows with it matches, however many
#   there are.
# Seen: with two rows on a side it does; one row joined with one row gives nothing, on 2026-11-29,
#   while a semi join and the streaming engine find the pair. One row counts as sorted, and so does
#   any column with set_sorted: [1.0, NaN] joined with itself has one row then.
# Source: run below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet polars==2.1.0
venv/bin/python - <<'PYTHON'
import polars as pl

nan = float("nan")


def joined(left, right, is_sorted=False, **how):
    frames = [pl.DataFrame({"k": keys}) for keys in (left, right)]
    if is_sorted:
        frames = [frame.with_columns(pl.col("k").set_sorted()) for frame in frames]
    return frames[0].join(frames[1], on="k", **how).height


one = pl.DataFrame({"k": [nan]})
assert (one["k"] == one["k"]).all()
streamed = one.lazy().join(one.lazy(), on="k").collect(engine="streaming").height
seen = {
    "one and one": joined([nan], [nan]),
    "one and two": joined([nan], [nan, 1.0]),
    "two and two": joined([nan, nan], [nan, nan]),
    "semi": joined([nan], [nan], how="semi"),
    "streaming": streamed,
    "sorted": joined([1.0, nan], [1.0, nan], is_sorted=True),
}
print(seen)
expected = {"one and one": 0, "one and two": 1, "two and two": 4}
expected |= {"semi": 1, "streaming": 1, "sorted": 1}
assert seen == expected, "the behaviour has changed"
PYTHON
