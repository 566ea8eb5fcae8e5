"""What a hybrid source writes down, and what reaches which part."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from pyspark_sluice.checkpoint_meta.documents.hybrid_split import (
    FIRST,
    SECOND,
    HybridSplit,
    HybridSplitSerializer,
)
from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer
from pyspark_sluice.connector.source.hybrid_source import HybridReader
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.hybrid.hybrid_enumerator import HybridEnumerator
from pyspark_sluice.enumerator.hybrid.state import HybridState
from pyspark_sluice.errors import ProtocolError, StateVersionError
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource, LogSplit
from pyspark_sluice.reader.api import ReaderContext, ReceivedEvent
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.tests.connector.source.archived import LINES, Logs, Named, trial_of
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


def test_events_of_one_part_do_not_reach_readers_of_the_other(logs):
    made, context = ArchivedLog(logs.options(), LINES), HandCrankedContext()
    enumerator = HybridEnumerator(context, made, None)
    enumerator._inner_context.send_event(1, "hello")
    assert context.events == [(1, [FIRST, "hello"])]
    seen = []

    def make(of):
        seen.append(of.events)
        return LogSource(logs.options(), LINES).create_reader(of)

    task = ReaderContext(
        1, 0, 0, events=[ReceivedEvent([FIRST, "hello"], 0), ReceivedEvent([SECOND, "later"], 0)]
    )
    logs.land(0, 1, archived=0)
    assert list(HybridReader([make, make], task).read([HybridSplit(SECOND, LogSplit("p0.log", 0))]))
    assert seen == [[ReceivedEvent("later", 0)]]


def test_events_that_a_reader_never_got_come_back_to_their_own_part(logs):
    made = ArchivedLog(logs.options(), LINES)
    enumerator = HybridEnumerator(HandCrankedContext(), made, HybridState(SECOND, {}, ()))
    enumerator.add_events_back([[FIRST, "of a reader of files"]], 3)
    with pytest.raises(ProtocolError, match="events wait for a reader that no longer exists"):
        enumerator.add_events_back([[SECOND, "of a reader of the log"]], 3)


@pytest.mark.slow
def test_a_compressed_file_of_a_part_is_cut_at_points_in_the_state(logs, monkeypatch):
    monkeypatch.setattr(points_of_gzip, "SPACING", 1)
    chance = random.Random(1)
    rows = [
        {"partition": "p0.log", "position": at, "line": f"{chance.getrandbits(1600):x}"}
        for at in range(30_000)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (logs.archive / "p0.log.10000.gz").write_bytes(gzip.compress(text.encode(), 1))
    trial = Trial(
        lambda: ArchivedLog(logs.options(maxSplitBytes="1m"), LINES), limits=BatchLimits()
    )
    assert trial.step()
    (checkpoint,) = trial.checkpoints()
    assert sum(batch.num_rows for _, batch in checkpoint.assigned) > 1
    assert len(trial.objects.list("points")) == 1
    trial.check(rows)


# What is written down -------------------------------------------------------------------------


def _serializer(version=1):
    def of(name):
        return JsonSerializer(version, lambda split: [name, split], lambda _, value: value[1])

    return HybridSplitSerializer([of("a"), of("b")])


def test_splits_of_both_parts_keep_their_order():
    splits = [HybridSplit(part, f"{part}{n}") for n, part in enumerate([0, 0, 1, 0, 1, 1])]
    batch = _serializer().serialize(splits)
    assert _serializer().deserialize(1, batch) == splits
    assert _serializer().serialize([]).schema == batch.schema
    assert json.loads(json.dumps(batch.to_pydict())) == batch.to_pydict()


def test_a_part_that_a_newer_release_has_written_is_refused():
    batch = _serializer(version=2).serialize([HybridSplit(SECOND, "x")])
    with pytest.raises(StateVersionError, match="version 2"):
        _serializer(version=1).read(1, batch)


@pytest.mark.parametrize("part", [FIRST, SECOND])
def test_a_state_that_a_newer_release_of_a_part_has_written_is_refused(logs, part):
    logs.land(0, 4, archived=4 if part == FIRST else 0)
    trial = trial_of(logs, Named)
    for _ in range(1 + part):
        trial.step()

    class Older(Named):
        @property
        def parts(self):
            return [_from_version_zero(of) for of in super().parts]

    trial._make_source = lambda: Older(logs.options(), LINES)
    trial.restart()
    with pytest.raises(StateVersionError, match=r"found version 1; expected at most version 0"):
        trial.step()


def _from_version_zero(source):
    serializer = type(source.state_serializer)
    return _WithState(source, type("Older", (serializer,), {"version": 0})())


class _WithState:
    """A source, and a serializer of an older release."""

    def __init__(self, source, serializer):
        self._source = source
        self.state_serializer = serializer

    def __getattr__(self, name):
        return getattr(self._source, name)


def test_splits_of_the_first_part_are_refused_in_the_second(logs):
    source = ArchivedLog(logs.options(), LINES)
    enumerator = HybridEnumerator(HandCrankedContext(), source, HybridState(SECOND, {}, ()))
    with pytest.raises(ProtocolError, match="splits of the first part were sent back"):
        enumerator.add_splits_back([HybridSplit(FIRST, LogSplit("p0.log", 0))], 0)
