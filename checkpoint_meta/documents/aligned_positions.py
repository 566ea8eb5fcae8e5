"""How the sources of one query tell each other how far they are in event time.

Each publishes its own position, and reads those of the others. These are messages of a run and no
state: no source hands anything out before all sources of its run have published theirs, so what a
dead run has left is replaced before it counts.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field

from ...errors import StateError
from ..stores.contract import StateStore, next_created
from .checksummed_json import Document
from .layout import ALIGNMENT

_KEPT: Final = 2
"""Newest objects of a source that stay: who has listed one can still read it after the next."""


# A try fails only if a source published twice between our listing and our read.
_TRIES: Final = 20

_LOOKS: Final = 10
"""Looks that it takes at least to find a source idle: a process that was paused has not watched."""


class _Position(Document):
    noun = "the position of an aligned source"
    remedy = "Delete it while no query runs: the source publishes its position when it starts."

    position: Annotated[int | None, Field(strict=True)]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another source, as far as it has said."""

    name: str
    position: int | None
    """Microseconds since the epoch: it has handed out all files before; None: all there are."""

    leaf: str
    unchanged: float = 0.0
    """Seconds for which this process has watched this message, by its own clock."""


class AlignedPositions:
    """The positions of one group; used by one source, by one thread at a time."""

    def __init__(
        self,
        store: StateStore,
        group: str,
        source: str,
        idle_after: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Touches nothing.

        Args:
            store: the directory that the state directories of all sources are in.
            group: the name that they have in common.
            source: the name of this one.
            idle_after: seconds without news after which another one is idle.
            clock: this process's own; those of others are never compared with it.
        """
        self.group = group
        self.idle_after = idle_after
        self.clock = clock
        self._looked_at = clock()
        self._store = store
        self._folder = f"{ALIGNMENT}/{group}"
        self._source = source
        self._peers: dict[str, Peer] = {}

    def is_idle(self, peer: Peer) -> bool:
        """True if it has said nothing for so long that it holds no other back."""
        return peer.unchanged >= self.idle_after

    def publish(self, position: int | None) -> None:
        """Tell the others. The message before stays for who is about to read it.

        A crash before it leaves the old message, one after it an old message too many, which the
        next one deletes.
        """

        def create() -> list[str]:
            own = self._leaves().get(self._source, [])
            # Above what an earlier incarnation left: the newest message is the one that counts.
            number = int(own[-1].removesuffix(".json").rpartition("-")[2]) if own else 0
            leaf = f"{self._source}-{number + 1:010d}.json"
            self._store.publish(f"{self._folder}/{leaf}", _Position(position=position).to_bytes())
            return [*own, leaf]

        # An older incarnation of this source may not have noticed yet that it is one.
        for old in next_created(self._store, self._folder, create)[:-_KEPT]:
            self._store.delete(f"{self._folder}/{old}")

    def look(self) -> tuple[Peer, ...]:
        """The others of the group: one listing, and one read for each new message."""
        for _ in range(_TRIES):
            newest = {name: leaves[-1] for name, leaves in self._leaves().items()}
            newest.pop(self._source, None)
            # Otherwise it was replaced twice since it was listed.
            with contextlib.suppress(FileNotFoundError):
                self._peers = {name: self._peer(name, leaf) for name, leaf in newest.items()}
                self._looked_at = self.clock()
                return tuple(self._peers.values())
        raise StateError(
            "the position of an aligned source cannot be read",
            f"{self._store.location}/{self._folder}",
            f"objects that were listed but missing, {_TRIES} times in a row: {newest}",
            "a listing that matches the stored objects",
            "Check the state directory, then restart. Nothing is lost.",
        )

    def _peer(self, name: str, leaf: str) -> Peer:
        peer = self._peers.get(name)
        if peer is not None and peer.leaf == leaf:
            # The message does not change while we are suspended, so a long gap counts as one look
            # only.
            watched = min(self.clock() - self._looked_at, self.idle_after / _LOOKS)
            return replace(peer, unchanged=peer.unchanged + watched)
        return Peer(name, _Position.read(self._store, f"{self._folder}/{leaf}").position, leaf)

    def _leaves(self) -> Mapping[str, list[str]]:
        """Source -> its messages, oldest first."""
        leaves: dict[str, list[str]] = {}
        for leaf in sorted(self._store.list(self._folder)):
            # A sourceName may contain hyphens, a number cannot.
            name, _, number = leaf.removesuffix(".json").rpartition("-")
            if leaf.endswith(".json") and name and number.isdecimal():
                leaves.setdefault(name, []).append(leaf)
        return leaves
