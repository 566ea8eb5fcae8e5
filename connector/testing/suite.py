"""What the protocol promises of any source, as tests to inherit.

Those of Flink's SourceTestSuiteBase (one split and several, restart, scale up and down, idle
readers, failure, metrics), and what a model of Spark allows in addition: a kill at every operation
on the state.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.documents.checkpoint import Checkpoint
from ...checkpoint_meta.stores.testing import Fault, FaultKind
from ...enumerator.api import SplitEnumerator, SplitEnumeratorContext
from ...enumerator.batch_budget import BatchLimits
from ...enumerator.settings import StartingState
from ...reader.api import ReaderContext, Report, SplitFinished, SplitReader, SplitUnfinished
from ..source.api import Source
from .trial import KILLED, LOST, RETURNED, Row, Trial, check_rows

# Sources with one planted bug each: a suite that lets them pass would prove nothing ----------

_Item: TypeAlias = pa.RecordBatch | Report


class PlantedBug:
    """Breaks sources, one for each process of a query."""

    def __init__(self) -> None:
        self.was_reached = False
        """A broken part was used: a source that never comes to it does without that part."""

    def plant(self, source: Source[Any, Any]) -> Source[Any, Any]:
        """Break it, and give it back."""
        make_enumerator, make_reader = source.create_enumerator, source.create_reader

        def create_enumerator(context: SplitEnumeratorContext[Any], state: Any) -> Any:
            return self.enumerator(make_enumerator, context, state)

        def create_reader(context: ReaderContext) -> Any:
            return self.reader(make_reader, context)

        # On the instance: the class is the user's, and other runs of the suite need it sound.
        vars(source).update(create_enumerator=create_enumerator, create_reader=create_reader)
        return source

    def enumerator(self, make: Any, context: SplitEnumeratorContext[Any], state: Any) -> Any:
        """The enumerator, broken or sound."""
        return make(context, state)

    def reader(self, make: Any, context: ReaderContext) -> Any:
        """The reader, broken or sound."""
        return make(context)


class ForgetsItsState(PlantedBug):
    """A restart begins from nothing."""

    @override
    def enumerator(self, make: Any, context: SplitEnumeratorContext[Any], state: Any) -> Any:
        self.was_reached |= state is not None
        return make(context, None)


class ForgetsWhatComesBack(PlantedBug):
    """Splits that are sent back, and remainders, are dropped."""

    @override
    def enumerator(self, make: Any, context: SplitEnumeratorContext[Any], state: Any) -> Any:
        enumerator: SplitEnumerator[Any, Any] = make(context, state)

        def add_splits_back(splits: Sequence[Any], _: int) -> None:
            self.was_reached |= bool(splits)

        vars(enumerator).update(add_splits_back=add_splits_back)
        return enumerator


class AssignsTwice(PlantedBug):
    """A bug: the assignment of one reader is assigned to another one as well, once."""

    @override
    def enumerator(self, make: Any, context: SplitEnumeratorContext[Any], state: Any) -> Any:
        assign = context.assign_splits

        def assign_splits(assignment: Any) -> None:
            assign(assignment)
            for reader, splits in assignment.items():
                other = (reader + 1) % context.parallelism
                if splits and other != reader and not self.was_reached:
                    self.was_reached = True
                    assign({other: splits})

        vars(context).update(assign_splits=assign_splits)
        return make(context, state)


class IgnoresWhatWasAcknowledged(PlantedBug):
    """A repeated attempt stops where it likes, not where the first one did."""

    @override
    def reader(self, make: Any, context: ReaderContext) -> Any:
        self.was_reached |= bool(context.until)
        return make(replace(context, until={}))


class CallsUnfinishedFinished(PlantedBug):
    """The reader says that it has read a split to its end, whether it has or not."""

    @override
    def reader(self, make: Any, context: ReaderContext) -> Any:
        return _BrokenReader(make(context), self._finished)

    def _finished(self, item: _Item) -> _Item:
        if isinstance(item, SplitUnfinished):
            self.was_reached = True
            return SplitFinished(item.split_id, item.rows)
        return item


class DropsARow(PlantedBug):
    """The reader leaves out the last row of a batch."""

    @override
    def reader(self, make: Any, context: ReaderContext) -> Any:
        return _BrokenReader(make(context), self._shorter)

    def _shorter(self, item: _Item) -> _Item:
        if isinstance(item, pa.RecordBatch) and item.num_rows:
            self.was_reached = True
            return item.slice(0, item.num_rows - 1)
        return item


class _BrokenReader(SplitReader[Any]):
    """Reads through another reader, and passes on what `change` makes of each item."""

    def __init__(self, inner: SplitReader[Any], change: Callable[[_Item], _Item]) -> None:
        self._inner = inner
        self._change = change

    @override
    def read(self, splits: Sequence[Any]) -> Iterator[_Item]:
        for item in self._inner.read(splits):
            yield self._change(item)

    @override
    def close(self) -> None:
        self._inner.close()


PLANTED_BUGS: Sequence[type[PlantedBug]] = (
    ForgetsItsState,
    ForgetsWhatComesBack,
    AssignsTwice,
    IgnoresWhatWasAcknowledged,
    CallsUnfinishedFinished,
    DropsARow,
)


# The suite -----------------------------------------------------------------------------------

_KILLS: Sequence[tuple[FaultKind, str]] = (
    ("crash before", ""),
    ("crash after", "publish"),
    ("crash half-way", "publish"),
    ("crash after", "delete"),
    ("crash half-way", "delete"),
)
"""How a process dies, and at which operations."""


class SourceSuite(ABC):
    """Inherit it, name the class `Test...`, and write the two methods; pytest does the rest.

    Each test has a directory of its own, in which it lands rows and runs queries.
    """

    limits: ClassVar[BatchLimits] = BatchLimits(files=2)
    """Limits of each batch; small, so that a few rows take several batches."""

    planted_bugs: ClassVar[Sequence[type[PlantedBug]]] = PLANTED_BUGS
    """Bugs that the suite has to notice where the source comes to them at all."""

    @abstractmethod
    def make_source(self, place: Path) -> Source[Any, Any]:
        """The source over what `land` has put into `place`. Called for each process of a query."""

    @abstractmethod
    def land(self, place: Path, part: int, rows: int) -> Sequence[Row]:
        """Add `rows` new rows to part number `part` (a file, a partition), which may be new.

        With nothing of the code under test. Rows of several calls differ.

        Returns:
            The rows as the source has to read them.
        """

    # One run --------------------------------------------------------------------------------

    def _trial(
        self, place: Path, *, bug: PlantedBug | None = None, limited: bool = True, **options: Any
    ) -> Trial:
        def make() -> Source[Any, Any]:
            source = self.make_source(place)
            return source if bug is None else bug.plant(source)

        return Trial(make, limits=self.limits if limited else BatchLimits(), **options)

    def _many(self, place: Path, rows: int = 3) -> list[Row]:
        return [row for part in range(4) for row in self.land(place, part, rows)]

    def test_one_split_is_read_once(self, tmp_path: Path) -> None:
        """One part, and no row before there is one."""
        landed = list(self.land(tmp_path, 0, 5))
        trial = self._trial(tmp_path)
        trial.run_to_end()
        trial.check(landed)

    def test_several_splits_are_read_once(self, tmp_path: Path) -> None:
        """Four parts over two readers, in several batches."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.run_to_end()
        trial.check(landed)

    def test_what_lands_later_is_read(self, tmp_path: Path) -> None:
        """New rows in known parts, and new parts, while the query runs."""
        landed = list(self.land(tmp_path, 0, 2))
        trial = self._trial(tmp_path)
        for part in (0, 1, 0, 2):
            trial.step()
            landed += self.land(tmp_path, part, 3)
        trial.run_to_end()
        trial.check(landed)

    def test_a_restart_resumes(self, tmp_path: Path) -> None:
        """Restarts in the middle, at the end, and twice in a row, with rows that land between."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.step()
        trial.restart()
        landed += self.land(tmp_path, 1, 2)
        trial.run_to_end()
        trial.restart()
        trial.restart()
        landed += self.land(tmp_path, 2, 2)
        trial.run_to_end()
        trial.check(landed)

    def test_more_readers_after_a_restart(self, tmp_path: Path) -> None:
        """Scale up: one reader, then four."""
        self._rescale(tmp_path, 1, 4)

    def test_fewer_readers_after_a_restart(self, tmp_path: Path) -> None:
        """Scale down: four readers, then one."""
        self._rescale(tmp_path, 4, 1)

    def _rescale(self, place: Path, before: int, after: int) -> None:
        landed = self._many(place)
        trial = self._trial(place, parallelism=before)
        trial.step()
        trial.restart(after)
        landed += self._many(place, 1)
        trial.run_to_end()
        trial.check(landed)
        newest = [reader for cut in trial.checkpoints()[-2:] for reader, _ in cut.assigned]
        assert all(reader < after for reader in newest), f"readers {newest} of {after}"

    def test_readers_without_splits_do_no_harm(self, tmp_path: Path) -> None:
        """Idle readers: seven of them, and one part."""
        landed = list(self.land(tmp_path, 0, 4))
        trial = self._trial(tmp_path, parallelism=7)
        trial.run_to_end()
        landed += self.land(tmp_path, 0, 2)
        trial.run_to_end()
        trial.check(landed)

    def test_a_run_that_ends_reads_what_is_there(self, tmp_path: Path) -> None:
        """Trigger.AvailableNow, twice; it ends, although rows land while it runs."""
        landed = self._many(tmp_path)
        first = self._trial(tmp_path, bounded=True)
        first.step()
        later = list(self.land(tmp_path, 3, 2))
        first.run_to_end()
        check_rows([row for row in first.rows if row not in later], landed)
        first.restart()
        first.run_to_end()
        first.check(landed + later)

    def test_a_batch_without_limits_takes_everything(self, tmp_path: Path) -> None:
        """The rows are the same, however large the batches are."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path, limited=False)
        trial.run_to_end()
        trial.check(landed)

    # Failure --------------------------------------------------------------------------------

    def test_a_task_that_fails_is_repeated(self, tmp_path: Path) -> None:
        """Executors die after their first rows; Spark repeats the tasks."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.script = [KILLED, "", KILLED, KILLED, ""]
        trial.run_to_end()
        trial.check(landed)

    def test_a_task_that_has_acknowledged_is_repeated_exactly(self, tmp_path: Path) -> None:
        """Executors die after their commit. What lands in between changes nothing."""
        landed = self._many(tmp_path, 1)
        trial = self._trial(tmp_path)
        trial.meanwhile = lambda: landed.extend(self._many(tmp_path, 1))
        trial.script = [LOST, "", LOST, ""]
        trial.run_to_end()
        trial.check(landed)

    def test_splits_that_are_sent_back_are_read_later(self, tmp_path: Path) -> None:
        """A reader cannot read its splits; another batch reads them."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.script = [RETURNED, ""] * 4
        trial.run_to_end()
        trial.check(landed)

    def test_a_kill_at_any_operation_on_the_state(self, tmp_path: Path) -> None:
        """The driver or an executor dies before, in or after each operation, one a run."""
        for kind, verb in _KILLS:
            # Until a run ends without coming to the fault, so every operation is hit once.
            for after in count():
                what = f"{kind} {verb or 'operation'} {after + 1}"
                place = tmp_path / what.replace(" ", "-")
                place.mkdir()
                trial = self._trial(place, fault=Fault(kind, after, verb=verb))
                self._story(trial, place, what)
                if not trial.kills:
                    # The run has ended before it came to that.
                    break

    def _story(self, trial: Trial, place: Path, what: str = "") -> None:
        landed = [*self.land(place, 0, 4), *self.land(place, 1, 2)]
        trial.step()
        landed += [*self.land(place, 0, 3), *self.land(place, 2, 2)]
        trial.run_to_end()
        trial.restart()
        landed += self.land(place, 1, 1)
        trial.run_to_end()
        trial.check(landed, what)

    def test_a_new_query_starts_from_any_checkpoint(self, tmp_path: Path) -> None:
        """Savepoints: with `startingState` a query reads what comes after, and nothing else."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.run_to_end()
        for number, ref in enumerate(trial.offsets):
            fork = self._trial(tmp_path, starting_state=StartingState(trial.objects, ref))
            fork.run_to_end()
            before = [row for batch in trial.sink[: number + 1] for row in batch]
            check_rows([*before, *fork.rows], landed, f"startingState {ref}")
            fork.restart()
            fork.run_to_end()
            check_rows([*before, *fork.rows], landed, f"startingState {ref}, restarted")

    # What is written down -------------------------------------------------------------------

    def test_metrics_count_the_rows(self, tmp_path: Path) -> None:
        """Reader commits say how many rows there were; the report is JSON."""
        landed = self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.run_to_end()
        counted = sum(rows for commit in trial.commits() for rows in commit.rows)
        assert counted == len(landed), f"commits count {counted} rows of {len(landed)}"
        report = json.loads(json.dumps(trial.coordinator.report()))
        assert report["checkpoint"] == trial.offsets[-1].checkpoint, report
        assert report["heldSplits"] == report["abandonedReaders"] == 0, report

    def test_splits_survive_being_written(self, tmp_path: Path) -> None:
        """Also as JSON, which is how a remainder is written."""
        self._many(tmp_path)
        trial = self._trial(tmp_path)
        trial.run_to_end()
        serializer = self.make_source(tmp_path).split_serializer
        splits = [split for cut in trial.checkpoints() for split in _splits(cut, serializer)]
        assert splits, "no split was assigned"
        batch = serializer.serialize(splits)
        assert batch.schema == serializer.serialize([]).schema, "the schema depends on the value"
        assert list(serializer.deserialize(serializer.version, batch)) == splits
        for split in splits:
            text = json.dumps(serializer.serialize([split]).to_pydict())
            assert json.loads(text) == serializer.serialize([split]).to_pydict(), split
            twins = {repr(other) for other in splits if other.split_id == split.split_id}
            assert len(twins) == 1, f"different splits have the id {split.split_id}: {twins}"

    # The suite itself -----------------------------------------------------------------------

    def test_a_planted_bug_is_noticed(self, tmp_path: Path) -> None:
        """Each of `planted_bugs` loses or doubles rows in one of these runs."""
        for kind in self.planted_bugs:
            bugs = []
            for name, run in self._runs().items():
                place = tmp_path / f"{kind.__name__}-{name}"
                place.mkdir()
                bugs.append(kind())
                if self._fails(run, place, bugs[-1]):
                    break
            else:
                reached = any(bug.was_reached for bug in bugs)
                assert not reached, f"{kind.__name__} is not detected"

    def _runs(self) -> dict[str, Callable[[Trial, Path], None]]:
        def repeated(trial: Trial, place: Path) -> None:
            landed = self._many(place, 1)
            trial.meanwhile = lambda: landed.extend(self._many(place, 1))
            trial.script = [LOST, "", LOST, "", "", RETURNED]
            trial.run_to_end()
            trial.check(landed)

        return {"story": self._story, "repeated": repeated}

    def _fails(self, run: Callable[[Trial, Path], None], place: Path, bug: PlantedBug) -> bool:
        try:
            run(self._trial(place, bug=bug), place)
        except Exception:  # noqa: BLE001 - a broken source may raise anything
            return True
        return False


def _splits(checkpoint: Checkpoint, serializer: Any) -> list[Any]:
    version = checkpoint.header.split_version
    return [s for _, batch in checkpoint.assigned for s in serializer.read(version, batch)]
