"""What a reader has reported of each split of an assignment so far.

Not here: the commit that is made of it (`task.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checkpoint_meta.documents.reader_commit import ReaderCommit, ReturnedSplit, UnfinishedSplit
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..errors import ProtocolError
from .api import ReaderEvent, Report, SplitFinished, SplitReturned, SplitUnfinished

_WAIVED = "given up by an order"


@dataclass
class Outcome:
    """By index of the split."""

    rows: list[int]
    bytes: list[int]
    microseconds: list[int]
    unfinished: list[UnfinishedSplit] = field(default_factory=list)
    returned: list[ReturnedSplit] = field(default_factory=list)
    dropped: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    events: list[tuple[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, splits: int) -> Outcome:
        """Nothing is reported of so many splits."""
        return cls([0] * splits, [0] * splits, [0] * splits)

    def give_up(self, indexes: Sequence[int], earlier: ReaderCommit | None) -> None:
        """Nothing is read of some splits; the verdict of an earlier attempt on them stays."""
        if earlier is None:
            self.skipped |= dict.fromkeys(indexes, _WAIVED)
            return
        for index in indexes:
            # The same as in the commit that counts, with which this attempt has to agree.
            self.rows[index] = earlier.rows[index]
        self.unfinished += [part for part in earlier.unfinished if part.index in indexes]

    def note_event(self, event: ReaderEvent, types: Collection[str]) -> None:
        """Take an event for the enumerator, of one of these types.

        Raises:
            ProtocolError: of another.
        """
        if event.type not in types:
            raise ProtocolError(
                "the reader sent an event of an unregistered type",
                "",
                repr(event.type),
                f"one of {sorted(types)}",
            )
        self.events.append((event.type, event.value))

    def note(
        self, report: Report, index: int, serializer: VersionedSerializer[Sequence[Any]]
    ) -> None:
        """Take the report on one split."""
        if isinstance(report, SplitFinished):
            self.rows[index] = report.rows
            self.bytes[index] = report.bytes
            self.microseconds[index] = int(report.seconds * 1_000_000)
            if report.dropped_records:
                self.dropped[index] = report.dropped_records
            if report.skipped:
                self.skipped[index] = report.skipped
        elif isinstance(report, SplitUnfinished):
            self.rows[index] = report.rows
            columns = serializer.serialize([report.remainder]).to_pydict()
            self.unfinished.append(UnfinishedSplit(index=index, remainder=columns))
        elif isinstance(report, SplitReturned):
            self.returned.append(ReturnedSplit(index=index, reason=report.reason))
