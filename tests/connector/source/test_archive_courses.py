"""Archives of several members, in batches that end within members: events in any order."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.tests.connector.source import courses
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
SUFFIXES = [".zip", ".tar.gz", ".tar"]
MOVES = st.one_of(
    st.tuples(st.just("land"), st.integers(1, 90), st.sampled_from(SUFFIXES)), *courses.MOVES
)
LIMITS = [BatchLimits(bytes=600), BatchLimits(bytes=3000), BatchLimits(rows=17)]


class Course(courses.Course):
    """One query over a directory of archives, and what happens to it."""

    def __init__(self, place: Path, limits: BatchLimits, ahead: int = 1) -> None:
        super().__init__()
        self.place, self.ahead = place, ahead
        given = {"fileFormat": "json", "path": str(place), "stateLocation": "unused"}
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
        parts = range(0, rows, 25)
        contents = {f"{at}.json": b"".join(lines[at : at + 25]) for at in parts}
        path = self.place / f"{first}{suffix}"
        path.write_bytes(PACKERS[suffix]({"__MACOSX/x": b"{", **contents, "empty.json": b""}))
        self.landed += new

    def fork(self, savepoint: StartingState) -> Trial:
        return self.begin(BatchLimits(bytes=1200), savepoint)


@settings(max_examples=12)
@given(
    moves=st.lists(MOVES, min_size=1, max_size=8),
    limit=st.sampled_from(LIMITS),
    suffix=st.sampled_from(SUFFIXES),
    ahead=st.integers(0, 2),
    pick=st.integers(0, 20),
)
def test_every_row_is_read_exactly_once(moves, limit, suffix, ahead, pick):
    with tempfile.TemporaryDirectory() as place:
        course = Course(Path(place), limit, ahead)
        course.land(60, suffix)
        course.run(moves, pick, course.fork)


@pytest.mark.thorough("a hundred kills in a row; courses have some of them")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_is_lost_or_doubled_by_a_kill_at_each_operation(tmp_path, suffix):
    kills = [(kind, after) for kind in ("crash before", "crash after") for after in range(50)]
    for number, (kind, after) in enumerate(kills):
        place = tmp_path / str(number)
        place.mkdir()
        course = Course(place, LIMITS[number % len(LIMITS)], number % 3)
        course.land(60, suffix)
        moves = [("kill", kind, after), ("step", 2, []), ("land", 40, suffix), ("step", 3, [])]
        course.run(moves, number, course.fork)
