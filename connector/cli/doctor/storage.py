"""Whether state can be kept at a place, and files be listed at another.

What is written for the purpose is deleted again.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....checkpoint_meta.storage.urls import local_path
from ....checkpoint_meta.stores.contract import StateStore
from ....checkpoint_meta.stores.exclusive_creates import probe_name, race
from ....checkpoint_meta.stores.open_store import open_store
from ....errors import SluiceError, StateError
from ..state_argument import parsed_storage_options
from .patient import Finding

_DRIVER = "state from the driver"

_ATOMIC = "of several concurrent writers of one object, exactly one succeeds"


def state_findings(place: str, storage_options: str) -> Iterator[Finding]:
    """Write, read and list an object, and let several create another one at the same moment."""
    try:
        store = open_store(place, parsed_storage_options(storage_options))
    except (SluiceError, ImportError) as error:
        yield no_place(error)
        return
    with left_as_it_was(place):
        yield _finding(_DRIVER, "an object that can be written and read", lambda: tried(store))
        yield _finding("create only once, from the driver", _ATOMIC, lambda: race(store))


def place_findings(option: str, place: str, storage_options: str) -> Iterator[Finding]:
    """Try another place of the call in the same way: where `option` lets files be written."""
    way_out = f"Repair access, or choose another place for {option}."
    try:
        # What is created there may be on more file systems than a state.
        store = open_store(place, parsed_storage_options(storage_options), to_read=True)
    except (SluiceError, ImportError) as error:
        yield Finding(option, "failed", str(error), "a place that can be written to", way_out)
        return
    with left_as_it_was(place):
        yield _finding(option, "a file that can be written and read", lambda: tried(store), way_out)
        yield _finding(f"{option}: create only once", _ATOMIC, lambda: race(store), way_out)


def no_place(error: BaseException) -> Finding:
    """State cannot be kept there at all."""
    way_out = "Keep state elsewhere: another checkpointLocation, or stateLocation."
    return Finding(_DRIVER, "failed", str(error), "a place for state", way_out)


def check_local_directory(place: str) -> None:
    """Raise, without the patience that a query has, if a local place can be no directory."""
    path = local_path(place)
    # The first ancestor that exists decides whether a directory can be created.
    while path is not None and not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    if path is not None and not os.path.isdir(path):
        raise StateError("a directory cannot be created", place, f"a file at {path}", "a directory")


_STATE_REMEDY = "Repair access, or keep state in a place that has it (stateLocation)."


def _finding(
    what: str, expected: str, look: Callable[[], str], way_out: str = _STATE_REMEDY
) -> Finding:
    try:
        return Finding(what, "ok", look(), expected)
    except (SluiceError, OSError, AssertionError) as error:
        found = str(error) if isinstance(error, SluiceError | AssertionError) else repr(error)
        return Finding(what, "failed", found, expected, way_out)


@contextlib.contextmanager
def left_as_it_was(place: str) -> Iterator[None]:
    """Local directories that come to be by writing into them go again."""
    path = local_path(place)
    directories = []
    while path is not None and not os.path.exists(path):
        directories.append(path)
        path = os.path.dirname(path)
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


def path_finding(path: str, storage_options: str, options: Mapping[str, str]) -> Finding:
    """List the first files of what is to be loaded."""
    from ....enumerator.files.discovery.tree_discovery import all_files
    from ...options.model import parse_options
    from ...source.discovery import make_listing

    what = "files of the path"
    source_options: dict[str, Any] = {**options, "path": path, "storageOptions": storage_options}
    try:
        listing = make_listing(parse_options(source_options, streaming=False))
        first = next(all_files(listing), None)
    except (SluiceError, ImportError, OSError) as error:
        way_out = "Repair access, or correct the path."
        return Finding(what, "failed", str(error), "a path that can be listed", way_out)
    if first is None:
        way_out = "See `sluice runbook 'ingests nothing'`."
        return Finding(what, "warning", f"nothing at {path}", "files to be read", way_out)
    return Finding(what, "ok", f"{first.path} and others, if any", "files to be read")
