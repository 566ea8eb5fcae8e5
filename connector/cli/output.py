"""How a command ends: its exit code, its error as one message, and the log as JSON."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, Final

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
