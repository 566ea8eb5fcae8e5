"""Tests that every source has to pass: inherit `SourceSuite`. Only running them needs pytest."""

from __future__ import annotations

from .suite import SourceSuite
from .trial import Row, Trial

__all__ = ["Row", "SourceSuite", "Trial"]
