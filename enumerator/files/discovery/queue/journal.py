"""The journal of a bucket as a queue: S3 Metadata writes each PUT and DELETE into an Iceberg table.

Nothing in it is hidden, held or deleted, so there are no receipts: what counts is the snapshot up
to which all objects are in checkpoints, and that one is part of each checkpoint.
"""

from __future__ import annotations

import errno
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from .....errors import is_installed, not_installed
from .api import AnnouncedObject, EventQueue, Message, announced

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

LOG: Final = logging.getLogger("pyspark_sluice.discovery")

SCHEME: Final = "iceberg:"

_AT_ONCE: Final = 1_000
"""Objects that one call returns."""

_PAUSE: Final = 1.0
"""Seconds between two looks at the table that wait for a snapshot."""

_COLUMNS: Final = ("bucket", "key", "sequence_number", "record_type", "version_id")


class JournalQueue(EventQueue):
    """A journal table; an object is a message, whose receipt is the snapshot that told of it."""

    def __init__(self, url: str, _: Mapping[str, Any], visibility: int) -> None:
        """`url` is `iceberg:CATALOG.NAMESPACE.TABLE`; the catalog is configured for pyiceberg."""
        super().__init__(url, visibility)
        if not is_installed("pyiceberg"):
            reason = "the library for the journal is not installed"
            raise not_installed(reason, url, "pyiceberg", "tables")
        self._table: Table | None = None
        self._lock = threading.Lock()
        self._rows: Iterator[Message] = iter(())
        """The rest of the newest snapshot that was begun."""
        self._read = 0
        """That snapshot, and the one before it; 0 for none."""
        self._before = 0
        self._open: deque[tuple[int, set[str]]] = deque()
        """Snapshots from the oldest on, with the messages that are not deleted."""
        self._done = 0
        self._has_missed = False

    # What is part of a checkpoint ---------------------------------------------------------------

    @property
    @override
    def cursor(self) -> str:
        return str(self._done)

    @override
    def begin(self, cursor: str) -> None:
        table = self._refreshed()
        if cursor and _is_known(int(cursor), _chain(table)):
            self._done = self._read = int(cursor)
            return
        self._done = self._read = table.metadata.current_snapshot_id or 0
        if cursor:
            self._miss(int(cursor))

    @override
    def missed(self) -> bool:
        has_missed, self._has_missed = self._has_missed, False
        return has_missed

    def _miss(self, snapshot: int) -> None:
        reason = "%s has no snapshot %d any more: the path is listed once as a whole"
        LOG.warning(reason, self.url, snapshot)
        self._has_missed = True

    # The queue ----------------------------------------------------------------------------------

    @override
    def receive(self, wait: int) -> list[Message]:
        end = time.monotonic() + wait
        while True:
            with _as_os_errors(self.url):
                batch = self._next()
            left = end - time.monotonic()
            if batch or left <= 0:
                return batch
            time.sleep(min(_PAUSE, left))

    def _next(self) -> list[Message]:
        batch = self._taken()
        if batch:
            return batch
        table = self._refreshed()
        chain = _chain(table)
        if not _is_known(self._read, chain):
            self._miss(self._read)
            with self._lock:
                self._open.clear()
                self._read = self._done = table.metadata.current_snapshot_id or 0
            return []
        ids = [snapshot.snapshot_id for snapshot in chain]
        new = ids[: ids.index(self._read)] if self._read else ids
        if not new:
            return []
        scan = table.incremental_append_scan(
            selected_fields=_COLUMNS,
            from_snapshot_id_exclusive=self._read or None,
            to_snapshot_id_inclusive=new[0],
        )
        with self._lock:
            self._before, self._read = self._read, new[0]
            self._open.append((new[0], set()))
        self._rows = _messages(scan.to_arrow_batch_reader(), new[0])
        return self._taken()

    def _taken(self) -> list[Message]:
        try:
            batch = list(islice(self._rows, _AT_ONCE))
        except BaseException:
            # The next call begins behind the snapshot before again.
            with self._lock:
                self._read = self._before
                self._open.pop()
            raise
        with self._lock:
            if batch:
                self._open[-1][1].update(message.identity for message in batch)
            self._advance(is_whole=not batch)
        return batch

    def _advance(self, *, is_whole: bool) -> None:
        # The newest snapshot may have more than was taken.
        while self._open and not self._open[0][1] and (is_whole or len(self._open) > 1):
            self._done = self._open.popleft()[0]

    @override
    def delete(self, messages: Sequence[Message]) -> int:
        with self._lock:
            for message in messages:
                for _, identities in self._open:
                    identities.discard(message.identity)
            self._advance(is_whole=False)
        return len(messages)

    @override
    def keep(self, messages: Sequence[Message]) -> None:
        return

    @override
    def release(self, messages: Sequence[Message]) -> None:
        return

    @override
    def send(self, body: str) -> None:
        raise NotImplementedError

    @staticmethod
    @override
    def _announced_by(body: str) -> Iterator[AnnouncedObject]:
        yield AnnouncedObject(*json.loads(body))

    def _refreshed(self) -> Table:
        with _as_os_errors(self.url):
            if self._table is None:
                from pyiceberg.catalog import load_catalog

                catalog, _, name = self.url.removeprefix(SCHEME).partition(".")
                self._table = load_catalog(catalog).load_table(name)
            return self._table.refresh()


def _chain(table: Table) -> list[Snapshot]:
    """Return the snapshots that lead to the newest one, from that on."""
    # pyiceberg looks through all of them for each.
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    chain, number = [], table.metadata.current_snapshot_id
    while number is not None and (snapshot := by_id.get(number)) is not None:
        chain.append(snapshot)
        number = snapshot.parent_snapshot_id
    return chain


def _is_known(snapshot: int, chain: Sequence[Snapshot]) -> bool:
    """Return True if the table still has everything that came after this snapshot."""
    if snapshot == 0:
        return not chain or chain[-1].parent_snapshot_id is None
    return any(one.snapshot_id == snapshot for one in chain)


def _messages(batches: Any, snapshot: int) -> Iterator[Message]:
    """Yield the objects that were created and, by the same batch of rows, not deleted since."""
    for batch in batches:
        newest: dict[tuple[str, str], dict[str, Any]] = {}
        rows = batch.to_pylist()
        # For one key a later record has a greater number, as text.
        for row in sorted(rows, key=lambda row: str(row["sequence_number"])):
            if row["record_type"] != "UPDATE_METADATA":
                newest[row["bucket"], row["key"]] = row
        for (bucket, key), row in newest.items():
            # The deletion of one version may leave another one: the store is asked.
            if row["record_type"] == "DELETE" and not row["version_id"]:
                continue
            try:
                announced(bucket, key)
            except ValueError as error:
                LOG.warning("a record of the journal is passed over: %s", error)
                continue
            body = json.dumps([bucket, key])
            yield Message(f"{snapshot} {bucket}/{key}", str(snapshot), body)


@contextmanager
def _as_os_errors(where: str) -> Iterator[None]:
    from pyiceberg import exceptions

    try:
        yield
    except OSError:
        raise
    except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError) as error:
        raise FileNotFoundError(errno.ENOENT, str(error), where) from error
    except (exceptions.UnauthorizedError, exceptions.ForbiddenError) as error:
        raise PermissionError(errno.EACCES, str(error), where) from error
    except Exception as error:
        # Catalogs and clients of files have errors of their own.
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}", where) from error
