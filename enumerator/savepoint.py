"""Whether the rows of a savepoint have been read by the query that it was taken of.

Not here: restoring its state (`restore.py`), and what becomes of the rows (`acknowledgements.py`).
"""

from __future__ import annotations

from ..checkpoint_meta.history import CheckpointHistory
from ..checkpoint_meta.reader_commit import ReaderCommits
from ..checkpoint_meta.reference import CheckpointRef


def is_known_to_be_complete(
    ref: CheckpointRef, history: CheckpointHistory, commits: ReaderCommits
) -> bool:
    """True if Spark went on after `ref`: its rows were read, or not wanted (a `limit`).

    Spark runs a batch only when the one before is through, so what proves it is that a reader of
    a later checkpoint has written anything. That a later checkpoint is there proves nothing: it
    may have been cut ahead, or never been taken up.
    """
    later = (known for known in history.checkpoints() if known.checkpoint > ref.checkpoint)
    return any(
        (commits.readers(known) or commits.abandoned(known)) and _descends(known, ref, history)
        for known in later
    )


def _descends(ref: CheckpointRef, ancestor: CheckpointRef, history: CheckpointHistory) -> bool:
    while ref.checkpoint > ancestor.checkpoint:
        ref = history.load(ref).header.parent
    return ref == ancestor
