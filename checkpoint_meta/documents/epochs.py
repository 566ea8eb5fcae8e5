"""Which incarnation of the coordinator owns a state directory.

An epoch is claimed create-only when a coordinator opens the state, so of two coordinators the one
with the higher epoch is the newer one, and the older one can find that out. A directory that is
emptied, or restored from a backup, gives numbers away again: what owns it is a claim with the
owner's own nonce.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...errors import FencedError, StateCorruptError, StateError
from ..stores.contract import StateStore, delete_permitted, next_created
from .checkpoint import FORMAT_VERSION, newer_format
from .checksummed_json import with_checksum, without_checksum
from .heartbeat import ParentProcess, open_claims, this_process
from .layout import EPOCHS, FORMAT, numbered, numbers_in

KEPT: Final = 16
"""Claims that are kept, the newest; a superseded coordinator needs no more than one to know."""


def _format_document(version: int) -> bytes:
    return (json.dumps({"format": version}, sort_keys=True) + "\n").encode()


FORMAT_DOCUMENT: Final = _format_document(FORMAT_VERSION)
"""The object FORMAT of a state directory."""

LOG: Final = logging.getLogger("pyspark_sluice.state")


def open_format(store: StateStore) -> None:
    """Check the directory's format version, and write it into a new directory.

    Raises:
        StateVersionError: the directory belongs to a newer release.
        StateCorruptError: FORMAT is not what a release writes.
    """
    where = f"{store.location}/{FORMAT}"
    try:
        content = store.read(FORMAT)
    except FileNotFoundError:
        # A lost one is what it was: it is never made newer than what the directory was begun in.
        # Two coordinators may start in a new directory at once; the loser reads what the winner
        # wrote.
        claimed_format = _format_of_claims(store)
        content = claimed_format or FORMAT_DOCUMENT
        try:
            store.publish(FORMAT, content)
        except FileExistsError:
            content = store.read(FORMAT)
        else:
            if claimed_format:
                LOG.warning("%s is lost; restored from the claims", where)
    if FORMAT_DOCUMENT.startswith(content) and len(content) < len(FORMAT_DOCUMENT):
        # A copy that was interrupted; every checkpoint names its own version, too.
        LOG.warning("%s is truncated (%d bytes); completed from its beginning", where, len(content))
        content = FORMAT_DOCUMENT
    try:
        version = int(json.loads(content)["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateCorruptError(
            "the state directory's FORMAT is damaged",
            where,
            repr(content[:80]),
            FORMAT_DOCUMENT.decode().strip(),
            "Check that the path is a Sluice state directory.",
        ) from error
    if version > FORMAT_VERSION:
        raise newer_format(where, version, FORMAT_VERSION)


def _format_of_claims(store: StateStore) -> bytes:
    newest = newest_epoch(store)
    version = claim_of(store, newest).get("format") if newest else None
    return _format_document(version) if isinstance(version, int) else b""


def new_nonce() -> str:
    """Random text that identifies this claim."""
    return uuid.uuid4().hex


def claim_epoch(
    store: StateStore,
    purpose: str = "",
    nonce: str = "",
    sleep: Callable[[float], None] = time.sleep,
    *,
    check: Callable[[int], None] = lambda _: None,
    parent: ParentProcess | None = None,
) -> int:
    """Claim the next epoch for this process; durable when this returns.

    Args:
        store: the state directory.
        purpose: what a tool claims it for; empty for a query.
        nonce: by which the claimant recognizes its claim later.
        sleep: between two tries.
        check: called before each try with the newest epoch, and raises if it must not be
            superseded. A claim that comes between is seen: the number is taken by then.
        parent: the process without which this one is of no use.

    Raises:
        StateError: the store let the claim be written over, or no number could be claimed.
    """
    nonce = nonce or new_nonce()

    def claimed() -> int:
        newest = newest_epoch(store)
        check(newest)
        epoch = newest + 1
        store.publish(numbered(EPOCHS, epoch), _claim(store, epoch, purpose, nonce, parent))
        # Superseded epochs are deleted, so a number that was free may be one of the past.
        if newest_epoch(store) >= epoch + KEPT:
            raise FileExistsError(numbered(EPOCHS, epoch))
        return epoch

    epoch = next_created(store, EPOCHS, claimed, sleep)
    open_claims.add(nonce)
    _check_exclusive(store, epoch)
    # Last, since a crash leaves only claims too many, which the next claimant deletes.
    older = [old for old in numbers_in(store.list(EPOCHS)) if old <= epoch - KEPT]
    delete_permitted(store, [numbered(EPOCHS, old) for old in older])
    return epoch


def _claim(
    store: StateStore,
    epoch: int,
    purpose: str = "",
    nonce: str = "",
    parent: ParentProcess | None = None,
) -> bytes:
    # Without the nonce two threads of one process could take one another's claim for their own
    # whose answer was lost.
    document = {
        "format": FORMAT_VERSION,
        **this_process(store.location),
        "nonce": nonce or new_nonce(),
        "epoch": epoch,
        "claimed": time.time(),
        **({"purpose": purpose} if purpose else {}),
        **({"parent": parent} if parent else {}),
    }
    return with_checksum(document)


_exclusive: Final = set[int]()
"""The media on which a second creation has failed in this process."""


def _check_exclusive(store: StateStore, epoch: int) -> None:
    # Some servers that speak a known protocol ignore its conditions.
    medium = store.medium()
    if medium in _exclusive:
        return
    try:
        store.publish(numbered(EPOCHS, epoch), _claim(store, epoch))
    except FileExistsError:
        if medium is not None:
            _exclusive.add(medium)
        return
    raise StateError(
        "the state store allowed an object to be created twice",
        f"{store.location}/{numbered(EPOCHS, epoch)}",
        "no error at the second creation of an epoch",
        "a create that fails if the object exists (If-None-Match: * on S3)",
        "Point stateLocation at a store that honours conditional writes.",
    )


def newest_epoch(store: StateStore, before: int = 0) -> int:
    """The highest epoch claimed so far, 0 in a new directory; with `before`, the one below that."""
    return max(
        (epoch for epoch in numbers_in(store.list(EPOCHS)) if not before or epoch < before),
        default=0,
    )


def claim_of(store: StateStore, epoch: int) -> Mapping[str, Any]:
    """Read the claim of `epoch`; empty where it cannot be read. It counts by its name."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return without_checksum(store.read(numbered(EPOCHS, epoch)))
    return {}


def _is_ours(store: StateStore, epoch: int, nonce: str, *, is_newest: bool) -> bool:
    try:
        return without_checksum(store.read(numbered(EPOCHS, epoch))).get("nonce") == nonce
    except FileNotFoundError:
        return False
    except ValueError:
        return is_newest  # A damaged claim counts by its name, see FORMAT.md.


def purpose_of(store: StateStore, epoch: int) -> str:
    """Return what a tool claimed `epoch` for; empty for a query, and where that is unreadable."""
    return str(claim_of(store, epoch).get("purpose", ""))


def check_not_fenced(store: StateStore, epoch: int, nonce: str = "") -> None:
    """Raise unless the claim of `epoch` is the newest, and the claimant's own.

    Args:
        store: the state directory.
        epoch: what was claimed.
        nonce: what it was claimed with; empty where only numbers can be compared.

    Raises:
        FencedError: names both epochs and the newer owner.
    """
    newest = newest_epoch(store)
    if newest <= epoch and not nonce:
        return
    # An old listing may not show the claim yet, or still show it where it is gone.
    if newest <= epoch and _is_ours(store, epoch, nonce, is_newest=newest == epoch):
        return
    claim = claim_of(store, max(newest, epoch))
    owner = "a query whose claim cannot be read"
    if {"pid", "host"} <= claim.keys():
        owner = f"process {claim['pid']} on {claim['host']}"
    taken = newest > epoch or bool(claim)  # Else the claim is gone.
    raise FencedError(
        "another query has taken over this state directory"
        if taken
        else "this query's claim is no longer in the state directory",
        store.location,
        f"epoch {max(newest, epoch)} claimed by {owner}" if taken else f"no claim of epoch {epoch}",
        f"epoch {epoch} (this query) to be the newest",
        "One query was started twice: stop one of the two, or wait for it. Two different queries "
        "must not share a state, and two sluice sources in one query need distinct sourceName "
        "options."
        if taken
        else "The directory was deleted, or restored from a backup, while this query ran. Start "
        "the query again.",
    )
