"""Sources with one planted bug each: a suite that lets them pass would prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
from typing_extensions import override

from ...enumerator.api import SplitEnumerator, SplitEnumeratorContext
from ...reader.api import ReaderContext, Report, SplitFinished, SplitReader, SplitUnfinished
from ..source.api import Source

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
