"""A query that begins where Spark has no offset, over a state that has been read from.

Not here: queries that go on (`restore.py`).
"""

from __future__ import annotations

from ..checkpoint_meta.reader_commit import ReaderCommits
from ..checkpoint_meta.state_store import StateStore
from ..errors import StateError


def check_fresh_start(store: StateStore) -> None:
    """Raise if any reader has ever acknowledged a checkpoint of this state.

    Tasks run only after Spark has written down what they read. So where there is a reader commit,
    Spark knew of its checkpoint, and a query that begins anew has lost that knowledge or never
    had it. Checkpoints without any are harmless: a driver that died before its first batch ran.

    Raises:
        StateError: names the newest checkpoint that was read, and the options that permit it.
    """
    newest = ReaderCommits(store).newest_acknowledged()
    if newest is None:
        return
    raise StateError(
        "Spark's checkpoint is new, but this state has been read from: everything would be "
        "ingested again",
        store.location,
        f"rows read up to {newest}, and no offset in Spark's checkpoint",
        "the checkpoint of Spark that goes with this state, or an empty state directory",
        "If Spark's checkpoint was lost, start where the state stands with "
        f"startingState={store.location}@{newest.checkpoint}; to ingest everything again, delete "
        "the state directory or set ingestAgain=true.",
    )
