"""Which checkpoint a person means: `42`, or `42-3` where several incarnations have one of that id.

Not here: what is done with it.
"""

from __future__ import annotations

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...errors import OptionError
from ..views.state_view import StateView


def checkpoint_named(view: StateView, name: str) -> CheckpointRef:
    """The checkpoint; of several of one id that on the chain, else the newest.

    Raises:
        OptionError: none of that name is retained; those that are, are named.
    """
    text, _, epoch = name.partition("-")
    known = {*view.refs, *view.history.bases()}
    if text.isdecimal() and (epoch.isdecimal() or not epoch):
        found = sorted(
            ref
            for ref in known
            if ref.checkpoint == int(text) and (not epoch or ref.epoch == int(epoch))
        )
        if len(found) > 1:
            chain = {link.ref for link in view.chain()}
            found = [ref for ref in found if ref in chain] or found
        if found:
            return found[-1]
    ids = sorted(ref.checkpoint for ref in known)
    raise OptionError(
        "the checkpoint does not exist",
        view.store.location,
        repr(name),
        f"an id from {ids[0]} to {ids[-1]}, or id-epoch" if ids else "a state with checkpoints",
        "See: sluice checkpoints",
    )
