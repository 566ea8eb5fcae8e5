"""Who holds the epoch of a state directory, and whether that query runs: what can be known of it.

Not here: claiming (`checkpoint_meta/documents/epochs.py`).
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Literal

from ...checkpoint_meta.documents.epochs import newest_epoch
from ...checkpoint_meta.documents.layout import epoch_object
from ...checkpoint_meta.stores.contract import StateStore

Life = Literal["running", "gone", "unknown", "nobody"]


@dataclass(frozen=True)
class Owner:
    """The newest incarnation of the coordinator."""

    epoch: int
    host: str
    pid: int
    runs: Life
    """`running` and `gone` are known only of processes of this host."""

    def __str__(self) -> str:
        if not self.epoch:
            return "nobody has ever claimed it"
        who = f"process {self.pid} on {self.host}" if self.pid else "a claim that cannot be read"
        what = {
            "running": "it runs",
            "gone": "it does not run any more",
            "unknown": "another host: whether it runs cannot be seen from here",
            "nobody": "claimed by the command line, for no query",
        }
        return f"epoch {self.epoch}, {who}: {what[self.runs]}"


def owner_of(store: StateStore) -> Owner:
    """The newest claim; one that cannot be read counts by its name."""
    epoch = newest_epoch(store)
    if not epoch:
        return Owner(0, "", 0, "nobody")
    try:
        claim = json.loads(store.read(epoch_object(epoch)))
        host, pid = str(claim["host"]), int(claim["pid"])
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return Owner(epoch, "", 0, "unknown")
    if claim.get("purpose"):
        return Owner(epoch, host, pid, "nobody")
    return Owner(epoch, host, pid, _life(host, pid))


def _life(host: str, pid: int) -> Life:
    if host != socket.gethostname():
        return "unknown"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "running"
    return "running"
