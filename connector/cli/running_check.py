"""Before a command changes what a query will do: is somebody at work on its state?

Not here: who holds a state (`views/owner.py`), and the changes.
"""

from __future__ import annotations

import getpass
import socket

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import FencedError
from ..views.owner import owner_of


def refuse_if_held(store: StateStore, *, force: bool) -> None:
    """Raise while a query holds the epoch of a state, or may hold it.

    Raises:
        FencedError: its process runs; or it has given signs of life where it cannot be seen, and
            `force` is not given.
    """
    owner = owner_of(store)
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
            "Run the command where the query runs, wait until its last heartbeat is three minutes "
            "old, or make sure that the query is stopped and add --force.",
        )


def who_and_where() -> tuple[str, str]:
    """The user and the host, for the record."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    return user, socket.gethostname()
