"""The records of a query next to its checkpoints: its seed, its two ends, its runs, its schema.

The seed says that a tool has prepared a state directory for a new query. It names a checkpoint of
this directory after which a query begins whose Spark checkpoint is new. It is written last and
once: without it, what a tool has written is no seed. It stays, and says who has made this state of
what.

The ends are what the query reads and the table that it writes to, recorded so that another call is
noticed. The input is recorded before the first task of a start runs, and the table when it has a
batch. A crash before the second leaves a state without a table: the next start records it.

A schema that the user has not given is stored version by version, an immutable object each. A
change to the newest one creates the next one, and finds out if another one has.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field

from ...errors import SchemaMismatchError, SluiceError, first_line
from ..stores.contract import StateStore, delete_permitted, next_created
from .checksummed_json import Document, OfIdentity
from .layout import ENDS, FORMAT, RUNS, SCHEMAS, SEED, numbered, numbers_in

log = logging.getLogger(__name__)

_RUNS_KEPT: Final = 20
"""Records of runs that stay."""


class Seed(OfIdentity):
    """The record; a query begins after its checkpoint."""

    noun = "the record of how this state was created"
    remedy = "Restore the object from a copy, or create the state again in another directory."

    purpose: str
    """The tool that has made it: that of the epoch's claim."""

    origin: Mapping[str, Any]
    """The place that the state was taken from."""

    counts: Mapping[str, int]
    written: int
    """Wall clock, microseconds since the epoch."""

    host: str
    pid: int
    user: str


def publish_seed(store: StateStore, seed: Seed) -> None:
    """Make it count: what it names is durable.

    Raises:
        FileExistsError: the directory has a seed already.
    """
    # Create-only: of two tools that prepare one directory the second one fails.
    store.publish(SEED, seed.to_bytes())


def find_seed(store: StateStore) -> Seed | None:
    """The seed of a directory, if it has one.

    Raises:
        StateVersionError: written by a newer release.
        StateCorruptError: it is damaged.
    """
    try:
        return Seed.read(store, SEED)
    except FileNotFoundError:
        return None


class QueryEnds(Document):
    """The two ends of a query."""

    noun = "the record of a query's input and table"
    remedy = (
        "Restore the object from a copy. Or delete it, see that the call names the right input and "
        "table, and start again: they are recorded again."
    )

    input: Sequence[str] = ()
    """The loaded paths, absolute, as the names of their files begin."""

    table: str = ""
    """The identity of the table; empty if the sink has none."""

    file_column: str = ""
    """The column of the table with the key of each row's file; empty if the query writes none."""

    any_table: bool = False
    """True until the table has a batch, if the user has said that it may lack earlier batches, or
    have rows of this input by another query.
    """


def recorded_ends(store: StateStore) -> QueryEnds:
    """The newest record; an empty one before the first."""
    return QueryEnds.newest(store, ENDS) or QueryEnds()


def record_ends(store: StateStore, ends: QueryEnds) -> None:
    """Create a record, unless it is the newest one."""

    def created() -> None:
        numbers = numbers_in(store.list(ENDS))
        if numbers and QueryEnds.read(store, numbered(ENDS, numbers[-1])) == ends:
            return
        number = max(numbers, default=0) + 1
        store.publish(numbered(ENDS, number), ends.to_bytes())

    next_created(store, ENDS, created)


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
    """Deaths of processes whose task was repeated, such as "signal 9"."""

    failing_upkeep: Mapping[str, str] = {}
    """Work on the state that fails and is tried again, with its error."""

    def publish(self, store: StateStore) -> None:
        """Write the record next to the state, if there is one; a failure is logged.

        A crash before it leaves a run without a record, and one after it a record too many. The
        query does not read records.
        """
        try:
            store.read(FORMAT)
            earlier = numbers_in(store.list(RUNS))
            # After the others, also where the clock was ahead when they ended.
            number = max(int(self.ended * 1e6), max(earlier, default=0) + 1)
            # A run that ends in the same microsecond has nothing to add.
            with contextlib.suppress(FileExistsError):
                store.publish(_run(number), self.to_bytes())
            delete_permitted(store, map(_run, earlier[: 1 - _RUNS_KEPT]))
        except FileNotFoundError:
            return  # Nothing was begun, so nobody looks here.
        except (SluiceError, OSError) as error:
            log.warning("%s: the record of the run was not written: %s", store.location, error)


def last_runs(store: StateStore) -> list[RunSummary]:
    """The newest records that can be read, back to one that claimed the state; newest first."""
    runs: list[RunSummary] = []
    for number in reversed(numbers_in(store.list(RUNS))):
        with contextlib.suppress(SluiceError, FileNotFoundError):
            runs.append(RunSummary.read(store, _run(number)))
            if runs[-1].epoch:
                break
    return runs


def _run(number: int) -> str:
    return f"{RUNS}/{number:020d}.json"


class StoredSchema(Document):
    """One version of the schema."""

    noun = "a stored schema"
    remedy = "Restore the object from a copy, or delete it to use the previous version."

    version: int
    struct: Mapping[str, Any] = Field(alias="schema")
    """Spark's JSON of the struct."""

    reason: str = ""
    """The reason of the version, for people."""


class SchemaHistory:
    """The versions in one state directory."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def latest(self) -> StoredSchema | None:
        """The newest version; None before the first.

        Raises:
            StateVersionError: it was written by a newer release.
            StateCorruptError: its bytes do not add up.
        """
        return StoredSchema.newest(self._store, SCHEMAS)

    def version(self, number: int) -> StoredSchema:
        """The version of this number, which exists; raises what `latest` does."""
        return StoredSchema.read(self._store, numbered(SCHEMAS, number))

    def all(self) -> list[StoredSchema]:
        """Every version, the oldest first; raises what `latest` does."""
        return [self.version(n) for n in numbers_in(self._store.list(SCHEMAS))]

    def grow(
        self, change: Callable[[StoredSchema | None], tuple[Mapping[str, Any], str]]
    ) -> StoredSchema:
        """The newest version after `change`, which is stored if it makes a difference.

        Args:
            change: from the newest version (None before the first) to a schema and the reason for
                it. Called again on what somebody else has stored meanwhile, so that nobody's
                columns are lost.
        """

        def grown() -> StoredSchema:
            before = self.latest()
            schema, reason = change(before)
            if before is not None and before.struct == schema:
                return before
            version = 0 if before is None else before.version + 1
            stored = StoredSchema(version=version, schema=schema, reason=reason)
            try:
                document = stored.to_bytes()
            except ValueError as error:
                raise SchemaMismatchError(
                    "a column is nested too deeply",
                    self._store.location,
                    first_line(error),
                    "a schema that can be stored",
                    "Read that column as text, as in schemaHints='name string'.",
                ) from error
            # The number is the lock: of two writers one fails, and grows the other's version
            # instead.
            self._store.publish(numbered(SCHEMAS, version), document)
            return stored

        return next_created(self._store, SCHEMAS, grown)
