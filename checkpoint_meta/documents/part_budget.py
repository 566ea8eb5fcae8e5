"""What one reader may spend on its part of one checkpoint."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class PartBudget(BaseModel):
    """Limits of a part, exactly as in a checkpoint's header; None means no limit.

    The reader stops at the first record border at which one of them is spent, and never before it
    has read one record. Of files it stops before the next one.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    files: int | None = None
    """Files that are not archives, and members of archives."""

    rows: int | None = None
    bytes: int | None = None
    """Stored bytes."""

    seconds: float | None = None
    """Wall time from the start of the task."""
