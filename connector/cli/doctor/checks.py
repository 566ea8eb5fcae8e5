"""A check as a row: what is looked at, what is expected, how to repair it; and looks at a place.

What is written into a place is deleted again.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from ....checkpoint_meta.storage.urls import Location
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import probe_name
from ....errors import SluiceError, StateError

Verdict = Literal["ok", "warning", "failed"]


class NotAsExpected(Exception):
    """A look found something else than what is expected."""

    def __init__(self, found: str, way_out: str = "", verdict: Verdict | None = None) -> None:
        """`way_out` and `verdict` are of this case; by default those of the check."""
        super().__init__(found)
        self.way_out, self.verdict = way_out, verdict


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what was expected, and the way out."""

    what: str
    verdict: Verdict
    found: str
    expected: str = ""
    way_out: str = ""

    def __str__(self) -> str:
        lines = [f"{self.verdict:<7}  {self.what}: {self.found}"]
        if self.verdict != "ok":
            lines += [f"         expected: {self.expected}", f"         fix: {self.way_out}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Check:
    """One look at the machine or a place."""

    what: str
    expected: str
    way_out: str
    look: Callable[[], str]
    """Returns what it found; any error is a finding."""

    verdict: Verdict = "failed"
    """Of an error."""

    def finding(self) -> Finding:
        """Look."""
        try:
            return Finding(self.what, "ok", self.look(), self.expected)
        except NotAsExpected as other:
            found, verdict = str(other), other.verdict or self.verdict
            return Finding(self.what, verdict, found, self.expected, other.way_out or self.way_out)
        except Exception as error:  # noqa: BLE001 - each client and Spark have errors of their own
            found = str(error) if isinstance(error, SluiceError | AssertionError) else repr(error)
            return Finding(self.what, self.verdict, found, self.expected, self.way_out)


def check_local_directory(place: str) -> None:
    """Raise, without the patience that a query has, if a local place can be no directory."""
    # The first ancestor that exists decides whether a directory can be created.
    path = _missing(place)[1]
    if not os.path.isdir(path):
        raise StateError("a directory cannot be created", place, f"a file at {path}", "a directory")


def _missing(place: str) -> tuple[list[str], str]:
    """The directories that writing into a local place creates, the deepest first; and above them.

    Writing into any other place creates none.
    """
    location = Location.of(place)
    path, missing = location.url if location.is_local else os.sep, list[str]()
    while not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing, path


@contextlib.contextmanager
def left_as_it_was(place: str) -> Iterator[None]:
    """Local directories that come to be by writing into them go again."""
    directories, _ = _missing(place)
    try:
        yield
    finally:
        # The deepest one first. One that something else was put into meanwhile is not empty, and
        # stays.
        for each in directories:
            with contextlib.suppress(OSError):
                os.rmdir(each)


def tried(store: StateStore) -> str:
    """Write, read, list and delete one object."""
    name = probe_name()
    data = uuid.uuid4().bytes
    store.publish(name, data)
    try:
        stored = store.read(name)
        assert stored == data, f"{name} was written, and something else was read"
        assert name in store.list(""), f"{name} was written, and a listing does not show it"
    finally:
        store.delete(name)
    assert name not in store.list(""), f"{name} was deleted, and a listing still shows it"
    return f"written, read, listed and deleted at {store.location}"
