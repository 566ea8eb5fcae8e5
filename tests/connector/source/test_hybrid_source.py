"""Two sources in a row, looked at where one ends and the other begins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.attachments import Attachments
from pyspark_sluice.checkpoint_meta.documents.file_columns import changes_of, ranges_of
from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit
from pyspark_sluice.checkpoint_meta.documents.hybrid_split import FIRST
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.hybrid_source import HybridSource
from pyspark_sluice.connector.testing import SourceSuite, Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.enumerator.hybrid.hybrid_enumerator import HybridEnumerator, PartContext
from pyspark_sluice.enumerator.large_state import StateDocument
from pyspark_sluice.errors import OptionError
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.tests.connector.source.archived import (
    LINES,
    ArchivedLogSuite,
    Logs,
    Named,
    trial_of,
)
from pyspark_sluice.tests.connector.source.noticing import notice_of
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


def test_an_error_at_the_seam_fails_the_query_and_a_restart_tries_again(logs):
    class NoAnswer(Named):
        def state_at(self, part, position):
            raise OSError("the broker does not answer")

    landed = logs.land(0, 4)
    trial = trial_of(logs, NoAnswer)
    with pytest.raises(OSError, match="the broker does not answer"):
        trial.run_to_end()
    trial._make_source = lambda: Named(logs.options(), LINES)
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

    # Kills at each operation meet both switches of test_three_sources.py.
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


# Planted bugs ---------------------------------------------------------------------------------


class SwitchesTooEarly(HybridEnumerator):
    """Does not wait for what is with readers."""

    @property
    def _is_over(self):
        return self._part == FIRST and self._inner.has_discovered


class ForgetsThePosition(HybridEnumerator):
    """Begins each incarnation of the first part without what came before."""

    def __init__(self, context, source, state):
        super().__init__(context, source, state and replace(state, position=None))


class WritesTheFirstPartOnly(HybridEnumerator):
    """The switch is in no checkpoint."""

    def snapshot_state(self, checkpoint_id):
        return replace(super().snapshot_state(checkpoint_id), part=FIRST, snapshots=[])


class BeginsTheLogAgain(HybridEnumerator):
    """Begins the second part where its log begins, not where the files end."""

    def _enter_next(self, token, state, error):
        super()._enter_next(token, None, error)


@pytest.mark.sample("SwitchesTooEarly", "ForgetsThePosition", why="more faults of one seam")
@pytest.mark.parametrize(
    "broken",
    [SwitchesTooEarly, ForgetsThePosition, WritesTheFirstPartOnly, BeginsTheLogAgain],
    ids=lambda broken: broken.__name__,
)
def test_the_suite_notices_a_broken_seam(tmp_path, broken):
    class Suite(ArchivedLogSuite):
        def make_source(self, place):
            made = super().make_source(place)
            made.create_enumerator = lambda *given: broken(given[0], made, given[1])
            return made

    notice_of(Suite(), tmp_path, "")
