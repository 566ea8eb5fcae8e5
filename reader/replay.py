"""Whether an attempt follows what an earlier one of its batch has acknowledged, and the errors.

Not here: when that is asked (`task.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..checkpoint_meta.documents.reader_commit import ReaderCommit
from ..errors import ReplayError


@dataclass(frozen=True)
class Replay:
    """What one attempt has to repeat."""

    where: str
    shape: Mapping[str, Any]
    """What shapes rows now."""

    earlier: ReaderCommit | None
    """The commit of an earlier attempt; None for the first one, which may read as it likes."""

    def check_landing(self, *, lands: bool) -> None:
        """Refuse a batch that was first read with rows in data files and now without, or reversed.

        Raises:
            ReplayError: the option has changed in the middle of the batch.
        """
        if self.earlier is None or (self.earlier.landed is not None) == lands:
            return
        was = "rows went to Spark" if lands else "rows were written into data files"
        raise ReplayError(
            "this batch was first read without landAt"
            if lands
            else "this batch was first read with landAt, which is no longer set",
            self.where,
            f"a commit by which {was}",
            "the same option for the whole batch",
            (
                "Start the query with the earlier options until the batch has finished, then "
                "change them."
            ),
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
        remedy = (
            "Put the file back as it was when the batch was first read, then restart the "
            "query. If it is permanently gone, `sluice waive STATE` shows which part of the batch "
            "cannot be read again. With --yes it gives that up, and the query continues."
        )
        # Options are read as they were recorded; the schema is Spark's, and its plan is made.
        if counted.shape.get("schema") not in (None, self.shape.get("schema")):
            remedy = (
                "The schema is not what it was when the batch was first read: start the query "
                "with the earlier one until the batch has finished, then change it."
            )
        return ReplayError(
            "this attempt cannot repeat what an earlier attempt of the batch has acknowledged",
            self.where,
            found,
            expected,
            remedy,
        )
