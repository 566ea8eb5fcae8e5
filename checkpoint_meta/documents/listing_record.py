"""Directories whose files are all in the state of one checkpoint: spares a start their listing.

A record says that a directory with these times held nothing but files that the checkpoint knows, or
that their names leave out. This stays true whatever becomes of the state or the query, so a
start that finds both the directory and the checkpoint as they were may rely on it. Nothing depends
on a record that is missing or damaged.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...errors import SluiceError
from ..stores.contract import StateStore, delete_permitted
from .checksummed_json import OfIdentity
from .layout import LISTINGS, numbered, numbers_in

log = logging.getLogger(__name__)

DirectoryRow: TypeAlias = tuple[
    str,
    tuple[int, int, int, int],
    Sequence[tuple[str, Sequence[str]]],
    Mapping[str, int],
    Sequence[tuple[str, str]],
]
"""Path; device, inode, modification and change time in nanoseconds; the directories in it that are
entered, each with the links that lead to it; reason -> files left out; some of these files."""


class ListingRecord(OfIdentity):
    """The directories that one complete pass of a query has found, or that one before it has.

    The state of its checkpoint knows all files of the directories.
    """

    noun = "the record of a listing"

    listed: str
    """Names the loaded paths and the options that select files."""

    boot: str
    """The machine since its start: devices have their numbers until the next one."""

    full_listing: float
    """When the last pass began that has read every directory, in seconds since 1970."""

    trees: Sequence[Sequence[DirectoryRow]]
    """The directories of each loaded path."""

    def publish(self, store: StateStore) -> None:
        """Write it in the place of the one before; a failure is logged."""
        try:
            numbers = numbers_in(store.list(LISTINGS))
            # Another process may be faster, and its record is as good.
            with contextlib.suppress(FileExistsError):
                number = max(numbers, default=0) + 1
                store.publish(numbered(LISTINGS, number), self.to_bytes())
            delete_permitted(store, [numbered(LISTINGS, number) for number in numbers])
        # A name of a directory that is not UTF-8 has no place in JSON.
        except (SluiceError, OSError, UnicodeEncodeError) as error:
            log.warning("%s: the record of the listing was not written: %s", store.location, error)


def newest_listing(store: StateStore) -> ListingRecord | None:
    """The newest record; None without one that can be read."""
    with contextlib.suppress(SluiceError, OSError):
        return ListingRecord.newest(store, LISTINGS)
    return None
