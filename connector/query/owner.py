"""Who holds the epoch of a state directory, and whether that query runs: what can be known of it.

A command that changes what a query will do asks first (`refuse_if_held`).
"""

from __future__ import annotations

import getpass
import socket
from dataclasses import dataclass

from ...checkpoint_meta.documents.epochs import claim_epoch, claim_of, newest_epoch
from ...checkpoint_meta.documents.heartbeat import Life, look_at
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.coordinator.start_position import TAKE_OVER
from ...errors import FencedError


@dataclass(frozen=True)
class Owner:
    """The newest incarnation of the coordinator."""

    epoch: int
    host: str
    pid: int
    runs: Life
    evidence: str = ""

    def __str__(self) -> str:
        if not self.epoch:
            return "no query has ever claimed it"
        who = f"process {self.pid} on {self.host}" if self.pid else "a claim that cannot be read"
        return f"epoch {self.epoch}, {who}" + (f": {self.evidence}" if self.evidence else "")


def owner_of(store: StateStore) -> Owner:
    """The newest claim; one that cannot be read counts by its name."""
    epoch = newest_epoch(store)
    if not epoch:
        return Owner(0, "", 0, "nobody")
    try:
        claim = claim_of(store, epoch)
        sign = look_at(store, claim)
        return Owner(epoch, str(claim["host"]), int(claim["pid"]), sign.life, sign.evidence)
    except (ValueError, LookupError, TypeError):
        # A damaged claim still holds the epoch that its name says.
        return Owner(epoch, "", 0, "unknown")


def refuse_if_held(store: StateStore, *, force: bool) -> None:
    """Raise while a query holds the epoch of a state, or may hold it.

    Raises:
        FencedError: its process runs; or it has given signs of life where it cannot be seen, and
            `force` is not given.
    """
    owner = owner_of(store)
    # Here `force` has no effect: it is for doubt, and its process has been seen.
    if owner.runs == "running":
        raise FencedError(
            "a query is using this state",
            store.location,
            str(owner),
            "a stopped query",
            "Stop the query, then repeat the command.",
        )
    if owner.runs == "unknown" and not force:
        raise FencedError(
            "a query may own this state",
            store.location,
            str(owner),
            "a query that is known to be stopped",
            "Run the command where the query runs, wait until its last heartbeat is a minute "
            "old, or make sure that the query is stopped and add --force.",
        )


def who_and_where() -> tuple[str, str]:
    """The user and the host, for the record."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # In a container the number of the user often has no name.
        user = ""
    return user, socket.gethostname()


def take_over(store: StateStore) -> int:
    """Claim a state for no query: its owner ends, and the next start finds none.

    A crash after the claim leaves a state that any start may claim.
    """
    return claim_epoch(store, TAKE_OVER)
