"""Which checkpoint of a state a new query is to begin after: by id, by time, or the newest.

Not here: what is made of it (`fork.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ....checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ....checkpoint_meta.documents.cleanup_marks import CleanedMarks
from ....checkpoint_meta.documents.reader_assignment import readers_of
from ....checkpoint_meta.stores.contract import StateStore
from ....enumerator.coordinator.savepoint import is_known_to_be_complete
from ....errors import OptionError
from ...views.state_view import CheckpointView, StateView
from ..checkpoint_argument import checkpoint_named


@dataclass(frozen=True)
class StartingPoint:
    """A checkpoint that a new query can begin after."""

    view: StateView
    ref: CheckpointRef
    is_complete: bool
    """Its readers have finished: Spark went on, or all of them have acknowledged it."""


def starting_point(store: StateStore, at: str, at_time: str) -> StartingPoint:
    """The checkpoint that the options name; the newest that is complete if they name none.

    Raises:
        OptionError: no such checkpoint, or files that it would read have been cleaned up, or the
            state is not of files.
        StateError: no state, or it is damaged.
    """
    view = StateView(store)
    view.check_is_state()
    chain = view.chain()
    ref = _chosen(view, chain, at, at_time)
    source = view.history.load(ref).header.enumerator
    if source != "files":
        raise OptionError(
            "only a state of files can be forked here",
            store.location,
            f"the state of the source {source!r}",
            "the state of the source 'files'",
            f"A query of that source can start with startingState={store.location}@"
            f"{ref.checkpoint}.",
        )
    _check_not_cleaned(store, ref)
    on_chain = {link.ref: link for link in chain}
    link = on_chain.get(ref)
    complete = (
        _is_complete(link)
        if link is not None
        else is_known_to_be_complete(ref, view.history, view.commits)
    )
    return StartingPoint(view, ref, complete)


def _is_complete(link: CheckpointView) -> bool:
    return link.is_through or set(readers_of(link.checkpoint)) <= set(link.commits)


def _chosen(
    view: StateView, chain: Sequence[CheckpointView], at: str, at_time: str
) -> CheckpointRef:
    if at and at_time:
        raise OptionError("--at and --at-time", "", "both", "one of them, or none")
    if at:
        ref = checkpoint_named(view, at)
        if ref in view.refs:
            return ref
        raise _none(view, f"of {ref} only a base")
    if at_time:
        moment = _moment(at_time)
        found = (link.ref for link in chain if link.checkpoint.header.created <= moment)
        what = f"none that was cut before {at_time}"
    else:
        found = (link.ref for link in chain if _is_complete(link))
        what = "none that is complete"
    newest = next(found, None)
    if newest is None:
        raise _none(view, what)
    return newest


def _none(view: StateView, found: str) -> OptionError:
    return OptionError(
        "the checkpoint does not exist",
        view.store.location,
        found,
        "one of the retained checkpoints",
        "See: sluice checkpoints",
    )


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            "--at-time does not parse", "", repr(text), "ISO 8601, such as 2026-11-21T20:15"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000)


def _check_not_cleaned(store: StateStore, ref: CheckpointRef) -> None:
    newest = max((mark.checkpoint for mark in CleanedMarks(store, 0).found()), default=0)
    if ref.checkpoint < newest:
        raise OptionError(
            "files that this checkpoint had not assigned have been cleaned up",
            store.location,
            f"checkpoint {ref.checkpoint}",
            f"checkpoint {newest} or a later one, up to which cleanSource has deleted or moved "
            "what was read",
            (
                "Fork at a later checkpoint; or put the files back and start with "
                "startingState and ignoreMissingFiles=true, which reads the files that exist."
            ),
        )
