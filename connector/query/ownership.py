"""A start that finds a live owner of its state does not claim it: it is refused, or waits.

An owner lives while its process runs on this host (some seconds are allowed for its death), or as
long as it gives signs of life where processes are not visible. The look and the claim are one: a
claim takes the number after the owner that was looked at, so a start that comes between has taken
that number.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Final

from ...checkpoint_meta.documents.epochs import claim_epoch
from ...checkpoint_meta.documents.heartbeat import ALIVE_SECONDS, is_beating, newest_beat
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.coordinator.start_position import TAKE_OVER
from ...errors import QueryRunningError
from ..options.model import parse_options
from ..source.state_location import open_state
from .owner import Owner, owner_of
from .query_ends import USUAL_TERMS, StartTerms

log = logging.getLogger(__name__)

_PAUSE: Final = 1.0
"""Seconds between two looks at an owner."""

_DYING_SECONDS: Final = 5.0
"""A process that was killed, with much memory or below a JVM that was, is seen for so long."""


class Ownership:
    """Whether a start may claim a state."""

    def __init__(
        self,
        store: StateStore,
        terms: StartTerms = USUAL_TERMS,
        *,
        is_host: bool = True,
        wait: Callable[[float], None] = time.sleep,
        progress: Callable[[], object] = lambda: None,
    ) -> None:
        """Touches nothing.

        Args:
            store: the state directory.
            terms: what a live owner means.
            is_host: this process may run several queries. One of Spark's has a single source: it
                has left what it claimed before.
            wait: waits some seconds.
            progress: what the host has read of its log before it claims. If it is another value
                after a wait, the host has to read its log again.
        """
        self.store = self._store = store
        self._is_host = is_host
        self._patience, self._take_over = terms.patience, terms.take_over
        self._wait, self._progress = wait, progress
        self._epoch: int | None = None
        """The owner that was looked at, and does not live."""

    def await_end(self) -> None:
        """Return when no query owns the state.

        Raises:
            QueryRunningError: one does, and `patience` is over.
        """
        owner = owner_of(self._store)
        if self._lives(owner) and not self._take_over:
            owner = self._await_end_of(owner)
        self._epoch = owner.epoch

    def check(self, newest: int) -> None:
        """Check, at the claim, that `newest` is still what was looked at.

        Raises:
            QueryRunningError: another query has come between.
        """
        if self._epoch is None:
            self.await_end()
        if newest != self._epoch and not self._take_over:
            raise self._error(owner_of(self._store), "another run of this query has just started")

    def _await_end_of(self, owner: Owner) -> Owner:
        before, first_look = self._progress(), time.monotonic()
        beat, silent_since = newest_beat(self._store, owner.epoch), first_look
        is_seen = owner.runs == "running" and owner.pid != os.getpid()
        patience = max(self._patience, _DYING_SECONDS if is_seen else 0.0)
        if self._patience:
            log.warning(
                "%s: waiting up to %.0f s for the owner to end: %s",
                self._store.location,
                self._patience,
                owner,
            )
        while time.monotonic() - first_look < patience:
            self._wait(_PAUSE)
            newest = owner_of(self._store)
            latest_beat = newest_beat(self._store, newest.epoch)
            if (newest.epoch, latest_beat) != (owner.epoch, beat):
                owner, beat, silent_since = newest, latest_beat, time.monotonic()
            # By this clock: that of the other host may differ.
            is_silent = time.monotonic() - silent_since > ALIVE_SECONDS
            if not self._lives(newest) or (newest.runs == "unknown" and is_silent):
                if self._progress() != before:
                    raise self._error(newest, "another run of this query has just ended")
                return newest
        raise self._error(owner, "another run of this query is at work")

    def _lives(self, owner: Owner) -> bool:
        if owner.epoch and not owner.pid:
            # A damaged claim says no process.
            return is_beating(self._store, owner.epoch)
        is_own = owner.runs == "running" and owner.pid == os.getpid()
        return owner.runs in ("running", "unknown") and (self._is_host or not is_own)

    def _error(self, owner: Owner, what: str) -> QueryRunningError:
        waited = f", after {self._patience:.0f} s" if self._patience else ""
        return QueryRunningError(
            what,
            self._store.location,
            f"{owner}{waited}",
            "no other run of this query",
            "Nothing was claimed, and nothing is lost. Start again when it has ended, or let "
            "`sluice run` wait with --wait 10m. If it must not go on, stop it, or add --take-over "
            "(in Spark: `sluice take-over` with the checkpoint), and it ends with an error.",
        )


def await_owner(options: Mapping[str, str], terms: StartTerms) -> None:
    """Do for a query of Spark what an `Ownership` of these terms does at the claim.

    Raises:
        QueryRunningError: another run owns the state, and the `terms` are to leave it alone.
    """
    store = open_state(parse_options(options, streaming=True, names_format=True))
    Ownership(store, terms).await_end()
    if terms.take_over:
        take_over(store)


def take_over(store: StateStore) -> int:
    """Claim a state for no query: its owner ends, and the next start finds none.

    A crash after the claim leaves a state that any start may claim.
    """
    return claim_epoch(store, TAKE_OVER)
