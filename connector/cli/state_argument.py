"""Which state directory and which checkpoint of it an argument means.

A state is named by its directory or by a checkpoint location above it, a checkpoint as `42`, or as
`42-3` where several incarnations have one of that id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.layout import BASES, CHECKPOINTS, EPOCHS, FORMAT
from ...checkpoint_meta.storage.urls import Location, join
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError, StateMissingError
from ...reader.files.options.values import json_object

if TYPE_CHECKING:
    from ..views.state_view import StateView

T = TypeVar("T")


def parsed_storage_options(text: str) -> Mapping[str, Any]:
    """The value of `--storage-options`."""
    try:
        return json_object(text, '{"anon": true}')
    except ValueError as error:
        # Without the text, which may hold keys.
        raise OptionError("--storage-options do not parse", "", "", str(error)) from None


def parsed_options(texts: Sequence[str]) -> dict[str, str]:
    """The values of `--option`, each NAME=VALUE."""
    pairs = [each.partition("=") for each in texts]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise OptionError("--option does not parse", "", repr(wrong[0]), "NAME=VALUE")
    return {name: value for name, _, value in pairs}


def parsed(option: str, text: str, parse: Callable[[str], T], expected: str = "") -> T:
    """The value of an option by `parse`, whose ValueError says what it expects, or `expected`."""
    try:
        return parse(text)
    except ValueError as error:
        found, expected = repr(text), expected or str(error)
        raise OptionError(f"{option} does not parse", "", found, expected) from error


def parsed_moment(option: str, text: str) -> int:
    """The value of an option that is a time, in microseconds since the epoch."""
    expected = "ISO 8601, such as 2026-11-21T20:15"
    moment = parsed(option, text, datetime.fromisoformat, expected)
    # As all times that the commands print.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000)


def find_state(
    place: str, source_name: str, storage_options: str, may_begin: bool = False
) -> StateStore:
    """The state that is at `place`, or below it where the source of a query has its own.

    Args:
        place: a state directory, a `stateLocation`, or a `checkpointLocation`.
        source_name: of the query, where there may be several.
        storage_options: JSON.
        may_begin: if none is there, that of a new query: the state directory itself, which errors
            name, or below a `checkpointLocation`.
    """
    options = parsed_storage_options(storage_options)
    root = Location.of(place).url
    # A state directory itself, and what the query has below checkpointLocation and stateLocation.
    places = [root, join(root, "sluice", source_name), join(root, source_name)]
    for candidate in places:
        store = open_store(candidate, options)
        if _is_state(store):
            return store
    if may_begin:
        return open_store(places[not root.rstrip("/").endswith(f"/{source_name}")], options)
    others = [
        leaf
        for leaf in open_store(join(root, "sluice"), options).list("")
        if _is_state(open_store(join(root, "sluice", leaf), options))
    ]
    hint = (
        f"Pass --source-name with one of: {', '.join(others)}."
        if others
        else ("Pass the state directory, or the checkpointLocation of the query.")
    )
    raise StateMissingError(
        "no state of a sluice source found", root, "nothing at " + ", ".join(places), "", hint
    )


def _is_state(store: StateStore) -> bool:
    try:
        store.read(FORMAT)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        # A lost FORMAT is restored by the next query, so without it this is a state as well.
        return any(store.list(name) for name in (CHECKPOINTS, BASES, EPOCHS))
    return True


def checkpoint_named(view: StateView, name: str) -> CheckpointRef:
    """The checkpoint; of several of one id that on the chain, else the newest."""
    text, _, epoch = name.partition("-")
    refs = {*view.refs, *view.history.bases()}
    if text.isdecimal() and (epoch.isdecimal() or not epoch):
        matches = sorted(
            ref
            for ref in refs
            if ref.checkpoint == int(text) and (not epoch or ref.epoch == int(epoch))
        )
        if len(matches) > 1:
            # Two incarnations may have cut one of this id each, and Spark has taken up that on the
            # chain.
            chain = {link.ref for link in view.chain()}
            matches = [ref for ref in matches if ref in chain] or matches
        if matches:
            return matches[-1]
    ids = sorted(ref.checkpoint for ref in refs)
    retained = f"an id from {ids[0]} to {ids[-1]}, or id-epoch" if ids else ""
    raise no_checkpoint(view, repr(name), retained or "a state with checkpoints")


def checkpoint_as_of(view: StateView, option: str, text: str) -> CheckpointRef:
    """The newest checkpoint on the chain that was cut by the time that an option names."""
    moment = parsed_moment(option, text)
    # The chain comes with the newest first.
    for link in view.chain():
        if link.checkpoint.header.created <= moment:
            return link.ref
    expected = "a time after the oldest of the retained checkpoints"
    raise no_checkpoint(view, f"no checkpoint cut before {text}", expected)


def no_checkpoint(view: StateView, found: str, expected: str) -> OptionError:
    """The error about a checkpoint that a command cannot use."""
    return OptionError(
        "the checkpoint does not exist",
        view.store.location,
        found,
        expected,
        "To list the checkpoints, run: sluice checkpoints",
    )


def check_is_of_files(view: StateView, verb: str, remedy: str = "") -> None:
    """Raise OptionError unless the state is of files; `verb` says what else cannot be done."""
    source = view.source
    if source != "files":
        raise OptionError(
            f"only a state of files can be {verb} here",
            view.store.location,
            f"the state of the source {source!r}",
            "the state of the source 'files'",
            remedy,
        )
