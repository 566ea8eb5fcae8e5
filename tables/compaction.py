"""Guards of a compaction: one at a time for a table, and only with a library that refuses a second.

From 1.6.4 on, deltalake lets a compaction pass that removes files which another one has removed
meanwhile: each row of these files is then in the table twice.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa

from ..checkpoint_meta.documents.epochs import claim_epoch, claim_of
from ..checkpoint_meta.documents.heartbeat import Heartbeat, look_at
from ..checkpoint_meta.documents.layout import EPOCHS, HEARTBEATS, numbered, numbers_in
from ..checkpoint_meta.stores.contract import StateStore
from ..checkpoint_meta.stores.open_store import open_store
from ..errors import TableError

_CLAIMS: Final = "_sluice_compaction"
"""Directory below a table with the claims of its compactions; readers of tables leave it out."""


@contextmanager
def one_compaction(table: str, storage_options: Mapping[str, Any]) -> Iterator[None]:
    """Hold the claim to compact a table, or refuse.

    Of two that begin at once, the one with the lower claim works. A process that is killed leaves
    its claim, which nothing heeds once the process is known to be gone.

    Raises:
        TableError: another compaction of Sluice works, or may work; or the library is unsafe.
    """
    check_library()
    store = open_store(f"{table.rstrip('/')}/{_CLAIMS}", storage_options)
    own, ended = claim_epoch(store), Event()
    _forget_beats(store, own)
    # Other hosts see by it that this one is at work.
    heartbeat = Heartbeat(store, own, time.time)
    heartbeat.beat()
    beating = Thread(target=_beat, args=(heartbeat, ended), daemon=True)
    beating.start()
    try:
        for number in numbers_in(store.list(EPOCHS)):
            if number < own:
                _check_gone(store, number, table)
        yield
    finally:
        ended.set()
        beating.join()
        _forget_beats(store, own)
        store.delete(numbered(EPOCHS, own))


def _forget_beats(store: StateStore, number: int) -> None:
    # The number of a claim that is gone is used again.
    for leaf in store.list(HEARTBEATS):
        if leaf.startswith(f"{number:010d}-"):
            store.delete(f"{HEARTBEATS}/{leaf}")


def _beat(heartbeat: Heartbeat, ended: Event) -> None:
    while not ended.wait(1.0):
        with suppress(OSError):
            heartbeat.beat()


def _check_gone(store: StateStore, number: int, table: str) -> None:
    try:
        sign = look_at(store, claim_of(store, number))
    except FileNotFoundError:
        return  # It has finished.
    if sign.life != "gone":
        raise TableError(
            "another compaction of the table is at work",
            table,
            f"{store.location}/{numbered(EPOCHS, number)}: {sign.evidence or sign.life}",
            "one compaction of a table at a time",
            "Nothing has changed. Run the command again when the other one has finished. If its "
            "process is gone, delete that object.",
        )
    store.delete(numbered(EPOCHS, number))


@cache
def check_library() -> None:
    """Check with a tiny table that the library refuses the second of two compactions.

    Raises:
        TableError: it does not.
    """
    import deltalake
    from deltalake.exceptions import DeltaError

    with tempfile.TemporaryDirectory() as table:
        for number in range(2):
            rows = pa.table({"id": pa.array([number], pa.int64())})
            deltalake.write_deltalake(table, rows, mode="append")
        first, second = deltalake.DeltaTable(table), deltalake.DeltaTable(table)
        first.optimize.compact()
        try:
            second.optimize.compact()
        except DeltaError:
            return
    raise TableError(
        "this release of deltalake doubles rows if two compactions meet",
        "",
        f"deltalake {deltalake.__version__}, which lets the second compaction pass",
        "a release that refuses it, such as 1.6.3",
        "Nothing has changed. Install another release: pip install 'deltalake<1.6.4'. Only "
        "compaction needs it.",
    )
