"""Writes the report of a state directory.

Not here: what is in it (`figures.py`, `charts.py`, `page.py`).
"""

from __future__ import annotations

from pathlib import Path

from ...checkpoint_meta.stores.contract import StateStore
from .charts import charts_of
from .figures import figures_of
from .page import page_of


def write_report(state: StateStore, target: str | Path) -> Path:
    """Write one self-contained HTML page about a state; a query that runs on it does not notice.

    Args:
        state: the state directory, see `checkpoint_meta.store.open_store`.
        target: the local file; what is there is replaced.

    Raises:
        OptionError: the plotting library is not installed, or the source has no files.
        StateError: there is no state, or what is needed of it is damaged.
    """
    figures = figures_of(state)
    path = Path(target)
    path.write_text(page_of(figures, charts_of(figures)), encoding="utf-8")
    return path
