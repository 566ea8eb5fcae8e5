"""Archives of several members, in batches that end within members: events in any order."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.connector.source import courses
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
SUFFIXES = [".zip", ".tar.gz", ".tar", ".7z"]
MEMBER = 25
"""Rows of a member at most."""

MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(1, 90), st.sampled_from(SUFFIXES)), *courses.MOVES
)
LIMITS = [
    BatchLimits(bytes=600),
    BatchLimits(files=2),
    BatchLimits(bytes=3000),
    BatchLimits(rows=17),
]


class Course(courses.Course):
    """One query over a directory of archives, and what happens to it."""

    def __init__(
        self,
        path: str,
        put: Callable[[str, bytes], object],
        limits: BatchLimits,
        ahead: int = 1,
        **options: str,
    ) -> None:
        super().__init__()
        self.put, self.ahead = put, ahead
        given = {"fileFormat": "json", "path": path, "stateLocation": "unused", **options}
        # Small, so that several readers share an archive.
        given |= {"onSplitError": "return", "maxSplitBytes": "1k"}
        self.options = parse_options(given, streaming=True)
        self.trial = self.begin(limits)

    def begin(self, limits: BatchLimits, savepoint: StartingState | None = None) -> Trial:
        return Trial(
            lambda: FileSource(self.options, SCHEMA),
            limits=limits,
            checkpoints_ahead=self.ahead,
            starting_state=savepoint,
        )

    def land(self, rows: int, suffix: str) -> None:
        first = len(self.landed)
        chance = random.Random(first)
        new = [{"id": first + i, "text": f"{chance.getrandbits(300):x}"} for i in range(rows)]
        lines = [json.dumps(row).encode() + b"\n" for row in new]
        parts = range(0, rows, MEMBER)
        contents = {f"{at}.json": b"".join(lines[at : at + MEMBER]) for at in parts}
        data = PACKERS[suffix]({"__MACOSX/x": b"{", **contents, "empty.json": b""})
        self.put(f"{first}{suffix}", data)
        self.landed += new

    def fork(self, savepoint: StartingState) -> Trial:
        return self.begin(BatchLimits(bytes=1200), savepoint)


def local_course(place: Path, limits: BatchLimits, ahead: int) -> Course:
    return Course(str(place), lambda name, data: (place / name).write_bytes(data), limits, ahead)


@settings(max_examples=8)
@given(
    moves=st.lists(MOVES, min_size=1, max_size=8),
    limit=st.sampled_from(LIMITS),
    suffix=st.sampled_from(SUFFIXES),
    ahead=st.integers(0, 2),
    pick=st.integers(0, 20),
)
def test_every_row_is_read_exactly_once(moves, limit, suffix, ahead, pick):
    with tempfile.TemporaryDirectory() as place:
        course = local_course(Path(place), limit, ahead)
        course.land(60, suffix)
        course.run(moves, pick, course.fork)
        if limit.files is not None:
            assert all(len(batch) <= limit.files * MEMBER for batch in course.trial.sink)


@pytest.mark.sample("0-.tar.gz", "1-.zip", why="a thousand members each")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_limit_on_files_counts_the_members_of_archives(tmp_path, suffix, ahead):
    contents = {f"{n}.json": b'{"id":%d}\n' % n for n in range(1000)}
    (tmp_path / f"a{suffix}").write_bytes(PACKERS[suffix](contents))
    for n in range(1000, 1050):
        (tmp_path / f"{n}.json").write_bytes(b'{"id":%d}\n' % n)
    course = local_course(tmp_path, BatchLimits(files=100), ahead)
    course.trial.run_to_end()
    assert sorted(row["id"] for row in course.trial.rows) == list(range(1050))
    sizes = [len(batch) for batch in course.trial.sink]
    assert max(sizes) <= 100
    if suffix != ".zip":
        # One reader has the archive. What the other one does not need of the limit, it gets.
        assert min(sizes[:9]) >= 90, sizes
    # Ahead, what readers leave is an estimate, and the last ones have less to read.
    assert len(sizes) <= 20, sizes


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_limit_on_files_holds_for_a_part_that_only_continues_an_archive(tmp_path, ahead):
    contents = {f"{n}.json": b'{"id":%d}\n' % n * 10 for n in range(200)}
    (tmp_path / "a.zip").write_bytes(PACKERS[".zip"](contents))
    for n in range(200, 220):
        (tmp_path / f"{n}.json").write_bytes(b'{"id":%d}\n' % n)
    options = {"fileFormat": "json", "path": str(tmp_path), "stateLocation": "unused"}
    parsed = parse_options(options, streaming=True)
    # Nothing new comes in a bounded run, so it cuts batches in which readers only continue.
    trial = Trial(
        lambda: FileSource(parsed, SCHEMA),
        bounded=True,
        limits=BatchLimits(files=20),
        checkpoints_ahead=ahead,
    )
    trial.run_to_end()
    assert len(trial.rows) == 2020
    assert max(len({row["id"] for row in batch}) for batch in trial.sink) <= 20


def kill(course: Course, number: int, suffix: str) -> None:
    """Kill it before or after one of its first fifty operations."""
    kind = ("crash before", "crash after")[number % 2]
    course.land(60, suffix)
    moves = [("kill", kind, number // 2), ("step", 2, []), ("land", 40, suffix), ("step", 3, [])]
    course.run(moves, number, course.fork)


@pytest.mark.thorough("a hundred kills in a row; courses have some of them")
# A member of a .tar is found as in a .tar.gz, and of a .7z as in a .zip.
@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_nothing_is_lost_or_doubled_by_a_kill_at_each_operation(tmp_path, suffix):
    for number in range(100):
        place = tmp_path / str(number)
        place.mkdir()
        course = local_course(place, LIMITS[number % len(LIMITS)], number % 3)
        kill(course, number, suffix)


@pytest.mark.thorough("the same in a bucket")
@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_nothing_is_lost_or_doubled_in_a_bucket(server, bucket, suffix):
    for number in range(0, 100, 9):
        folder = f"{suffix[1:]}-{number}"

        def put(name: str, data: bytes, folder: str = folder) -> None:
            server.put(bucket, f"{folder}/{name}", data)

        path, limits = f"s3://{bucket}/{folder}", LIMITS[number % len(LIMITS)]
        options = {"storageOptions": as_json(server.options)}
        kill(Course(path, put, limits, number % 3, **options), number, suffix)
