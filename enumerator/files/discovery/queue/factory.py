"""Puts discovery by notifications together.

Not here: options (`discovery_options.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .....checkpoint_meta.storage.input_paths import LoadedPath
from ..object_store.remote_tree import RemoteTree
from ..selection.file_selection import Choice
from ..tree_discovery import ListingMode, TreeDiscovery
from ..tree_factory import plant
from .message_receiver import Inbox
from .queue_discovery import NotificationDiscovery
from .sqs import Queue

VISIBILITY: Final = 120
"""Seconds after which a message that is held no more comes to another receiver."""


@dataclass(frozen=True, slots=True)
class Queues:
    """Where messages come from, and where those go that nobody understands."""

    url: str
    dead_letters: str = ""
    visibility: int = VISIBILITY


def notification_discovery(
    whole: TreeDiscovery,
    paths: Sequence[LoadedPath],
    storage_options: Mapping[str, Any],
    choice: Choice,
    queues: Queues,
    mode: ListingMode,
) -> NotificationDiscovery:
    """Full passes of `whole`, and what the queue tells of; nothing is asked yet."""
    queue, dead = (
        Queue(url, storage_options, queues.visibility) if url else None
        for url in (queues.url, queues.dead_letters)
    )
    assert queue is not None

    def trees() -> Sequence[RemoteTree]:
        planted = plant(paths, storage_options, choice, wants_versions=mode.wants_versions)
        return [one.tree for one in planted if isinstance(one.tree, RemoteTree)]

    return NotificationDiscovery(
        whole,
        trees,
        Inbox(queue, dead),
        wants_versions=mode.wants_versions,
    )
