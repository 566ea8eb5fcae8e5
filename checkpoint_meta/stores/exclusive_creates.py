"""Tries whether a store lets exactly one of several writers create an object.

Some servers that speak a known protocol ignore its conditions, others look first and write then:
these pass with one writer, and fail with several.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ...errors import StateError
from ..storage.contract import PROBE, Storage
from ..storage.open_storage import open_storage
from ..storage.storage_errors import may_pass
from .contract import RetryingStateStore, StateStore
from .open_store import StorageStateStore

_AT_ONCE: Final = 8

_AT_A_START: Final = 4

_passed: Final = set[tuple[int, Storage]]()
"""Process and storage; the storage of a bucket is one object for all places in it."""


def check_exclusive_creates(url: str, storage_options: Mapping[str, Any], kept: str) -> None:
    """Try it, once for each bucket in this process; local files and HDFS are known to do it.

    Args:
        url: where an object may be created; it is deleted again.
        storage_options: of the call.
        kept: what is kept there, for the error.

    Raises:
        StateError: several writers have created one object.
    """
    storage = open_storage(url, storage_options)[0]
    if storage.has_directories or (os.getpid(), storage) in _passed:
        return
    store = RetryingStateStore(StorageStateStore(url, storage_options))
    try:
        race(store, _AT_A_START)
    except AssertionError as error:
        raise StateError(
            "the store allowed an object to be created twice",
            store.location,
            str(error),
            "a create that fails if the object exists (If-None-Match: * on S3)",
            f"Keep {kept} on a store that honors conditional writes.",
        ) from error
    _passed.add((os.getpid(), storage))


def race(store: StateStore, writers: int = _AT_ONCE) -> str:
    """Create one object several times at once.

    Raises:
        AssertionError: not exactly one writer has created it.
    """
    name, is_away = probe_name(), False
    try:
        with ThreadPoolExecutor(writers) as pool:
            outcomes = list(pool.map(lambda at: created(store, name, b"%d" % at), range(writers)))
        content = store.read(name)
    except StateError as error:
        is_away = may_pass(error)
        raise
    finally:
        # Where nothing may be deleted, it stays, and listings leave out its name. A store that is
        # away is not waited for again.
        if not is_away:
            with contextlib.suppress(StateError):
                store.delete(name)
    winners = [at for at, won in enumerate(outcomes) if won]
    assert len(winners) == 1, f"{len(winners)} of {writers} learned that they had created it"
    assert content == b"%d" % winners[0], "the object has the content of a writer that did not win"
    return f"1 of {writers} at a time created it"


def created(store: StateStore, name: str, data: bytes) -> bool:
    """True if this call has created the object."""
    try:
        store.publish(name, data)
    except FileExistsError:
        return False
    return True


def probe_name() -> str:
    """Return a name that no object has."""
    return f"{PROBE}{uuid.uuid4().hex}"
