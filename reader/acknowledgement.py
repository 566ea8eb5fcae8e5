"""Reports of an attempt about its splits, and their agreement with what was acknowledged before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checkpoint_meta.documents.reader_commit import (
    NotBegun,
    ReaderCommit,
    ReturnedSplit,
    UnfinishedSplit,
)
from ..checkpoint_meta.documents.serializer import VersionedSerializer
from ..errors import ReplayError
from .api import SplitReport, SplitReturned, SplitUnfinished

_WAIVED = "given up by an order"


@dataclass
class Outcome:
    """By index of the split."""

    rows: list[int]
    bytes: list[int]
    microseconds: list[int]
    unfinished: list[UnfinishedSplit] = field(default_factory=list)
    not_begun: NotBegun = field(default_factory=NotBegun)
    returned: list[ReturnedSplit] = field(default_factory=list)
    dropped: dict[int, int] = field(default_factory=dict)
    filtered: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    events: list[tuple[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, splits: int) -> Outcome:
        """Nothing is reported of so many splits."""
        return cls([0] * splits, [0] * splits, [0] * splits)

    def abandon(self, indexes: Sequence[int], earlier: ReaderCommit | None) -> None:
        """Nothing is read of some splits; verdicts of an earlier attempt without rows stay."""
        if earlier is None:
            self.skipped |= dict.fromkeys(indexes, _WAIVED)
            return
        self.returned.extend(earlier.returned)
        self.not_begun = earlier.not_begun
        for index in indexes:
            # The same as in the commit that counts, with which this attempt has to agree.
            self.rows[index] = earlier.rows[index]
        self.unfinished += [part for part in earlier.unfinished if part.index in indexes]

    def end_before(
        self,
        indexes: Iterable[int],
        part: Sequence[Any],
        serializer: VersionedSerializer[Sequence[Any]],
    ) -> None:
        """The part ends: of these splits nothing was read."""
        rest = sorted(indexes)
        if rest:
            columns = serializer.serialize([part[i] for i in rest]).to_pydict()
            self.not_begun = NotBegun(indexes=rest, splits=columns)

    def note(
        self, report: SplitReport, index: int, serializer: VersionedSerializer[Sequence[Any]]
    ) -> None:
        """Take the report on one split."""
        if isinstance(report, SplitReturned):
            self.returned.append(ReturnedSplit(index=index, reason=report.reason))
            return
        self.rows[index] = report.rows
        self.bytes[index] = report.bytes
        self.microseconds[index] = int(report.seconds * 1_000_000)
        # Few splits have any, and a commit may list thousands of splits.
        if report.dropped_records:
            self.dropped[index] = report.dropped_records
        if report.filtered_rows:
            self.filtered[index] = report.filtered_rows
        if isinstance(report, SplitUnfinished):
            columns = serializer.serialize([report.remainder]).to_pydict()
            self.unfinished.append(UnfinishedSplit(index=index, remainder=columns))
        elif report.skipped:
            self.skipped[index] = report.skipped


@dataclass(frozen=True)
class Replay:
    """The part of an earlier attempt that an attempt has to repeat."""

    where: str
    shape: Mapping[str, Any]
    """What shapes rows now."""

    earlier: ReaderCommit | None
    """The commit of an earlier attempt; None for the first one, which may read as it likes."""

    def check_direct_write(self, *, writes: bool) -> None:
        """Refuse a batch that was first read with rows in data files and now without, or reversed.

        Raises:
            ReplayError: the option has changed in the middle of the batch.
        """
        # Otherwise the same rows could be in Spark's sink and in the files of a table.
        if self.earlier is None or (self.earlier.written_files is not None) == writes:
            return
        was = "rows went to Spark" if writes else "rows were written into data files"
        raise ReplayError(
            "this batch was first read without writeTo"
            if writes
            else "this batch was first read with writeTo, which is no longer set",
            self.where,
            f"a commit by which {was}",
            "the same option for the whole batch",
            "Start the query with the earlier options until the batch has finished, then "
            "change them.",
        )

    def check_wanted(self, counted: ReaderCommit) -> None:
        """Refuse to end as if the rows counted, if the driver has given this attempt up.

        Raises:
            ReplayError: the batch was completed without this attempt.
        """
        # The driver may have published it while this attempt was still reading.
        if counted.abandoned:
            raise ReplayError(
                "Spark completed the batch without this attempt",
                self.where,
                "the driver's record that it abandoned this reader",
                "no such record while an attempt is running",
                "Nothing is lost: the rows of this attempt are in no batch. A sink that reads only "
                "a part of its input (limit, first) leaves the rest unread.",
            )

    def cannot_repeat(
        self, counted: ReaderCommit, found: str, expected: str = "the same rows again"
    ) -> ReplayError:
        """The error for an attempt that returns something else than what `counted` acknowledges."""
        # Options are read as they were recorded; the schema is Spark's, and its plan is made.
        is_new_schema = counted.shape.get("schema") not in (None, self.shape.get("schema"))
        return ReplayError(
            "this attempt cannot repeat what an earlier attempt of the batch has acknowledged",
            self.where,
            found,
            expected,
            "The schema is not what it was when the batch was first read: start the query with "
            "the earlier one until the batch has finished, then change it."
            if is_new_schema
            else "Put the file back as it was when the batch was first read, then restart the "
            "query. If it is permanently gone, `sluice waive CHECKPOINT` shows which part of a "
            "batch cannot be read again. With --yes it gives that up, and the query continues.",
        )
