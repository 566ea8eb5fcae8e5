"""Deliveries, deletions, orders, crashes and restores: the table has what the files have."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tests.connector.host.landing import STEPS, Landing

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

    def run(self, _name: str = "", _count: int = 0) -> None:
        self.landing.run(**self.options)

    def crash(self, step: str, is_done: int) -> None:
        owner, name = STEPS[step]
        function = getattr(owner, name)

        def dying(*arguments, **more):
            if is_done:
                function(*arguments, **more)
            raise Died

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(owner, name, dying)
                self.run()
        except (Died, SluiceError):
            pass

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


@given(DEEDS, st.sampled_from(["", "1"]))
@settings(max_examples=6, deadline=None)
def test_the_table_is_what_a_fresh_read_of_the_files_gives(deeds, files):
    with tempfile.TemporaryDirectory() as root:
        following = Following(Path(root), **({"maxFilesPerTrigger": files} if files else {}))
        for deed, name, count in deeds:
            getattr(following, deed)(name, count)
        following.check()


def test_a_month_of_deliveries(tmp_path):
    following = Following(tmp_path, maxFilesPerTrigger="2")
    for day in range(4):
        following.deliver("abc"[day % 3], 3)
        following.run()
    following.deliver("a", 2)
    following.crash("sink", 1)
    following.delete("b", 0)
    following.retract("c", 0)
    following.check()
    following.deliver("c", 1)
    following.deliver("b", 2)
    following.requeue("a", 0)
    following.check()
    assert set(following.files) == {"z", "a", "b", "c"}
