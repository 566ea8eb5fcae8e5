"""Two sources in a row: where one ends and the other begins, and the state of both."""

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.hybrid_split import (
    FIRST,
    SECOND,
    HybridSplit,
    HybridSplitSerializer,
)
from pyspark_sluice.checkpoint_meta.documents.serializer import JsonSerializer
from pyspark_sluice.checkpoint_meta.files.file_columns import changes_of, ranges_of
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.hybrid_source import HybridReader, HybridSource
from pyspark_sluice.connector.testing import SourceSuite, Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.hybrid.hybrid_enumerator import HybridEnumerator, PartContext
from pyspark_sluice.enumerator.hybrid.state import HybridState
from pyspark_sluice.enumerator.large_state import StateDocument
from pyspark_sluice.errors import OptionError, ProtocolError, StateVersionError
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource, LogSplit
from pyspark_sluice.reader.api import ReaderContext, ReceivedEvent
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.tests.connector.source.archived import LINES, Logs, trial_of
from pyspark_sluice.tests.enumerator.hand_cranked_context import HandCrankedContext

pytestmark = pytest.mark.slow
IDS = pa.schema([("id", pa.int64())])


@pytest.fixture
def logs(tmp_path):
    return Logs(tmp_path)


def test_the_switch_is_kept_though_the_log_has_nothing_yet(logs):
    landed = logs.land(0, 2, archived=2)
    trial = trial_of(logs)
    trial.run_to_end()
    trial.check(landed)
    logs.write_archive(0, [{"partition": "p0.log", "position": 900, "line": "later"}], 999)
    trial.restart()
    trial.run_to_end()
    trial.check(landed)


def test_files_that_land_before_the_switch_is_durable_move_the_seam(logs):
    first, more = logs.land(0, 4, archived=1), logs.land(1, 4, archived=0)
    trial = trial_of(logs)
    trial.step()
    assert trial.step()
    # The driver dies at the seam, before the switch is in the host's log.
    del trial.offsets[1:], trial.sink[1:]
    for name in ("offsets/1", "commits/1"):
        trial.log_objects.delete(name)
    logs.write_archive(0, first[1:3], first[3]["position"])
    trial.restart()
    trial.run_to_end()
    trial.check([*first, *more])


def test_an_error_at_the_seam_fails_the_query_and_a_restart_tries_again(logs, monkeypatch):
    landed = logs.land(0, 4)
    trial = trial_of(logs)
    with monkeypatch.context() as patch:
        # A broker that does not answer.
        patch.setattr(ArchivedLog, "state_at", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trial.run_to_end()
    trial.restart()
    trial.run_to_end()
    trial.check(landed)


ALIGNED = {"fileOrder": "eventTime", "eventTimePattern": "{yyyy}", "alignmentGroup": "shop"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"cleanSource": "delete", "cleanSourceRetention": "1d"},
            "a hybrid source does not clean up",
        ),
        (ALIGNED, "a hybrid source is not aligned.*alignmentGroup=shop"),
    ],
)
def test_cleaning_and_alignment_are_refused(logs, given, expected):
    options = logs.options(**given)
    trial = Trial(lambda: ArchivedLog(options, LINES), limits=BatchLimits())
    with pytest.raises(OptionError, match=expected):
        trial.step()


def test_a_part_gives_up_splits_by_their_own_ids():
    context = HandCrankedContext()
    reasons = {"a.json@1-2-:0-1": "too late"}
    PartContext(context, 0, lambda splits: lambda: None, is_last=False).quarantine_splits(reasons)
    assert context.quarantined == reasons


# Any source can be either part ----------------------------------------------------------------


class TwoFolders(HybridSource):
    """Files, then other files; copies of the first folder's count as seen in the second."""

    def _files(self, folder):
        path = f"{self.options.path}/{folder}"
        return FileSource(self.options.model_copy(update={"path": path}), self.schema)

    def sources(self):
        return self._files("old"), self._files("new")

    def position_after(self, part, position, splits):
        return sorted({*(position or ()), *(Path(split.file.path).name for split in splits)})

    def state_at(self, part, position):
        copies = [version(Path(self.options.path) / "new" / name) for name in position or ()]
        known = changes_of(
            ranges_of([FileSplit(of, of.size, of.size) for of in copies]), known=True
        )
        document = StateDocument(0, 0, 1, [known], 1, [])
        return self.parts[part].restore_state([document], Attachments(MemoryStateStore(), 0))


class TestTwoFolders(SourceSuite):
    """Both parts write changes, and bases with objects next to them."""

    # Kills at any operation meet the switch from files to a log in test_courses.py.
    test_a_kill_at_any_operation_on_the_state = None  # type: ignore[assignment]

    def make_source(self, place):
        for folder in ("old", "new"):
            (place / folder).mkdir(exist_ok=True)
        return TwoFolders(Logs(place).options(), IDS)

    def land(self, place, part, rows):
        number = len(list(place.glob("*/*.json")))
        text = "".join(json.dumps({"id": number * 100 + i}) + "\n" for i in range(rows))
        for folder in ("new", "old") if number < 4 else ("new",):
            (place / folder).mkdir(exist_ok=True)
            hidden = place / folder / f".{number}"
            hidden.write_text(text)
            hidden.rename(place / folder / f"{number}.json")
        return [{"id": number * 100 + i} for i in range(rows)]


class LogThenFiles(HybridSource):
    """The other way round: what the log has at the start, then what lands in the archive."""

    def sources(self):
        path = f"{self.options.path}/archive"
        files = FileSource(self.options.model_copy(update={"path": path}), self.schema)
        return LogSource(self.options, self.schema), files

    def position_after(self, part, position, splits):
        return None

    def state_at(self, part, position):
        return None


def test_a_log_may_be_the_first_part(logs):
    of_log = [row for part in range(3) for row in logs.land(part, 5, archived=0)]
    of_files = [{"partition": "archived", "position": n, "line": "x"} for n in range(4)]
    logs.write_archive(0, of_files, 1)
    trial = trial_of(logs, LogThenFiles)
    trial.step()
    later = logs.land(7, 2, archived=0)
    trial.restart()
    trial.run_to_end()
    # It is bounded, and looks again after a restart.
    trial.check([*of_log, *later, *of_files])
    assert trial.rows[-4:] == of_files


# What reaches which part, and what is written down -----------------------------------------------


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
def test_a_state_that_a_newer_release_of_a_part_has_written_is_refused(logs, monkeypatch, part):
    logs.land(0, 4, archived=4 if part == FIRST else 0)
    trial = trial_of(logs)
    for _ in range(1 + part):
        trial.step()
    serializer = trial.source.parts[part].state_serializer
    monkeypatch.setattr(type(serializer), "version", 0)
    trial.restart()
    with pytest.raises(StateVersionError, match=r"found version 1; expected at most version 0"):
        trial.step()


def test_splits_of_the_first_part_are_refused_in_the_second(logs):
    source = ArchivedLog(logs.options(), LINES)
    enumerator = HybridEnumerator(HandCrankedContext(), source, HybridState(SECOND, {}, ()))
    with pytest.raises(ProtocolError, match="splits of the first part were sent back"):
        enumerator.add_splits_back([HybridSplit(FIRST, LogSplit("p0.log", 0))], 0)
