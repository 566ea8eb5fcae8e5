"""`sluice watch`: the status again and again, with the progress of the backlog and its trend."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Annotated, Any, Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....checkpoint_meta.stores.contract import StateStore
from ....errors import StateMissingError
from ...query.owner import owner_of
from ...views.amounts import format_bytes, format_duration
from ..answer import Answer
from ..arguments import ViewArguments, parsed_storage_options, setting
from .status import is_dead, status_lines, status_of, time_left

_LOOKS: Final = 31
"""Looks that a trend is taken of: a minute with the usual interval."""

_OLD: Final = 1800
"""Seconds after which a file that waits is shown as a problem; alerts.yml has the same."""


class Backlog:
    """The progress of the backlog since it was largest, and whether it grows."""

    def __init__(self) -> None:
        self.grows = False
        self._largest = 0
        self._seen: deque[tuple[float, int]] = deque(maxlen=_LOOKS)

    def done(self, pending: int) -> float:
        """Between 0 and 1."""
        self._largest = max(self._largest, pending)
        return 1.0 if not pending else 1.0 - pending / self._largest

    def trend(self, when: float, pending: int) -> Text:
        """Say how the backlog has changed, over the last looks up to this one."""
        self._seen.append((when, pending))
        began, before = self._seen[0]
        # There is nothing to compare the first look with.
        if when <= began:
            return Text("")
        change = (pending - before) / (when - began)
        self.grows = round(change) > 0
        over = f"over {format_duration(when - began)}"
        if not round(change):
            return Text(f"unchanged {over}", style="dim")
        word, style = ("↑ grows", "yellow") if change > 0 else ("↓ shrinks", "green")
        return Text(f"{word} by {format_bytes(abs(change))} a second {over}", style=style)


def looks(
    find: Callable[[], StateStore], interval: float, count: int, storage_options: Mapping[str, Any]
) -> Generator[Answer, None, None]:
    """Yield what a state is, until the user has seen enough, or after `count` looks.

    A state that is not there yet is waited for, and each time that it is missed counts as a look.

    Args:
        find: looks for the state; raises StateMissingError where it is not there yet.
        interval: seconds between two looks.
        count: looks; 0 is no limit.
        storage_options: of the query.
    """
    store: StateStore | None = None
    backlog, looked = Backlog(), 0
    while True:
        try:
            # Once found, it stays the one that is watched.
            store = store or find()
            status = status_of(store, storage_options)
            shown = _shown(time.monotonic(), status, str(owner_of(store)), backlog)
            yield Answer(status, [shown])
        except StateMissingError as error:
            # A state that was there and is gone does not come back by waiting.
            if store is not None:
                raise
            waits = Text(f"waiting for a state: {error}", style="yellow")
            yield Answer({"waiting": str(error)}, [waits])
        looked += 1
        if looked == count:
            return
        time.sleep(interval)


def _shown(when: float, status: dict[str, Any], owner: str, backlog: Backlog) -> RenderableType:
    pending = status["pending"]
    # Before the first checkpoint nothing is known to wait, whatever the first listing finds.
    is_known = pending and status["newest"]
    trend = backlog.trend(when, pending["bytes"]) if is_known else Text("")
    shown_lines = status_lines(status, owner)
    if backlog.grows:
        # The rate at which it is read says nothing about its end.
        shown_lines.pop("backlog read in", None)
    # Three, since browsers without the font of an exported picture draw bold names wider.
    lines = Table.grid(padding=(0, 3))
    problems = _problems(status)
    for name, value in shown_lines.items():
        # A path has no spaces to break at, and its end says which state it is.
        shown = Text(value, style=problems.get(name, ""), overflow="fold")
        lines.add_row(Text(name, style="bold"), shown)
    if pending is None:
        return Group(lines)
    done = backlog.done(pending["bytes"])
    bar = Table.grid(padding=(0, 2))
    text = f"{done:.0%}  {format_bytes(pending['bytes'])} left"
    if is_dead(status):
        text += ", and no query runs"
    elif backlog.grows:
        text += ", growing"
    else:
        text += f", {format_duration(time_left(status)) if pending['bytes'] else '0 s'}"
    bar.add_row(ProgressBar(total=1.0, completed=done, width=40, complete_style="cyan"), Text(text))
    return Group(lines, Text(""), bar, trend)


def _problems(status: dict[str, Any]) -> dict[str, str]:
    """Line -> style, of what a person has to look at."""
    styles = {}
    if is_dead(status):
        styles["owner"] = "red"
    if status["quarantined"]:
        styles["quarantined"] = "red"
    # A state of a source without files has no backlog.
    age = (status["pending"] or {}).get("oldest_modified_seconds")
    if age is not None and age > _OLD:
        styles["oldest file"] = "yellow"
    return styles


def watch(
    arguments: ViewArguments,
    interval: Annotated[
        float, setting("SECONDS", "Wait this many seconds between two updates.", least=0.1)
    ] = 2.0,
    count: Annotated[
        int, setting("NUMBER", "Stop after this many updates; 0 means no limit.", least=0)
    ] = 0,
) -> Generator[Answer, None, None]:
    """Show the status live, with trend and estimated end.

    Waits for a state that does not exist yet.
    """
    storage_options = parsed_storage_options(arguments.storage_options)
    return looks(arguments.opened, interval, count, storage_options)
