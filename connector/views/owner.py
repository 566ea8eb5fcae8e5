"""Who holds the epoch of a state directory, and whether that query runs: what can be known of it.

Not here: claiming (`checkpoint_meta/documents/epochs.py`), and how that is known
(`checkpoint_meta/documents/heartbeat.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...checkpoint_meta.documents.epochs import claim_of, newest_epoch
from ...checkpoint_meta.documents.heartbeat import Life, look_at
from ...checkpoint_meta.stores.contract import StateStore


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
        return Owner(epoch, "", 0, "unknown")
