"""Where the files of the project are, for tests that look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def files(pattern: str) -> Iterator[Path]:
    """Those with a name like this, but for what tools keep in hidden folders."""
    yield from ROOT.glob(pattern)
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            yield from folder.rglob(pattern)
