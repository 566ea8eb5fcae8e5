"""How the enumerator of files lists, and what it does with files; each part is an option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...checkpoint_meta.files.file_split import FileVersion
from .aligned_batches import Alignment
from .discovery.api import CHUNK
from .event_time_batches import EventTimePolicy
from .ledger.ledger import LedgerPolicy


@dataclass(frozen=True)
class FilePolicy:
    """The times of listings, and what to do with what is found; each part is an option."""

    interval: float
    """Seconds between two passes."""

    attempts: int = 5
    """Failures in a row, with back-off between them, that fail the query."""

    portion: int = CHUNK
    """Files after which what a pass has found is handed over."""

    portion_bytes: int = 0
    """Likewise bytes, where `ledger.digest` reads the files; about so many at a time."""

    max_pending: int = 1_000_000
    """Discovery pauses while so many files are pending."""

    include_existing: bool = True
    """False: what is there at the first start counts as seen."""

    fresh_share: float = 0.0
    """The part of each batch that is taken from the end of the order."""

    event_time: EventTimePolicy | None = None
    """For batches in the order of event time; `ledger` has that order, too."""

    alignment: Alignment | None = None
    """With other sources of the query; only with `event_time`."""

    whole_files: bool = False
    """Files are never cut, so under a limit on rows one reader takes them, one after the other."""

    is_archive: Callable[[FileVersion], bool] = lambda _: False
    """Whether the limit on files counts the members of a file instead."""

    retract_after: float = 0.0
    """Seconds for which a file is absent before it counts as gone, where `ledger.retracts`."""

    ledger: LedgerPolicy = field(default_factory=LedgerPolicy)
