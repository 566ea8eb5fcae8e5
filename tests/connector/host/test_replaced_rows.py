"""Deliveries, deletions, orders, crashes and restores: the table has what the files have."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.connector.host.landing import Landing, dying_at

pytestmark = pytest.mark.slow

FOLLOWING = {
    "onOverwrite": "replace",
    "onDelete": "retract",
    "retractAfter": "1s",
    "writeFileColumn": "file",
    "writeSchema": "v long",
    "discoveryAttempts": "1",
}
CRASHES = ["commit", "sink", "log"]


class Died(BaseException):
    """The process ends here."""


class Following:
    """A query whose table follows its files, and what a fresh read of these gives."""

    def __init__(self, root: Path, **options: str) -> None:
        self.landing = Landing(root)
        self.options = {**FOLLOWING, **options}
        self.files: dict[str, list[int]] = {}
        self.retracted: dict[str, list[int]] = {}
        self.number = 0
        self.saved: dict[str, list[int]] | None = None
        self.day = self.landing.data / "day"
        self.day.mkdir()
        self.generations: list[list[int]] = [[]]
        """The rows of each time that the directory was written."""
        # A loaded path without any file would be an error.
        self.deliver("z", 1)

    def deliver(self, name: str, count: int) -> None:
        rows = list(range(self.number, self.number + count))
        self.number += count
        self.landing.json(f"{name}.json", *({"v": v} for v in rows))
        self.files[name] = rows

    def delete(self, name: str, _: int) -> None:
        self.files.pop(name, None)
        (self.landing.data / f"{name}.json").unlink(missing_ok=True)

    def rewrite(self, _: str, count: int) -> None:
        for old in self.day.iterdir():
            old.unlink()
            self.files.pop(f"day/{old.stem}", None)
        before = self.number
        for part in range(count):
            self.deliver(f"day/{self.number}", 1 + part)
        self.generations.append([*range(before, self.number)])

    def mark(self, *_: object) -> None:
        if "readyMarker" in self.options:
            (self.day / "_SUCCESS").touch()

    def run(self, _name: str = "", _count: int = 0) -> None:
        # What is delivered outside of the directory is always finished.
        (self.landing.data / "_SUCCESS").touch()
        self.landing.run(**self.options)
        if "readyMarker" in self.options:
            of_day = {v for rows in self.generations for v in rows}
            found = sorted(row["v"] for row in self.landing.rows() if row["v"] in of_day)
            assert found in self.generations

    def crash(self, step: str, is_done: int) -> None:
        def die():
            raise Died

        with pytest.MonkeyPatch.context() as patch, suppress(Died, SluiceError):
            patch.setattr(*dying_at(step, is_done, die))
            self.run()

    def order(self, verb: str, name: str, *more: str) -> None:
        # All that is there is known, so an order is about this version.
        self.run()
        given = [verb, str(self.landing.checkpoint), "--matching", f"*/{name}.json", *more, "--yes"]
        assert main(given) in (0, 1)

    def requeue(self, name: str, _: int) -> None:
        if name in self.files:
            self.order("requeue", name, "--replace")
            self.retracted.pop(name, None)

    def retract(self, name: str, _: int) -> None:
        if name in self.files:
            self.order("retract", name)
            self.retracted[name] = self.files[name]

    def back_up(self, *_: object) -> None:
        self.run()
        for place in (self.landing.checkpoint, self.landing.table):
            shutil.copytree(place, f"{place}-saved", dirs_exist_ok=True)
        self.saved = dict(self.retracted)

    def restore(self, *_: object) -> None:
        if self.saved is not None:
            for place in (self.landing.checkpoint, self.landing.table):
                shutil.rmtree(place)
                shutil.copytree(f"{place}-saved", place)
            self.retracted = dict(self.saved)

    def check(self) -> None:
        self.mark()
        self.run()
        time.sleep(1.05)
        self.run()
        wanted = [v for name, v in self.files.items() if self.retracted.get(name) != v]
        found = [row["v"] for row in self.landing.rows()]
        assert sorted(found) == sorted(v for rows in wanted for v in rows)


NAMES = st.sampled_from("abc")
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), NAMES, st.integers(1, 3)),
        st.tuples(st.just("deliver"), NAMES, st.integers(1, 3)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("rewrite"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("mark"), st.just(""), st.just(0)),
        st.tuples(st.just("run"), st.just(""), st.just(0)),
        st.tuples(st.just("crash"), st.sampled_from(CRASHES), st.integers(0, 1)),
        st.tuples(st.just("requeue"), NAMES, st.just(0)),
        st.tuples(st.just("retract"), NAMES, st.just(0)),
        st.tuples(st.just("back_up"), st.just(""), st.just(0)),
        st.tuples(st.just("restore"), st.just(""), st.just(0)),
    ),
    min_size=3,
    max_size=10,
)


MARKED = {"readyMarker": "_SUCCESS", "ignoreMissingFiles": "true"}


@given(DEEDS, st.sampled_from(["", "1"]), st.sampled_from([{}, MARKED]))
@settings(max_examples=6, deadline=None)
def test_the_table_is_what_a_fresh_read_of_the_files_gives(deeds, files, marked):
    with tempfile.TemporaryDirectory() as root:
        limits = {"maxFilesPerTrigger": files} if files else {}
        following = Following(Path(root), **limits, **marked)
        for deed, name, count in deeds:
            getattr(following, deed)(name, count)
        following.check()


@pytest.mark.parametrize("files", ["", "1"])
def test_weeks_of_rewritten_days(tmp_path, files):
    following = Following(tmp_path, **MARKED, **({"maxFilesPerTrigger": files} if files else {}))
    for step, is_done in ((None, 0), ("sink", 1), ("commit", 0), ("log", 1)):
        following.rewrite("", 3)
        following.run()
        following.mark()
        if step is not None:
            following.crash(step, is_done)
        following.run()
        following.delete("abc"[is_done], 0)
        following.deliver("abc"[is_done], 2)
    following.rewrite("", 2)
    following.mark()
    following.crash("sink", 0)
    # The batch that has begun is carried out, without the files that are gone since.
    following.rewrite("", 1)
    following.check()
