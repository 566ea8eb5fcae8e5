"""Looks at a place: whether it can be written to. What is written is deleted again."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

from ....checkpoint_meta.storage.urls import Location
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.open_store import probe_name
from ....errors import StateError


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
