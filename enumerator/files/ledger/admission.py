"""Files that count as seen without being read, and why.

Not here: files that are left out whenever they are found (`discovery`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ....checkpoint_meta.index.keys import Flags
from ..discovery.api import FoundFiles

EXISTING = "includeExistingFiles"
TOO_OLD = "maxFileAge"


@dataclass(frozen=True, slots=True)
class Passed:
    """For each of some found files whether it is passed over."""

    by_reason: Mapping[str, Flags]

    def any_of(self) -> Flags | None:
        """Those passed over for whatever reason; None if there is none."""
        masks = [mask for mask in self.by_reason.values() if mask.any()]
        return np.logical_or.reduce(masks) if masks else None

    def counts(self, new: Flags) -> dict[str, int]:
        """Reason -> files that are in `new`."""
        found = {reason: int((mask & new).sum()) for reason, mask in self.by_reason.items()}
        return {reason: count for reason, count in found.items() if count}


def passed_over(found: Sequence[FoundFiles], *, existing: bool, older_than: float | None) -> Passed:
    """Judge some found files.

    Args:
        found: files in columns.
        existing: they were there at the first start, and are not wanted.
        older_than: seconds since the epoch; files modified before count as seen.
    """
    count = sum(map(len, found))
    if existing:
        return Passed({EXISTING: np.ones(count, np.bool_)})
    if older_than is None or not count:
        return Passed({})
    modified = np.concatenate([files.modified for files in found])
    # -1 says that the file system does not know.
    return Passed({TOO_OLD: (modified >= 0) & (modified < older_than * 1_000_000)})
