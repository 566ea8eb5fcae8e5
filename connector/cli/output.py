"""What a command prints: tables for people, one JSON document for programs; and how it ends."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.storage.storage_errors import may_pass
from ...errors import (
    FencedError,
    OptionError,
    SluiceError,
    StateError,
    of_system,
    without_history,
)
from ...masking import masked
from ..views.amounts import format_bytes

if TYPE_CHECKING:
    from rich.console import Console


class Exit(IntEnum):
    """The exit code of a command."""

    FINE = 0
    FOUND = 1
    """It did what it was asked to, and found something that a person has to look at."""

    USAGE = 2
    STATE = 3
    """There is no state, or it is damaged."""

    REFUSED = 4
    """Another process may be at work on the state."""

    FAILED = 5
    """Any other error."""

    BUSY = 75
    """Another run is at work, or a store does not answer: EX_TEMPFAIL of sysexits.h, try again."""


class Ended(Exception):
    """The command has finished, with this code."""

    def __init__(self, code: Exit) -> None:
        super().__init__(code)
        self.code = code


def exit_code(error: SluiceError | OSError) -> Exit:
    """The exit code of a command that ends with an error."""
    if isinstance(error, OptionError):
        return Exit.USAGE
    if may_pass(error):
        return Exit.BUSY
    if isinstance(error, FencedError):
        return Exit.REFUSED
    return Exit.STATE if isinstance(error, StateError) else Exit.FAILED


@contextmanager
def plainly(failed: Exit | None = None, wording: Callable[[str], str] = str) -> Iterator[None]:
    """Around a command: an error is one message on standard error, and an exit code.

    `failed` is the exit code of all errors but a wrong call; by default the kind of error decides.
    `wording` adapts the message to the command.
    """
    try:
        yield
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`).
        # Without it the interpreter has nothing to flush at exit, which would fail once again.
        sys.stdout = None
        raise Ended(failed or Exit.FINE) from None
    except (SluiceError, OSError) as error:
        complain(wording(told(error)))
        code = exit_code(error)
        raise Ended(code if code in (Exit.USAGE, Exit.BUSY) else failed or code) from None


class JsonLines(logging.Formatter):
    """Lines of a log as JSON documents."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        document = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked(record.getMessage()),
            # What the caller gave as `extra`, such as `sluice_state`.
            **{name: value for name, value in vars(record).items() if name.startswith("sluice_")},
        }
        if record.exc_info:
            document["traceback"] = masked(self.formatException(record.exc_info))
        return as_json(document)


_LOG: Final = logging.getLogger("pyspark_sluice")


def write_json_log() -> None:
    """From now on write the log, and errors, as JSON on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    _LOG.addHandler(handler)


def complain(text: str, feed: str = "") -> None:
    """An error of a command, or of a feed, on standard error."""
    if any(isinstance(handler.formatter, JsonLines) for handler in _LOG.handlers):
        _LOG.error("%s", text, extra={"sluice_feed": feed} if feed else {})
        return
    sys.stderr.write(f"{feed}: {text}\n" if feed else f"{text}\n")
    sys.stderr.flush()


def told(error: BaseException) -> str:
    """An error as one message for people."""
    shown = without_history(of_system(error) if isinstance(error, OSError) else error)
    return f"{type(error).__name__}: {masked(str(shown))}"


_WIDE: Final = 1000


@cache
def console(width: int | None = None) -> Console:
    """Return the console of standard output.

    Args:
        width: of tables; a narrow screen breaks their lines, which is better to read than broken
            cells.
    """
    from rich.console import Console

    # Without soft wrapping rich breaks a long path into lines, which cannot be copied any more.
    return Console(soft_wrap=width is None, highlight=False, width=width)


def as_json(value: Any) -> str:
    """One line of JSON; times in ISO 8601."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


def print_json(value: Any) -> None:
    """One document, a line."""
    sys.stdout.write(as_json(value) + "\n")
    # So that a program that reads the output of `watch --json` has each document when it is made.
    sys.stdout.flush()


def print_rows(
    table: pa.Table, columns: Sequence[str], *, in_json: bool, most: int | None = None
) -> None:
    """Print rows of a view: as JSON an array, a row a line; for people `columns` of `most` rows."""
    if not in_json:
        print_table(table.slice(0, most).to_pylist(), columns)
        return
    separator = "\n"
    sys.stdout.write("[")
    # A view may have millions of rows, and only one batch of them is Python objects at a time.
    for batch in table.to_batches(max_chunksize=8192):
        for row in batch.to_pylist():
            sys.stdout.write(separator + as_json(row))
            separator = ",\n"
    sys.stdout.write("\n]\n" if len(table) else "]\n")


def print_table(rows: Sequence[dict[str, Any]], columns: Sequence[str], title: str = "") -> None:
    """Print rows as a table: numbers to the right, amounts with their units."""
    from rich.table import Table

    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        numeric = any(isinstance(row.get(name), int | float) for row in rows)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        shown.add_column(name.replace("_", " "), justify=justify, overflow="fold")
    for row in rows:
        shown.add_row(*(formatted(row.get(name), name) for name in columns))
    console(_WIDE).print(shown)


def print_pairs(pairs: Mapping[str, str]) -> None:
    """Names and values, one under another."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        console().print(f"[bold]{name:<{width}}[/bold]  {_escaped(value)}")


def _escaped(text: str) -> str:
    # rich takes brackets for markup, and names of files have them.
    return text.replace("[", "\\[")


def formatted(value: Any, name: str = "") -> str:
    """A value for people: bytes with their unit, times to the second."""
    if value is None:
        return "-"
    # First, because a bool is an int as well.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    # The name of a column says that its numbers are bytes, in views and in the answers of commands.
    if "bytes" in name or name == "size":
        return format_bytes(value)
    if isinstance(value, int | float):
        return f"{value:,}"
    return _escaped(str(value))
