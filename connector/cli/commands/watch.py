"""`sluice watch`: the status again and again, with the progress of the backlog.

Not here: the status itself (`status.py`).
"""

from __future__ import annotations

import time
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....checkpoint_meta.stores.contract import StateStore
from ..output import OUT, print_json, said_bytes, said_duration
from ..owner import owner_of
from .status import status_lines, status_of, time_left


class Backlog:
    """How far the backlog has come since it was largest."""

    def __init__(self) -> None:
        self.largest = 0

    def done(self, pending: int) -> float:
        """Between 0 and 1."""
        self.largest = max(self.largest, pending)
        return 1.0 if not pending else 1.0 - pending / self.largest


def watch_state(store: StateStore, interval: float, count: int, *, as_json: bool) -> None:
    """Until the user has seen enough, or `count` looks.

    Raises:
        StateError: the state is gone or damaged.
    """
    if as_json:
        for found in _looks(store, interval, count):
            print_json(found)
        return
    backlog = Backlog()
    with Live(console=OUT, auto_refresh=False) as live:
        for found in _looks(store, interval, count):
            live.update(_shown(found, str(owner_of(store)), backlog), refresh=True)


def _looks(store: StateStore, interval: float, count: int) -> Any:
    looked = 0
    while True:
        yield status_of(store)
        looked += 1
        if looked == count:
            return
        time.sleep(interval)


def _shown(status: dict[str, Any], owner: str, backlog: Backlog) -> Group:
    lines = Table.grid(padding=(0, 2))
    for name, value in status_lines(status, owner):
        lines.add_row(Text(name, style="bold"), Text(value))
    pending = status["pending"]
    if pending is None:
        return Group(lines)
    done = backlog.done(pending["bytes"])
    left = said_duration(time_left(status)) if pending["bytes"] else "0 s"
    bar = Table.grid(padding=(0, 2))
    text = f"{done:.0%}  {said_bytes(pending['bytes'])} left, {left}"
    bar.add_row(ProgressBar(total=1.0, completed=done, width=40), Text(text))
    return Group(lines, Text(""), bar)
