"""Every error that reaches a user, as one tree, grouped by the cause.

SluiceError
├── OptionError            the call: options that contradict each other or do not parse
├── StateError             the disk: the state directory
│   ├── StateVersionError      written by a newer release
│   ├── StateCorruptError      damaged bytes
│   ├── StateMissingError      a checkpoint that Spark refers to is missing
│   └── StateNotSharedError    driver and executor do not see the same state directory
├── FencedError            two queries on one state directory
│   └── QueryRunningError      another run of the query is at work: this one did not begin
├── SourceUnavailable      the storage: discovery cannot list the path
│   └── MissingPathError       the path does not exist
├── SplitReadError         the storage: a split that cannot be read
│   ├── FileVanishedError      deleted since discovery
│   ├── FileChangedError       another version than the one discovered
│   ├── MalformedDataError     bytes that are not in the declared format
│   └── SchemaMismatchError    data that does not fit the user's schema
├── NewColumnsError        the data has columns that the schema does not have
│   └── SchemaEvolvedError     and the schema that has them is stored: start again
├── ReplayError            a second attempt cannot repeat what the first one acknowledged
├── TableError             the table: a batch of data files that does not fit it
├── WaitTimeoutError       a wait timed out
└── ProtocolError          a bug in an enumerator, a reader or in Sluice itself
"""

from __future__ import annotations

import errno
import importlib.util
from typing import Final, Self, TypeVar

from .masking import masked

__all__ = [
    "FencedError",
    "FileChangedError",
    "FileVanishedError",
    "MalformedDataError",
    "MissingPathError",
    "NewColumnsError",
    "OptionError",
    "ProtocolError",
    "QueryRunningError",
    "ReplayError",
    "SchemaEvolvedError",
    "SchemaMismatchError",
    "SluiceError",
    "SourceUnavailable",
    "SplitReadError",
    "StateCorruptError",
    "StateError",
    "StateMissingError",
    "StateNotSharedError",
    "StateVersionError",
    "TableError",
    "WaitTimeoutError",
]

ErrorT = TypeVar("ErrorT", bound=BaseException)


class SluiceError(Exception):
    """Root of the tree. Says what happened, where, what was found and expected, and the remedy.

    The five parts are positional, so that an error survives pickling between Spark's processes.
    Secrets of storageOptions are masked in all of them.
    """

    may_pass = False
    """True if the same call may succeed later without a person, as `run` found out: another run is
    at work, or a store does not answer."""

    lacks_input = False
    """True if no file is there yet from which the columns could be inferred."""

    def __init__(
        self, what: str, where: str = "", found: str = "", expected: str = "", remedy: str = ""
    ) -> None:
        # Libraries quote URLs and options in their errors, so every part is masked on its way in.
        parts = [masked(part) for part in (what, where, found, expected, remedy)]
        super().__init__(*parts)
        self.what, self.where, self.found, self.expected, self.remedy = parts

    def __str__(self) -> str:
        parts = [f"{self.what}: {self.where}" if self.where else self.what]
        if self.found:
            parts.append(f"found {self.found}")
        if self.expected:
            parts.append(f"expected {self.expected}")
        text = "; ".join(parts)
        return f"{text}. {self.remedy}" if self.remedy else text

    def reworded(self, *parts: str) -> Self:
        """The same error with other texts for its parts, and without a history."""
        other = type(self)(*parts)
        other.may_pass = self.may_pass
        return other


class OptionError(SluiceError):
    """The options do not parse or contradict each other; `what` lists every problem."""


class StateError(SluiceError):
    """The state directory cannot be read or written."""


class StateVersionError(StateError):
    """The state was written by a newer release than this one."""


class StateCorruptError(StateError):
    """A state object exists, but its bytes are damaged."""


class StateMissingError(StateError):
    """Spark refers to a checkpoint that is not in the state directory."""


class StateNotSharedError(StateError):
    """An executor does not see the state directory that the driver writes."""


class FencedError(SluiceError):
    """A newer incarnation has taken over this state directory; this one must stop."""

    may_pass = True


class QueryRunningError(FencedError):
    """Another run of this query is at work, or may be; this one has claimed and read nothing."""


class SourceUnavailable(SluiceError):
    """Discovery failed repeatedly; nothing was skipped, and a restart resumes there."""


class MissingPathError(SourceUnavailable):
    """The path to be ingested does not exist."""


class SplitReadError(SluiceError):
    """A split cannot be read; `where` names the file and the position."""


class FileVanishedError(SplitReadError):
    """A file was deleted between discovery and reading."""


class FileChangedError(SplitReadError):
    """A file is no longer the version that was discovered."""


class MalformedDataError(SplitReadError):
    """The bytes of a file are not in the declared format."""


class SchemaMismatchError(SplitReadError):
    """The data of a file does not fit the user's schema."""


class NewColumnsError(SluiceError):
    """The data has columns that the schema does not have, and the schema does not grow."""


class SchemaEvolvedError(NewColumnsError):
    """The data has new columns or wider types, and they are stored: restart the query."""


class ReplayError(SluiceError):
    """An attempt cannot repeat what an earlier attempt of the same batch has acknowledged."""


class TableError(SluiceError):
    """A batch of data files does not fit its table, or is not the next one."""


class WaitTimeoutError(SluiceError):
    """Something that was waited for did not happen within its bound."""


class ProtocolError(SluiceError):
    """The checkpoint protocol was broken: a bug in an enumerator, a reader or in Sluice."""


def without_history(error: ErrorT) -> ErrorT:
    """`error` as if it were raised here for the first time: no traceback, no cause.

    For errors that say everything themselves; their remedy ends with the section of the runbook.
    Any other exception is returned as it is; so is a `ProtocolError`, whose history is what a
    report needs.
    """
    if not isinstance(error, SluiceError) or isinstance(error, ProtocolError):
        return error
    what, where, found, expected, remedy = error.args
    more = f"More: `sluice runbook {type(error).__name__}`."
    # A wrong call is corrected by what the message lists.
    if type(error) not in (SluiceError, OptionError) and more not in remedy:
        remedy = f"{remedy} {more}".strip()
    # Spark prints the whole traceback, causes included, of what a data source raises.
    return error.reworded(what, where, found, expected, remedy)


def first_line(error: BaseException) -> str:
    """Return the beginning of what an error says; the name of its class if it says nothing."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def is_installed(*modules: str) -> bool:
    """True if all of these modules can be imported; imports none but the packages around them."""
    try:
        return all(importlib.util.find_spec(module) is not None for module in modules)
    except (ModuleNotFoundError, ValueError):
        # The package around it is not there, or another module pretends to be it.
        return False


def not_installed(what: str, where: str, package: str, extra: str) -> OptionError:
    """Return the error where an optional package is missing; `what` cannot be done without it."""
    # As long as the package is on no index.
    install = f"pip install '.[{extra}]' in the checkout, on each machine that uses it"
    return OptionError(what, where, f"no package {package}", install)


def damaged_id(where: str, found: str) -> StateCorruptError:
    """Return the error for the `metadata` of a query's checkpoint, which has the query's id."""
    return StateCorruptError(
        "the id of the query cannot be read",
        where,
        found,
        "the id of a query, as JSON",
        "Put the file back from a copy. Without one, delete it while no query runs, and start the "
        "query once with `sluice run` (or Spark 4.0 or 4.1), which gives it another id.",
    )


def of_system(error: OSError) -> SluiceError:
    """Return an error of the operating system for people: the path, the reason and its name."""
    # The name can be searched for; the text of the system may be in another language.
    name = errno.errorcode.get(error.errno or 0, "")
    reason = f"{error.strerror or error} ({name})" if name else str(error)
    return SluiceError(
        "the operating system refused to read or write a file",
        "" if error.filename is None else str(error.filename),
        reason,
        "",
        remedy_of(error) or "Pass a path that exists and that this user can access.",
    )


_REMEDIES: Final = {
    errno.ENOSPC: "Make room on the file system of this path, then start again: nothing is lost.",
    errno.EDQUOT: "Raise the quota of this user, or delete what is not needed, then start again: "
    "nothing is lost.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f, or that of the file system), or "
    "use smaller batches, then start again: nothing is lost.",
    errno.EIO: "The disk or the mount fails: see the log of the system (dmesg), repair it, then "
    "start again.",
    errno.EROFS: "Mount the file system for writing, or use a path on another one.",
    errno.EMFILE: "Raise the limit on open files (ulimit -n), then start again: nothing is lost.",
    errno.ENFILE: "Close files of other programs, or raise fs.file-max, then start again: nothing "
    "is lost.",
}


WITHOUT_THE_FILE: Final = (
    "Or set onSplitError=return, which puts the file aside, to be read later. Or remove it, stop "
    "the query, run `sluice waive CHECKPOINT --yes`, and start it again."
)
"""The remedy if a batch in flight has a file that is not to be read now."""


def remedy_of(error: OSError) -> str:
    """Return what helps against a limit or a fault of this machine; empty for other errors."""
    # A store has no disk of this machine.
    is_store = isinstance(error.filename, str) and "://" in error.filename
    return "" if is_store else _REMEDIES.get(error.errno or 0, "")
