"""How a command ends: its answer as text, as JSON or on a terminal, its error, its exit code.

Only here anything is printed. And the log as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import textwrap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.storage.storage_errors import may_pass
from ...errors import FencedError, OptionError, SluiceError, StateError, of_system, without_history
from ...masking import masked
from ..views.amounts import counted, format_bytes

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


class ExitWith(Exception):
    """The command has finished, with this code."""

    def __init__(self, code: Exit) -> None:
        super().__init__(code)
        self.code = code


def exit_code(error: SluiceError | OSError, failed: Exit | None) -> Exit:
    """The exit code of a command that ends with an error; `failed` as below."""
    if isinstance(error, OptionError):
        return Exit.USAGE
    if isinstance(error, FencedError) and failed is None:
        # A command has to be refused by name: what it changes is not repeated by a timer.
        return Exit.REFUSED
    if may_pass(error):
        return Exit.BUSY
    return failed or (Exit.STATE if isinstance(error, StateError) else Exit.FAILED)


@contextmanager
def errors_as_messages(
    failed: Exit | None = None, wording: Callable[[str], str] = str
) -> Iterator[None]:
    """Around a command: an error is one message on standard error, and an exit code.

    `failed` is the exit code of errors that are neither a wrong call nor may pass; by default the
    kind of error decides.
    `wording` adapts the message to the command.
    """
    try:
        yield
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`).
        # Without it the interpreter has nothing to flush at exit, which would fail once again.
        sys.stdout = None
        raise ExitWith(failed or Exit.FINE) from None
    except (SluiceError, OSError) as error:
        complain(wording(told(error)))
        raise ExitWith(exit_code(error, failed)) from None


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


def as_json(value: Any) -> str:
    """One line of JSON; times in ISO 8601."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value)


# Answers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A table for people."""

    rows: pa.Table | Sequence[Mapping[str, Any]]
    columns: Sequence[str] = ()
    """All that the first row has by default."""

    title: str = ""


@dataclass(frozen=True)
class Page:
    """A text in Markdown."""

    text: str


@dataclass(frozen=True)
class Verbatim:
    """A text whose lines stay as they are."""

    text: str


@dataclass(frozen=True)
class Answer:
    """What a command found, or did."""

    document: Any
    """What `--json` prints: fields of a mapping or dataclass, a list, or the table of a view."""

    shown: Sequence[Any] | None = None
    """For people, instead: mappings, Rows, a Page, sentences, and what rich can draw."""

    code: Exit = Exit.FINE


Outcome = Answer | Generator[str | Answer, None, Answer | None] | None
"""What a command returns. One that takes long yields a text for each step, or Answers that replace
each other on a terminal."""


def show(outcome: Outcome, *, in_json: bool) -> Exit:
    """Print what a command returns; its exit code."""
    if isinstance(outcome, Generator):
        outcome = _followed(outcome, in_json=in_json)
    if outcome is None:
        return Exit.FINE
    if in_json:
        _print_json(outcome.document)
    else:
        for part in sections(outcome.document) if outcome.shown is None else outcome.shown:
            _print(part)
    return outcome.code


def _followed(
    steps: Generator[str | Answer, None, Answer | None], *, in_json: bool
) -> Answer | None:
    live: Any = None
    with ExitStack() as stack:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                answer: Answer | None = end.value
                return answer
            if isinstance(step, str):
                if not in_json:
                    _print(step)
            elif in_json:
                _print_json(step.document)
            else:
                from rich.console import Group
                from rich.live import Live

                # No thread that redraws: between two answers nothing changes.
                live = live or stack.enter_context(Live(console=_console(), auto_refresh=False))
                live.update(Group(*(step.shown or ())), refresh=True)


def sections(document: Any) -> list[Any]:
    """What people see of a document: pairs, then a table for each list of rows."""
    if isinstance(document, pa.Table | list):
        return [Rows(document)]
    fields = vars(document) if is_dataclass(document) else document
    tables = {name: rows for name, rows in fields.items() if _are_rows(rows)}
    pairs = {name: value for name, value in fields.items() if name not in tables}
    titled = (Rows(rows, title=_spelled(name)) for name, rows in tables.items())
    return [pairs, *titled]


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


# As JSON -------------------------------------------------------------------------------------


def _print_json(document: Any) -> None:
    write = sys.stdout.write
    if isinstance(document, pa.Table | list):
        separator = "\n"
        write("[")
        for row in _rows_of(document):
            write(separator + as_json(row))
            separator = ",\n"
        write("]\n" if separator == "\n" else "\n]\n")
    else:
        write(as_json(vars(document) if is_dataclass(document) else document) + "\n")
    # So that a program that reads the output of `watch --json` has each document when it is made.
    sys.stdout.flush()


def _rows_of(rows: pa.Table | Sequence[Any]) -> Any:
    if not isinstance(rows, pa.Table):
        return rows
    # A view may have millions of rows, and only one batch of them is Python objects at a time.
    batches = rows.to_batches(max_chunksize=8192)
    return (row for batch in batches for row in batch.to_pylist())


# For people ----------------------------------------------------------------------------------

_WIDE: Final = 1000
"""Columns of a pipe or a file: rows stay whole, so that programs find them by line."""

_FIRST: Final = 10
"""Items of a long list that are enough for people."""

ON_SCREEN: Final = 200
"""Rows of a table that are enough for them."""


def _console() -> Console:
    from rich.console import Console

    # Without soft wrapping rich breaks a long path into lines, which cannot be copied any more.
    return Console(soft_wrap=True, highlight=False)


def _width() -> int:
    # Not by COLUMNS: readline sets it for all that a program starts.
    return _console().width if sys.stdout.isatty() else _WIDE


def _print(part: Any) -> None:
    match part:
        case Mapping():
            _print_pairs(part)
        case Rows():
            _print_rows(part)
        case Page():
            if sys.stdout.isatty():
                from rich.markdown import Markdown

                # Other texts may have paths, which stay whole; a page is prose.
                _console().print(Markdown(part.text), soft_wrap=False)
            else:
                sys.stdout.write(part.text + "\n")
        case Verbatim():
            sys.stdout.write(part.text + "\n")
        case str():
            sys.stdout.write("\n".join(_folded(part, "")) + "\n")
        case _:
            _console().print(part)
    sys.stdout.flush()


def _folded(text: str, indent: str) -> list[str]:
    """Lines that fit the screen, in which no word is broken."""
    return [
        line
        for paragraph in text.splitlines() or [""]
        for line in textwrap.wrap(
            paragraph,
            _width() - len(indent),
            break_long_words=False,
            break_on_hyphens=False,
            subsequent_indent=paragraph[: len(paragraph) - len(paragraph.lstrip())],
        )
        or [""]
    ]


def _print_pairs(pairs: Mapping[str, Any]) -> None:
    from rich.text import Text

    said = {name: value for name, value in pairs.items() if value not in (None, [], {})}
    width = max((len(_spelled(name)) for name in said), default=0)
    for name, value in said.items():
        first, *more = _folded(formatted(value, name), " " * (width + 2)) or [""]
        # Not as markup: names of files have brackets.
        _console().print(Text.assemble((f"{_spelled(name):<{width}}", "bold"), f"  {first}"))
        for line in more:
            _console().print(Text(" " * (width + 2) + line))


def _print_rows(table: Rows) -> None:
    from rich.cells import cell_len, set_cell_size

    rows, names = table.rows[:ON_SCREEN], table.columns
    if isinstance(rows, pa.Table):
        rows, names = rows.to_pylist(), names or rows.schema.names
    names = names or [*(rows or [{}])[0]]
    cells = {n: [_spelled(n), *(formatted(row.get(n), n) for row in rows)] for n in names}
    widths = {name: max(map(cell_len, column)) for name, column in cells.items()}
    # What does not fit next to the others has lines of its own, below those of its row.
    below = list[str]()
    while sum(widths.values()) + 2 * len(widths) > _width() and len(widths) > 1:
        below.insert(0, max(widths, key=lambda name: widths[name]))
        del widths[below[0]]
    numbers = {n for n in widths if any(isinstance(row.get(n), int | float) for row in rows)}
    lines = [table.title] if table.title else []
    for at in range(len(rows) + 1):
        padded = (
            set_cell_size("", width - cell_len(cell)) + cell
            if name in numbers
            else set_cell_size(cell, width)
            for name, width in widths.items()
            for cell in (cells[name][at],)
        )
        lines.append("  ".join(padded).rstrip())
        for name in below if at else ():
            if (cell := cells[name][at]) not in ("", "-"):
                told = f"    {_spelled(name)}: {cell}"
                # A path is one word.
                lines += _folded(told, "") if " " in cell else [told]
    sys.stdout.write("\n".join(lines) + "\n")


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def formatted(value: Any, name: str = "") -> str:
    """A value for people: bytes with their unit, times to the second."""
    match value:
        case None:
            return "-"
        # First, because a bool is an int as well.
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        # The name says that numbers are bytes, in views and in the answers of commands.
        case int() | float() if "bytes" in name or name == "size":
            return format_bytes(value)
        case int() | float():
            return f"{value:,}"
        case Mapping():
            told = (f"{_spelled(k)} {formatted(v, k)}" for k, v in value.items() if v)
            return ", ".join(told) or "none"
        case list() | tuple():
            items = [formatted(item) for item in value[:_FIRST]]
            if len(value) > _FIRST:
                items.append(f"and {counted(len(value) - _FIRST, 'other')}")
            in_one = ", ".join(items)
            return in_one if len(in_one) <= 70 else "\n".join(items)
        case _:
            return str(value)
