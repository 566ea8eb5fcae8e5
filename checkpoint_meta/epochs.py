"""Which incarnation of the coordinator owns a state directory.

An epoch is claimed create-only when a coordinator opens the state, so of two coordinators the one
with the higher epoch is the newer one, and the older one can find that out.

Not here: what the older one does then (the coordinator raises `FencedError`).
"""

from __future__ import annotations

import json
import os
import socket

from ..errors import FencedError, StateCorruptError
from .checkpoint import FORMAT_VERSION, newer_format
from .layout import EPOCHS, FORMAT, epoch_object
from .store import StateStore


def open_format(store: StateStore) -> None:
    """Check the directory's format version, and write it into a new directory.

    Raises:
        StateVersionError: the directory belongs to a newer release.
        StateCorruptError: FORMAT is not what a release writes.
    """
    where = f"{store.location}/{FORMAT}"
    document = json.dumps({"format": FORMAT_VERSION}, sort_keys=True) + "\n"
    try:
        found = store.read(FORMAT)
    except FileNotFoundError:
        try:
            store.publish(FORMAT, document.encode())
            return
        except FileExistsError:
            found = store.read(FORMAT)
    try:
        version = int(json.loads(found)["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateCorruptError(
            "the state directory's FORMAT is damaged",
            where,
            repr(found[:80]),
            document.strip(),
            "Check that the path is a Sluice state directory.",
        ) from error
    if version > FORMAT_VERSION:
        raise newer_format(where, version)


def claim_epoch(store: StateStore) -> int:
    """Claim the next epoch for this process; durable when this returns."""
    epoch = newest_epoch(store) + 1
    owner = {"format": FORMAT_VERSION, "host": socket.gethostname(), "pid": os.getpid()}
    while True:
        document = json.dumps({**owner, "epoch": epoch}, sort_keys=True) + "\n"
        try:
            store.publish(epoch_object(epoch), document.encode())
        except FileExistsError:
            epoch += 1
        else:
            return epoch


def newest_epoch(store: StateStore) -> int:
    """The highest epoch claimed so far, 0 in a new directory."""
    return max((int(leaf.split(".")[0]) for leaf in store.list(EPOCHS)), default=0)


def check_not_fenced(store: StateStore, epoch: int) -> None:
    """Raise if a newer incarnation has claimed the directory.

    Raises:
        FencedError: names both epochs and the newer owner.
    """
    newest = newest_epoch(store)
    if newest <= epoch:
        return
    owner = json.loads(store.read(epoch_object(newest)))
    raise FencedError(
        "another query has taken over this state directory",
        store.location,
        f"epoch {newest} claimed by process {owner.get('pid')} on {owner.get('host')}",
        f"epoch {epoch} (this query) to be the newest",
        "Two queries must not share a state: give each its own checkpointLocation. Two sluice "
        "sources in one query need distinct sourceName options.",
    )
