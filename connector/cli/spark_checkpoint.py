"""What Spark itself keeps in a query's checkpoint: `metadata`, `offsets/<n>` and `commits/<n>`.

Not here: what the offsets mean to a source (`bootstrap/spark_file_log.py`, `spark_offset_log.py`),
and writing such a checkpoint (`bootstrap/continued_query.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...checkpoint_meta.stores.contract import StateStore
from ...errors import StateCorruptError

VERSION = "v1"
"""First line of every object of both logs."""

NO_OFFSET = "-"
"""The line of a source that had nothing yet."""


@dataclass(frozen=True)
class CommittedBatch:
    """The newest batch that Spark has committed, as its offset log has it."""

    number: int
    header: str
    """Watermark, time and settings, as JSON."""

    offsets: Sequence[str]
    """One for each occurrence of a source in the query's plan."""


def last_committed(store: StateStore) -> CommittedBatch | None:
    """The newest committed batch; None before the first.

    Raises:
        StateCorruptError: its offsets are missing or do not parse.
    """
    commits = numbers(store, "commits")
    if not commits:
        return None
    where = f"offsets/{commits[-1]}"
    try:
        version, header, *offsets = store.read(where).decode().splitlines()
    except FileNotFoundError as error:
        raise damaged(store, where, "no such object", "what a committed batch has read") from error
    except ValueError as error:
        raise damaged(store, where, str(error), "what a committed batch has read") from error
    if version != VERSION:
        found = f"version {version!r} of the offset log, with sources that have names"
        raise damaged(store, where, found, VERSION)
    return CommittedBatch(commits[-1], header, offsets)


def numbers(store: StateStore, directory: str, suffix: str = "") -> list[int]:
    """The numbers of the objects in a log, ascending; of those whose names end in `suffix`."""
    stems = [leaf.removesuffix(suffix) for leaf in store.list(directory) if leaf.endswith(suffix)]
    # Other names are temporary files and checksums of Hadoop.
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())


def damaged(store: StateStore, name: str, found: str, expected: str) -> StateCorruptError:
    """An object of Spark's checkpoint is not what it should be."""
    return StateCorruptError(
        "Spark's checkpoint cannot be read",
        f"{store.location}/{name}",
        found,
        expected,
        (
            "Check that it is the checkpointLocation of a query that reads files with Spark's "
            "own source, and that it is complete."
        ),
    )
