"""What becomes of splits that readers send back: another attempt, or quarantine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...checkpoint_meta.documents.checkpoint import QuarantinedSplit


class ReturnedSplits:
    """Counts attempts by split id. Its whole content goes into every checkpoint."""

    def __init__(
        self,
        max_attempts: int,
        attempts: Mapping[str, int],
        quarantined: Sequence[QuarantinedSplit] = (),
    ) -> None:
        """`quarantined` are the splits that the state restored from has given up on."""
        self._max_attempts = max_attempts
        self.attempts = dict(attempts)
        """Split id -> times sent back; open cases only."""
        self._quarantined = list(quarantined)
        self._new: list[QuarantinedSplit] = []
        self._released: list[str] = []

    def judge(self, split_id: str, reason: str, checkpoint: int) -> bool:
        """Count one return; True if the split is to be assigned again."""
        # Taken out: a case that ends here must not be in every checkpoint to come.
        attempts = self.attempts.pop(split_id, 0) + 1
        if attempts < self._max_attempts:
            self.attempts[split_id] = attempts
            return True
        self.abandon(split_id, reason, checkpoint, attempts)
        return False

    def abandon(self, split_id: str, reason: str, checkpoint: int, attempts: int = 0) -> None:
        """Into quarantine, after so many attempts."""
        given_up = QuarantinedSplit(
            split_id=split_id, reason=reason, attempts=attempts, checkpoint=checkpoint
        )
        self._new.append(given_up)
        self._quarantined.append(given_up)

    @property
    def quarantined_total(self) -> int:
        """Splits given up on so far."""
        return len(self._quarantined)

    @property
    def wants_checkpoint(self) -> bool:
        """True while no checkpoint lists what was given up on: at the end of a run none follows."""
        return bool(self._new)

    def forget(self, split_ids: Iterable[str]) -> None:
        """These were read after all."""
        for split_id in split_ids:
            self.attempts.pop(split_id, None)

    def list_again(
        self, quarantined: Sequence[QuarantinedSplit], released: Iterable[str] = ()
    ) -> None:
        """List these again: of a savepoint that the next cut makes its own, or of an abort."""
        # In front: it was given up before what came since.
        self._new = [*quarantined, *self._new]
        self._released = [*released, *self._released]

    def release(self, split_ids: Iterable[str]) -> None:
        """These leave the quarantine, by an order; their attempts are counted from 0."""
        ids = set(split_ids)
        self.forget(ids)
        self._quarantined = [split for split in self._quarantined if split.split_id not in ids]
        self._new = [split for split in self._new if split.split_id not in ids]
        self._released += sorted(ids)

    def take(self) -> tuple[list[QuarantinedSplit], list[str]]:
        """Given up on since the last cut, and released since; the one being made lists them."""
        taken = self._new, self._released
        self._new, self._released = [], []
        return taken

    def quarantined_at_cut(self) -> Sequence[QuarantinedSplit]:
        """All given up on that checkpoints list; called right after a cut or a restore."""
        return list(self._quarantined)
