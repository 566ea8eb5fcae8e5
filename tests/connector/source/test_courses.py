"""Events in any order: land, batches, restarts, kills, attempts that fail; of logs and of files."""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.stores.testing import Fault
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.connector.testing.trial import KILLED, LOST, RETURNED, Row, check_rows
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.reader.files.io import codecs, split_content
from pyspark_sluice.reader.files.io.cut_places import take_over
from pyspark_sluice.tests.connector.source.archived import LINES, Logs
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

WORDS = st.lists(st.sampled_from(["", "", KILLED, LOST, RETURNED]), max_size=4)
KILLS = st.sampled_from(["crash before", "crash half-way", "crash after"])
MOVES = (
    st.tuples(st.just("step"), st.integers(1, 3), WORDS),
    st.tuples(st.just("restart"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("kill"), KILLS, st.integers(0, 25)),
)


class Course:
    """One query, and what happens to it."""

    begin: Callable[..., Trial]

    def __init__(self, **given: Any) -> None:
        self.landed: list[Row] = []
        self.trial = self.begin(**given)

    def step(self, times: int, script: list[str]) -> None:
        self.trial.script = list(script)
        for _ in range(times):
            self.trial.step()

    def restart(self, parallelism: int) -> None:
        self.trial.restart(parallelism)

    def kill(self, kind: Any, after: int) -> None:
        self.trial.kill_at(Fault(kind, after))

    def run(self, moves: list[Any], pick: int, limits: BatchLimits) -> None:
        """Each row is in the sink once, and so it is in a query begun from any checkpoint."""
        for name, *arguments in moves:
            getattr(self, name)(*arguments)
        self.trial.kill_at(None)
        self.trial.run_to_end()
        self.trial.check(self.landed)
        if not self.trial.offsets:
            return
        number = pick % len(self.trial.offsets)
        savepoint = StartingState(self.trial.objects, self.trial.offsets[number])
        fork = self.begin(limits=limits, starting_state=savepoint)
        take_over(self.trial.objects, fork.objects)
        fork.run_to_end()
        before = [row for batch in self.trial.sink[: number + 1] for row in batch]
        check_rows([*before, *fork.rows], self.landed, "from a savepoint")


# Logs, with and without an archive ------------------------------------------------------------


class LogCourse(Course):
    def __init__(self, source: type[Any], place: Path, limits: BatchLimits) -> None:
        self.logs = Logs(place)
        self.begin = partial(Trial, lambda: source(self.logs.options(), LINES))
        super().__init__(limits=limits)
        self.trial.meanwhile = lambda: self.land(0, 1)

    def land(self, part: int, rows: int) -> None:
        self.landed += self.logs.land(part, rows, archived=0)

    def archive(self, part: int, rows: int) -> None:
        # Of a partition that is there already nothing is archived: what is must be its beginning.
        self.landed += self.logs.land(part, rows)


LOG_MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(0, 3), st.integers(1, 4)),
    st.tuples(st.just("archive"), st.integers(0, 3), st.integers(1, 4)),
    *MOVES,
)


@pytest.mark.sample("LogSource", why="the same over an archive")
@pytest.mark.parametrize("source", [LogSource, ArchivedLog], ids=lambda source: source.__name__)
@given(
    moves=st.lists(LOG_MOVES, min_size=1, max_size=10),
    files=st.sampled_from([1, 2, None]),
    pick=st.integers(0, 20),
)
def test_every_row_of_a_log_is_read_exactly_once(source, moves, files, pick):
    with tempfile.TemporaryDirectory() as place:
        LogCourse(source, Path(place), BatchLimits(files=files)).run(moves, pick, BatchLimits())


# Files, in batches that end within them -------------------------------------------------------

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
MEMBER = 25
"""Rows of a file in an archive at most."""

RELEASES = [(40, 900), (150, 100), (350, 3000), (580, 400)]
"""Bytes that a release of a decoder takes in, and gives out, at a time: each process has another.

A part ends at a record, so the next reader goes on there with any release.
"""

KINDS = {
    "files": [".json", ".csv", ".parquet"],
    "compressed files": [".json.deflate"],
    "archives": [".zip", ".tar.gz", ".tar", ".7z"],
}
LIMITS = [
    BatchLimits(bytes=600),
    BatchLimits(files=2),
    BatchLimits(bytes=3000),
    BatchLimits(rows=17),
    BatchLimits(files=3, rows=50, bytes=9000),
]


def content(suffix: str, rows: list[dict[str, Any]]) -> bytes:
    if suffix == ".parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), sink)
        return sink.getvalue().to_pybytes()
    if suffix == ".csv":
        return "".join(f"{row['id']},{row['text']}\n" for row in rows).encode()
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    if suffix in PACKERS:
        parts = range(0, len(rows), MEMBER)
        members = {f"{at}.json": b"".join(lines[at : at + MEMBER]) for at in parts}
        return PACKERS[suffix]({"__MACOSX/x": b"{", **members, "empty.json": b""})
    return zlib.compress(b"".join(lines)) if suffix == ".json.deflate" else b"".join(lines)


class FilesCourse(Course):
    """One query over a directory of files with one suffix."""

    def __init__(
        self, place: Path, suffix: str, patch: pytest.MonkeyPatch, **settings: Any
    ) -> None:
        self.place, self.suffix = place, suffix
        kind = suffix[1:] if suffix in KINDS["files"] else "json"
        # Small splits, so that several readers share an archive.
        given = {"path": str(place), "stateLocation": "unused", "maxSplitBytes": "1k"}
        given |= {"fileFormat": kind, "onSplitError": "return"}
        options = parse_options(given, streaming=True)
        processes = iter(range(1_000_000))

        def make_source() -> FileSource:
            stored, decoded = RELEASES[next(processes) % len(RELEASES)]
            if suffix == ".json.deflate":
                patch.setattr(codecs, "_CHUNK", stored)
                patch.setattr(split_content, "_STEP", decoded)
            return FileSource(options, SCHEMA)

        self.begin = partial(Trial, make_source, checkpoints_ahead=settings.pop("ahead"))
        super().__init__(**settings)

    def land(self, *sizes: int) -> None:
        """Land files of so many rows."""
        for rows in sizes:
            first = len(self.landed)
            chance = random.Random(first)
            new = [{"id": first + i, "text": f"{chance.getrandbits(300):x}"} for i in range(rows)]
            (self.place / f"{first:06}{self.suffix}").write_bytes(content(self.suffix, new))
            self.landed += new


FILE_MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(1, 90)),
    st.tuples(st.just("land"), st.integers(1, 20), st.integers(1, 3), st.integers(1, 3)),
    *MOVES,
)


def _examples() -> int:
    # A course takes a second: a regression test has a few, a search by night all of them.
    usual = settings().max_examples
    return usual if usual > 100 else 6


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_files_is_read_exactly_once(kind):
    @settings(settings(), max_examples=_examples())
    @given(
        moves=st.lists(FILE_MOVES, min_size=1, max_size=8),
        limits=st.sampled_from(LIMITS),
        suffix=st.sampled_from(KINDS[kind]),
        ahead=st.integers(0, 2),
        pick=st.integers(0, 20),
    )
    def search(moves, limits, suffix, ahead, pick):
        with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
            course = FilesCourse(Path(place), suffix, patch, limits=limits, ahead=ahead)
            course.land(60)
            course.run(moves, pick, BatchLimits(bytes=1200))
            sizes = [len(batch) for batch in course.trial.sink]
        assert max(sizes, default=0) <= (limits.rows or 10_000)
        if kind == "archives" and limits.files is not None:
            assert max(sizes, default=0) <= limits.files * MEMBER

    search()
