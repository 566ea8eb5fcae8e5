"""The record of one run of a query: the amounts that it read, what it left out, and its end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from ...errors import SluiceError
from ..stores.contract import StateStore, delete_permitted
from .checksummed_json import Document
from .layout import FORMAT, RUNS, numbers_in

log = logging.getLogger(__name__)

_KEPT: Final = 20
"""Records that stay."""


class RunSummary(Document):
    """A run from its start to its end, with each new query that a change of the schema begins."""

    noun = "the record of a run"

    epoch: int
    """The newest claim of the run; 0 if it ended before it claimed the state."""

    newest_epoch: int
    """The newest claim of the state, of any query, at the end of the run."""

    host: str
    pid: int

    began: float
    ended: float
    """Seconds since 1970."""

    end: Literal["finished", "stopped", "failed"]
    error: str = ""
    """The class and the text of the error that ended it."""

    batches: int = 0
    splits: int = 0
    row_count: int = 0
    """Not called as in the line of a batch: programs that add those up would count rows twice."""

    files: int = 0
    bytes: int = 0
    """The size of the data files that were added to the table."""

    left_out: Mapping[str, int] = {}
    """Files that the last listing found and did not take, by reason."""

    skipped_files: int = 0
    """Files that readers skipped, because an option says so: they are deleted or unreadable."""

    dropped_records: int = 0
    waiting: Mapping[str, int] = {}
    """`files`, `splits` and `bytes` that are in no batch yet."""

    quarantined: int = 0
    """Splits in the quarantine, those of earlier runs included."""

    new_columns: Sequence[str] = ()
    """Columns and fields that the schema gained during the run, with their types."""

    dead_workers: Sequence[str] = ()
    """How each process of a task died whose task was repeated."""

    failing_upkeep: Mapping[str, str] = {}
    """Work on the state that fails and is tried again, with its error."""

    def publish(self, store: StateStore) -> None:
        """Write the record next to the state, if there is one; a failure is logged.

        A crash before it leaves a run without a record, and one after it a record too many. The
        query does not read records.
        """
        try:
            store.read(FORMAT)
            # A run that ends in the same microsecond has nothing to add.
            with contextlib.suppress(FileExistsError):
                store.publish(_name(int(self.ended * 1e6)), self.to_bytes())
            delete_permitted(store, map(_name, numbers_in(store.list(RUNS))[:-_KEPT]))
        except FileNotFoundError:
            return  # Nothing was begun, so nobody looks here.
        except (SluiceError, OSError) as error:
            log.warning("%s: the record of the run was not written: %s", store.location, error)


def last_runs(store: StateStore) -> list[RunSummary]:
    """The newest records that can be read, back to one that claimed the state; newest first."""
    runs: list[RunSummary] = []
    for number in reversed(numbers_in(store.list(RUNS))):
        with contextlib.suppress(SluiceError, FileNotFoundError):
            runs.append(RunSummary.read(store, _name(number)))
            if runs[-1].epoch:
                break
    return runs


def _name(number: int) -> str:
    return f"{RUNS}/{number:020d}.json"
