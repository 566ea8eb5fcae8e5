"""What the client's errors mean, which of them are worth another try, and how long to go on.

The client repeats a request for some seconds by itself; `patiently` is the patience around it, for
what the client must not repeat (a create) and for a store that is away for longer.
"""

from __future__ import annotations

import errno
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from ...errors import (
    FileChangedError,
    MissingPathError,
    OptionError,
    SluiceError,
    SourceUnavailable,
    without_history,
)

# The global generator belongs to the program, which may have seeded it.
_JITTER = random.SystemRandom()
_STATUS = re.compile(r"non-2xx status code: (\d+ [^:]*)")
_CODE = re.compile(r"<Code>([^<]*)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_BULK = re.compile(r"request failed for key .* \(code: (\w+)\)")
_RETRIES = re.compile(r", after \d+ retries")
_SHOWN = 400

_UNSPEAKABLE: Final = (
    "the names of objects must not have an empty part, a part . or .. or a control "
    'character; move the object, or set "client": "fsspec" in storageOptions'
)


class AnotherVersion(OSError):
    """The object is there, and not in the version that was asked for."""


class BeyondTheEnd(OSError):
    """The object ends before the bytes that were asked for."""


class MissingBucket(FileNotFoundError):
    """The store has no such bucket or container."""


class RefusedRequest(OSError):
    """The store does not take such a request: keys that are no keys, another region, a bad name."""


_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")
"""What S3, Azure and Google Cloud Storage answer where there is no bucket."""

PASSING: Final = {"408", "409", "425", "429"}
"""Answers below 500 that another try may not get."""

_KNOWN_TEXTS: Final[Mapping[str, tuple[type[OSError], int]]] = {
    # A bucket in another region.
    "Received redirect without LOCATION": (RefusedRequest, errno.EINVAL),
    # The store has answered with nothing, in place of 416.
    "Wanted range starting at": (BeyondTheEnd, errno.EINVAL),
}
"""What the client says by itself."""

_KINDS: Final[Mapping[str, tuple[type[OSError], int]]] = {
    "401": (PermissionError, errno.EACCES),
    "403": (PermissionError, errno.EACCES),
    "AccessDenied": (PermissionError, errno.EACCES),
    "404": (FileNotFoundError, errno.ENOENT),
    "412": (AnotherVersion, errno.ESTALE),
    "416": (BeyondTheEnd, errno.EINVAL),
}


def error_of_status(status: int | None, text: str, where: str) -> OSError:
    """Return the error of the operating system for an answer by HTTP; it names `where`."""
    kind, number = _KINDS.get(str(status), (OSError, errno.EIO))
    return kind(number, text, where)


@contextmanager
def as_os_errors(where: str) -> Iterator[None]:
    """The client's errors as those of the operating system; `where` is the URL they name.

    Raises:
        FileNotFoundError: no such object or bucket.
        FileExistsError: a create met an object.
        AnotherVersion: the object is not the version that was asked for.
        BeyondTheEnd: the object ends before what was asked for.
        PermissionError: the credentials do not permit it.
        RefusedRequest: the request makes no sense to the store.
        OSError: anything else, after the client's own retries.
    """
    from obstore import exceptions

    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError) as error:
        kind = MissingBucket if _lacks_bucket(str(error)) else FileNotFoundError
        raise kind(errno.ENOENT, _cut(error), where) from error
    except exceptions.AlreadyExistsError as error:
        raise FileExistsError(errno.EEXIST, _cut(error), where) from error
    except (exceptions.PreconditionError, exceptions.NotModifiedError) as error:
        raise AnotherVersion(errno.ESTALE, _cut(error), where) from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(errno.EACCES, _cut(error), where) from error
    except exceptions.InvalidPathError as error:
        raise OSError(errno.EINVAL, f"{_cut(error)}: {_UNSPEAKABLE}", where) from error
    except exceptions.BaseError as error:
        # To a listing all of these are one kind of error.
        other, number = _kind(str(error))
        raise other(number, _cut(error), where) from error


def _kind(text: str) -> tuple[type[OSError], int]:
    # obstore has one class for many answers, so the status has to be read from its text.
    status, code, bulk = _STATUS.search(text), _CODE.search(text), _BULK.search(text)
    if bulk is not None:
        # One of several deletions: S3 tells a code, Azure a status.
        return _KINDS.get(bulk.group(1), (OSError, errno.EIO))
    if status is None:
        kinds = (kind for reason, kind in _KNOWN_TEXTS.items() if reason in text)
        return next(kinds, (OSError, errno.EIO))
    number = status.group(1)[:3]
    # S3 answers 400 where a client was too slow.
    passing = number in PASSING or (code is not None and code.group(1) == "RequestTimeout")
    if number == "404" and _lacks_bucket(text):
        return MissingBucket, errno.ENOENT
    # Texts of three digits compare like numbers.
    refused = number < "500" and not passing
    return _KINDS.get(number, (RefusedRequest, errno.EINVAL) if refused else (OSError, errno.EIO))


def _lacks_bucket(text: str) -> bool:
    return any(sign in text for sign in _NO_BUCKET)


def _cut(error: BaseException) -> str:
    """In one line what the store has said, which is all that `error` says from now on.

    The client quotes whole answers, and stores repeat tokens in them that are unknown here.
    """
    summary = _summary(error)
    error.args = (summary,)
    return summary


def message_in(body: str) -> str:
    """Code and message of an answer that reports an error; empty if it has neither."""
    matches = (_CODE.search(body), _MESSAGE.search(body))
    # Azure's messages have lines of their own for the request's number and time.
    return ": ".join(" ".join(each.group(1).split()) for each in matches if each is not None)


def _summary(error: BaseException) -> str:
    """In one line what the store has said, or what became of the request."""
    # obstore appends Rust's own description of the error.
    text = str(error).partition("\n\nDebug source")[0]
    status, reason = _STATUS.search(text), message_in(text)
    if status is None:
        return " ".join(text.split())[:_SHOWN]
    why = f" ({reason})" if reason else ""
    tries = _RETRIES.search(text)
    return f"the store answered {status.group(1).strip()}{why}" + (tries.group(0) if tries else "")


T = TypeVar("T")

LONGEST_DELAY: Final = 8.0
"""Seconds between two tries at most."""

PATIENCE: Final = 25.0
"""Seconds of tries and pauses after which there is no new try."""

FINAL: Final = (
    FileExistsError,
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    IsADirectoryError,
    AnotherVersion,
    BeyondTheEnd,
    RefusedRequest,
    OptionError,
    MissingPathError,
    FileChangedError,
    ImportError,
    TypeError,
)
"""Answers that the next try would hear as well: about the object, the credentials or the call."""


_NO_ROOM: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""A person has to make room first."""


def is_final(error: BaseException | None) -> bool:
    """True if no retry can help: the error, or what made a listing fail, is in `FINAL`."""
    if isinstance(error, FINAL) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return True
    return isinstance(error, SourceUnavailable) and is_final(error.__cause__)


_AWAY: Final = {
    *(errno.EAGAIN, errno.EIO, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.ECONNABORTED, errno.EPIPE, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN),
}


def may_pass(error: BaseException | None) -> bool:
    """True if the same call may succeed later: a store or a service is away, or another run works.

    Looks at the exceptions that the error was made of; an error without them says it by itself
    (`SluiceError.may_pass`).
    """
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        if getattr(error, "may_pass", False):
            return True
        if isinstance(error, OSError) and not is_final(error):
            # Local disks answer; what they cannot do is for a person.
            is_local = isinstance(error.filename, str) and "://" not in error.filename
            if isinstance(error, TimeoutError | ConnectionError) or error.errno in _AWAY:
                return not is_local
        error = error.__cause__ or error.__context__
    return False


def alone(error: BaseException) -> BaseException:
    """See `without_history`; what that takes from the error is noted in it before."""
    if isinstance(error, SluiceError):
        error.may_pass = may_pass(error)
    return without_history(error)


def delays(first: float = 0.1, longest: float = LONGEST_DELAY) -> Iterator[float]:
    """Seconds before each new try, for ever: growing, with jitter for many clients."""
    delay = first
    while True:
        yield delay * _JITTER.uniform(0.5, 1.0)
        delay = min(delay * 3.0, longest)


def patiently(
    action: Callable[[], T],
    attempts: int = 8,
    sleep: Callable[[float], None] = time.sleep,
    first_delay: float = 0.1,
) -> T:
    """`action`, tried again after errors that may pass; with the defaults for some 25 seconds.

    Where a try itself takes long, since the client repeats it, there are fewer: who started the
    query learns within a minute that a store is away.

    Raises:
        OSError: the last one, or the first that no further try would change.
    """
    pauses = delays(first_delay)
    began = time.monotonic()
    for _ in range(attempts - 1):
        try:
            return action()
        except FINAL:
            raise
        except OSError as error:
            if is_final(error) or time.monotonic() - began > PATIENCE:
                raise
            sleep(next(pauses))
    # The last attempt, of which every error is the caller's.
    return action()
