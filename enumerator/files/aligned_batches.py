"""Batches in the order of event time, of which none runs ahead of other sources of the query.

Each source publishes its position: the earliest event time that it has not handed out. A file is
planned if it is at most `skew` after the position of every other source of the group. Positions
only say less than is true, so reading old ones delays a file and never lets one through. The source
with the smallest position can always continue, so two sources never wait for each other.

Who takes part is known by a proof, not by a time-out. Spark asks all sources of a query in each
trigger, and the first answer of each waits until its position is published. So when Spark has
completed the first checkpoint of this run, all others have published theirs in this run, too. That
checkpoint is empty if there is a backlog. Nothing is planned before it is complete.

No checkpoint is cut ahead: positions may grow until Spark asks. A run that ends would end if no
source had anything new; one that has a backlog and has to wait gives an empty checkpoint instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from ...checkpoint_meta.documents.aligned_positions import AlignedPositions, Peer
from ...checkpoint_meta.files.file_split import FileSplit
from ..api import SplitEnumeratorContext
from ..batch_budget import BatchBudget
from .event_time_batches import EventTimeBatches, EventTimePolicy, shown_time
from .ledger.ledger import NewFiles

_NO_FILE_YET: Final = -(2**62)
"""The position of a source that has found nothing so far."""

_UNHEARD: Final = "sources that have not reported in this run yet"

_RENEWALS: Final = 3
"""How often in an idle timeout a source with a backlog says again what it has said."""


@dataclass(frozen=True)
class Alignment:
    """With whom a source is aligned."""

    positions: AlignedPositions
    interval: float
    """Seconds between two looks at the others while a source waits for them."""


class AlignedBatches(EventTimeBatches):
    """Under the coordinator's lock."""

    is_cut_when_asked = True

    def __init__(
        self,
        policy: EventTimePolicy,
        context: SplitEnumeratorContext[FileSplit],
        alignment: Alignment,
        first: Callable[[], FileSplit | None],
    ) -> None:
        """`first` gives the first pending file in order."""
        super().__init__(policy, context)
        self._alignment = alignment
        self._positions = alignment.positions
        self._first = first
        self._peers: tuple[Peer, ...] = ()
        self._published: int | None = None
        """The position that was published last."""
        self._published_at: float | None = None
        self._is_exchanging = self._is_wanted = False
        self._questions = 0
        """Checkpoints that Spark has completed in this run: each was followed by a question."""
        self._answered = -1
        """How many of them there were when the newest look at the others began."""
        self._first_cut: int | None = None
        """The first checkpoint of this run."""
        self._known_after: int | None = None
        """The number of the first question after which all others are known."""
        self._behind = ""
        """For whom the next file waits."""

    # Positions ------------------------------------------------------------------------------

    @property
    def _position(self) -> int | None:
        # A listing that is under way may bring an earlier file, so nothing later is said until it
        # ends.
        if self.is_waiting and self._published_at is not None:
            return self._published
        first = self._first()
        times = [] if first is None else [self._time(first)]
        if self._span is not None:
            times.append(self._span[0])
        if times or self._context.bounded:
            return min(times, default=None)
        # With nothing pending, what comes next is expected where the last file was, or after it.
        return _NO_FILE_YET if self._reached is None else self._reached

    @override
    def on_found(self, listing: NewFiles, *, ended: bool) -> NewFiles:
        on_time = super().on_found(listing, ended=ended)
        if ended and self._published_at is None and not self._is_exchanging:
            self._is_exchanging = True
            # A moment later, when what was found is pending.
            self._context.call_async(lambda: None, self._exchange)
            self._context.call_async(lambda: None, self._look_again, self._alignment.interval)
        return on_time

    def _want(self) -> None:
        """Publish and look, after what is under way; the first time after the first listing."""
        self._is_wanted = True
        if self._published_at is not None and not self._is_exchanging:
            self._exchange()

    def _exchange(self, *_: Any) -> None:
        self._is_exchanging, self._is_wanted = True, False
        position, question = self._position, self._questions
        is_news = self._published_at is None or position != self._published or self._is_due
        # From here on, since a publication that fails fails the query.
        self._published = position
        if is_news:
            self._published_at = self._positions.clock()

        def exchange() -> tuple[Peer, ...]:
            if is_news:
                self._positions.publish(position)
            return self._positions.look()

        def exchanged(peers: tuple[Peer, ...] | None, error: BaseException | None) -> None:
            if peers is None:
                raise error or AssertionError
            self._peers, self._answered = peers, question
            self._is_exchanging = False
            if self._is_wanted:
                self._exchange()
            if self._behind:
                self._context.request_planning()

        self._context.call_async(exchange, exchanged)

    @property
    def _is_due(self) -> bool:
        """A source that has a backlog is not idle, however long a batch takes."""
        assert self._published_at is not None
        age = self._positions.clock() - self._published_at
        return self._first() is not None and age > self._positions.idle_after / _RENEWALS

    def _look_again(self, *_: Any) -> None:
        if self._published_at is not None and (
            self._behind or self._position != self._published or self._is_due
        ):
            self._want()
        self._context.call_async(lambda: None, self._look_again, self._alignment.interval)

    # Questions ------------------------------------------------------------------------------

    @property
    @override
    def is_ready(self) -> bool:
        return self._answered == self._questions

    @override
    def cut(self, checkpoint_id: int) -> None:
        super().cut(checkpoint_id)
        self._first_cut = self._first_cut or checkpoint_id
        self._behind = ""
        self._want()

    @override
    def completed(self, checkpoint_id: int) -> None:
        super().completed(checkpoint_id)
        self._questions += 1
        if self._known_after is None and checkpoint_id == self._first_cut:
            self._known_after = self._questions
        self._want()

    @property
    @override
    def wants_checkpoint(self) -> bool:
        # A bounded run ends as soon as no source has anything new: an empty batch keeps it going.
        is_due = self._context.bounded or self._first_cut is None
        return bool(self._behind) and self.is_ready and is_due

    # Admission ------------------------------------------------------------------------------

    @override
    def accepts(self, split: FileSplit, budget: BatchBudget) -> bool:
        self._behind = ""
        if budget.takes_everything:
            return True
        if super().accepts(split, budget):
            self._behind = self._who_holds(self._time(split))
            return not self._behind
        return False

    def _who_holds(self, time: int) -> str:
        if self._known_after is None or self._answered < self._known_after:
            return _UNHEARD
        behind = [
            (position, peer.name)
            for peer in self._peers
            if (position := self._counted(peer)) is not None and time > position + self._policy.skew
        ]
        return min(behind, default=(0, ""))[1]

    def _counted(self, peer: Peer) -> int | None:
        return None if self._positions.is_idle(peer) else peer.position

    @override
    def report(self) -> Mapping[str, Any]:
        peers = {peer.name: _shown(peer.position) for peer in self._peers}
        alignment: dict[str, Any] = {"group": self._positions.group, "sources": peers}
        if self._published_at is not None:
            alignment["position"] = _shown(self._published)
        if self._behind:
            alignment["alignedBehind"] = self._behind
        return {**super().report(), "alignment": alignment}


def _shown(position: int | None) -> str:
    if position is None:
        return "end"
    return "no file yet" if position == _NO_FILE_YET else shown_time(position)
