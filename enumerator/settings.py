"""How a coordinator behaves: limits, readers, patience, retention."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ..checkpoint_meta.documents.heartbeat import ParentProcess
from ..checkpoint_meta.retention import CommitsGo
from ..checkpoint_meta.stores.open_store import StateStore
from .batch_budget import UNLIMITED, BatchLimits


@dataclass(frozen=True)
class StartingState:
    """A savepoint: a retained checkpoint of another state directory, which stays untouched."""

    store: StateStore
    ref: CheckpointRef
    committed: int | None = None
    """Id up to which the sink has everything, by the log of the old query's host; None if that is
    not at hand."""


@dataclass(frozen=True)
class CoordinatorSettings:
    """The settings of a coordinator; durations are in seconds."""

    limits: BatchLimits = UNLIMITED
    parallelism: int | None = None
    """Number of readers; None lets it follow the work."""

    at_least_readers: int = 2
    max_split_attempts: int = 3
    checkpoints_ahead: int = 1
    """How many checkpoints may be cut and wait, durable, while one runs; 0: cut when asked."""

    retained_checkpoints: int = 100
    retained_seconds: float = 0.0
    """Checkpoints younger than this are retained, too, however many they are."""

    deltas_per_base: int = 50
    sink_has: Callable[[str, int], bool] = lambda *_: False
    """True if the sink has the batch of this lineage that ends with this checkpoint; False where
    only the host could say."""

    replaced_files_go: Callable[[Collection[str]], None] = lambda _: None
    """Deletes files that readers wrote before their batch was given back."""

    clean_after: float = 0.0
    """Seconds from the cut of a checkpoint until what it read may be cleaned up."""

    clean_while_retained: bool = False
    """What a retained checkpoint would read again may be cleaned up all the same."""

    discovery_timeout: float = 600.0
    """How long a first batch waits for the first discovery."""

    step_timeout: float = 600.0
    """How long one call of the enumerator may hold everything up."""

    is_closed_by_host: bool = False
    """Closing writes the last heartbeat: none is written before, at the end of a bounded run."""

    close_timeout: float = 5.0
    """How long closing waits for an enumerator that is busy."""

    idle_patience: float = 0.0
    """How long a question that follows one without news waits for some, for Spark asks again at
    once. No run that ends waits."""

    upkeep_patience: float = 10.0
    """How long a bounded run stays at its end for a base that is long overdue."""

    background_interval: float = 1.0
    """How often fencing and early acknowledgements are looked at."""

    commit_patience: float = 3.0
    """How long a reader commit is looked for before its reader counts as abandoned."""

    batches_may_be_unread: bool = True
    """False: that no reader ran in a batch is an error, for the sink has skipped it."""

    commits_go: CommitsGo = list
    """Asked in the background before reader commits of old checkpoints are deleted."""

    query_without_batches: Callable[[], str] = lambda: ""
    """Spark's id of this query if Spark has written down none of its batches; empty if it has, or
    if that is not known."""

    check_owner: Callable[[int], None] = lambda _: None
    """Called before the claim with the newest epoch; raises if its query is at work."""

    parent: ParentProcess | None = None
    """The process without which this one is of no use: Spark's driver."""

    starting_state: Callable[[], StartingState] | None = None
    """Finds the savepoint. Asked before the first checkpoint only: after it, this state is
    alone and the other one may be gone."""
