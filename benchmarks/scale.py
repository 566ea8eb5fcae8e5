"""What the state costs by the number of files that were seen: `make bench BENCH=scale`.

No Spark: the coordinator is driven as Spark drives it, over a made-up file system of any size and a
real state directory; each figure comes from a process of its own. Writes the table
that `notes/scale.md` shows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark_sluice.benchmarks.scale_steps import (
    MORE,
    NEW,
    first_listing,
    later,
    listing_more,
    new_after_passed_over,
    passed_over,
)

from .bench import Bench

SIZES = (10_000, 1_000_000, 10_000_000)


def _in_process(step: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", f"{__package__}.scale", step, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _copy(place: str) -> str:
    """A state of its own for a run that changes it."""
    shutil.copytree(place, place + "-more")
    return place + "-more"


def measure(sizes: Sequence[int], directory: str) -> list[dict[str, Any]]:
    """All figures, a mapping for each number of files."""
    found = []
    for files in sizes:
        place = os.path.join(directory, str(files))
        first = _in_process("first_listing", files, place)
        ref = first.pop("ref")
        more = _in_process("listing_more", files, _copy(place), *ref)
        unread = os.path.join(directory, f"{files}-unread")
        passed = _in_process("passed_over", files, unread)
        after = _in_process("new_after_passed_over", files, unread, *passed.pop("ref"))
        found.append(
            {
                "files": files,
                "passed over": passed,
                "after": after,
                "first": first,
                "later": _in_process("later", files, place, *ref),
                "more": more,
            }
        )
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def scale(_: Bench) -> Iterator[str]:
    """What the state costs with 10 thousand, 1 million and 10 million files seen."""
    with tempfile.TemporaryDirectory() as directory:
        found = measure(SIZES, directory)
    yield "\n" + table(found)


def table(found: Sequence[dict[str, Any]]) -> str:
    """The table of `notes/scale.md`."""
    lines = ["| | " + " | ".join(f"{of['files']:,} files" for of in found) + " |"]
    lines.append("|---|" + "---|" * len(found))
    for part, title in (
        ("first", "first listing"),
        ("later", "restored"),
        ("more", f"restored, {MORE:,} more are listed"),
        ("passed over", "includeExistingFiles=false"),
        ("after", f"the next start after it, {NEW:,} new files"),
    ):
        for name in found[-1][part]:
            values = [of[part].get(name) for of in found]
            if isinstance(values[-1], dict):
                for kind in values[-1]:
                    cells = " | ".join(str((value or {}).get(kind, 0)) for value in values)
                    lines.append(f"| {title}: {name}, {kind} | {cells} |")
            else:
                shown = " | ".join("" if value is None else str(value) for value in values)
                lines.append(f"| {title}: {name} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Run one step in this process."""
    step, files, directory, *ref = sys.argv[1:]
    beginnings = {"first_listing": first_listing, "passed_over": passed_over}
    if step in beginnings:
        result = beginnings[step](int(files), directory)
    else:
        steps = {
            "later": later,
            "listing_more": listing_more,
            "new_after_passed_over": new_after_passed_over,
        }
        result = steps[step](int(files), directory, int(ref[0]), int(ref[1]))
    print(json.dumps(result))
    sys.stdout.flush()
    # Background threads are daemons; nothing of the state depends on how a process ends.
    os._exit(0)


if __name__ == "__main__":
    main()
