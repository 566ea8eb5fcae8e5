"""Compressed files that cannot be entered, in batches: events in any order.

Each process has another release of the decoder, which takes in and gives out other amounts at a
time: a part ends at a record, so the next reader goes on there with any release.
"""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.reader.files.io import codecs
from pyspark_sluice.reader.files.io.compressed import splittable_codecs
from pyspark_sluice.reader.files.io.compressed.cut_places import take_over
from pyspark_sluice.tests.connector.source import courses

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
RELEASES = [(40, 900), (150, 100), (350, 3000), (580, 400)]
SHARE = 600
MOVES = st.one_of(st.tuples(st.just("land"), st.integers(1, 90)), *courses.MOVES)


class Course(courses.Course):
    """One query over a directory of compressed files, and what happens to it."""

    def __init__(
        self, place: Path, limits: BatchLimits, patch: pytest.MonkeyPatch, ahead: int = 1
    ) -> None:
        super().__init__()
        self.place, self.patch, self.ahead = place, patch, ahead
        given = {"fileFormat": "json", "path": str(place), "stateLocation": "unused"}
        self.options = parse_options({**given, "onSplitError": "return"}, streaming=True)
        self.processes = 0
        self.trial = self.begin(limits)

    def begin(self, limits: BatchLimits, savepoint: StartingState | None = None) -> Trial:
        def make_source() -> FileSource:
            stored, content = RELEASES[self.processes % len(RELEASES)]
            self.processes += 1
            self.patch.setattr(codecs, "_CHUNK", stored)
            self.patch.setattr(splittable_codecs, "_STEP", content)
            return FileSource(self.options, SCHEMA)

        return Trial(
            make_source, limits=limits, checkpoints_ahead=self.ahead, starting_state=savepoint
        )

    def land(self, rows: int) -> None:
        first = len(self.landed)
        chance = random.Random(first)
        new = [{"id": first + i, "text": f"{chance.getrandbits(300):x}"} for i in range(rows)]
        lines = "".join(json.dumps(row) + "\n" for row in new).encode()
        (self.place / f"{first}.json.deflate").write_bytes(zlib.compress(lines))
        self.landed += new

    def fork(self, savepoint: StartingState) -> Trial:
        fork = self.begin(BatchLimits(bytes=2 * SHARE), savepoint)
        take_over(self.trial.objects, fork.objects)
        return fork


@pytest.mark.thorough("the same courses over files that are not compressed are in test_courses.py")
@given(
    moves=st.lists(MOVES, min_size=1, max_size=8),
    limit=st.sampled_from(
        [BatchLimits(bytes=SHARE), BatchLimits(bytes=3 * SHARE), BatchLimits(rows=17)]
    ),
    ahead=st.integers(0, 2),
    pick=st.integers(0, 20),
)
def test_every_row_is_read_exactly_once(moves, limit, ahead, pick):
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        course = Course(Path(place), limit, patch, ahead)
        course.land(60)
        course.run(moves, pick, course.fork)
