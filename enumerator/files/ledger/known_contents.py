"""Which contents are known, and which files have to wait until that is sure (`identity=content`).

A content becomes known when a file that has it is assigned, in the checkpoint of that assignment:
this is the order in which files are read, and it survives a crash as the assignment does. Until a
reader has finished the file, another one with the same content stays pending and is not taken: if
nothing was read of the first, it is read instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import compress
from typing import Any, TypeAlias

from ....checkpoint_meta.files.file_split import FileSplit, FileVersion
from ....checkpoint_meta.storage.contract import Storage, at_once
from ....checkpoint_meta.storage.open_storage import open_storage
from ....checkpoint_meta.storage.storage_errors import patiently
from .pending import PendingRanges
from .seen_files import SeenFiles

Digest: TypeAlias = Callable[[Sequence[FileVersion]], list[str]]
"""The content of each of some files, as 32 hexadecimal digits; empty where the file is gone."""


class KnownContents:
    """Under the coordinator's lock."""

    def __init__(self, seen: SeenFiles, pending: PendingRanges) -> None:
        self._seen, self._pending = seen, pending
        self._taken: set[str] = set()
        """Of files assigned since the last cut."""
        self._cuts: deque[tuple[int, set[str]]] = deque()
        """Likewise, by checkpoints that are not known to be complete."""
        self._in_doubt = len(seen) > 0
        """True while a file that an earlier incarnation has assigned may still come back."""
        self._looked_up: dict[str, bool] = {}
        """For some contents whether they are known."""
        self._waiting: dict[bool, list[FileSplit]] = {False: [], True: []}
        """Set aside, by whether a snapshot lacks them: they wait for a reader."""
        self._repeats: list[FileSplit] = []
        """Set aside: their content was read from another file."""
        self.being_read: set[FileVersion] = set()
        """Pending files of which the content is not read yet."""
        self._is_news = False
        """What was parked may be taken, or be passed over, now."""

    # Taking ---------------------------------------------------------------------------------

    def begin(self, *, awaits_readers: bool) -> None:
        """Look again at what waits, if there is news of the readers."""
        if not awaits_readers:
            self._in_doubt = False
        if self._is_news or not awaits_readers:
            self._cuts = self._cuts if awaits_readers else deque()
            self._pending.unpark()
        self._is_news = False

    def set_aside(self, split: FileSplit, *, last: bool) -> bool:
        """Take the range at that end out of the order, unless it may be assigned."""
        # Of a file that was begun the rest is read, whatever else has its content.
        if not split.is_whole_file:
            return False
        content, fresh = split.file.digest, self._pending.is_fresh(last=last)
        if split.file in self.being_read:
            self._waiting[fresh].append(split)
        elif not content or not self._is_known(content, last=last):
            return False
        elif self._in_doubt or content in self._taken or any(content in c for _, c in self._cuts):
            self._waiting[fresh].append(split)
        else:
            self._repeats.append(split)
        self._pending.take(None, last=last)
        return True

    def _is_known(self, content: str, *, last: bool) -> bool:
        if content not in self._looked_up:
            # Many at a time, since one look takes as long as a thousand.
            contents = [s.file.digest for s in self._pending.upcoming(last=last)]
            wanted = [*{content, *filter(None, contents)}]
            known = self._seen.are_contents_known(wanted).tolist()
            self._looked_up = dict(zip(wanted, known, strict=True))
        return content in self._taken or self._looked_up[content]

    def took(self, split: FileSplit) -> None:
        """This was assigned."""
        if split.file.digest and split.start == 0 and not split.skip:
            self._taken.add(split.file.digest)

    def end(self) -> Sequence[FileSplit]:
        """Nothing more is taken for now: what was set aside waits; the repeats among it."""
        for fresh, splits in self._waiting.items():
            self._pending.park(splits, fresh=fresh)
        self._waiting = {False: [], True: []}
        repeats, self._repeats = self._repeats, []
        return repeats

    def known_among(self, contents: Iterable[str]) -> set[str]:
        """Those of these contents that are known."""
        some = [*{*filter(None, contents)}]
        known = compress(some, self._seen.are_contents_known(some).tolist())
        return {*known} | self._taken.intersection(some)

    # What becomes of files --------------------------------------------------------------------

    def release(self, contents: Iterable[str]) -> None:
        """Nothing was read of the files that were assigned with these contents."""
        released = set(contents)
        self._taken -= released
        for _, taken in self._cuts:
            taken.difference_update(released)
        self._seen.add_contents(released, known=False)
        self._looked_up.clear()
        self._is_news = True

    def look_again(self) -> None:
        """Something else than a reader has news of what waits."""
        self._is_news = True

    # Checkpoints ----------------------------------------------------------------------------

    def cut(self, checkpoint_id: int) -> None:
        """What was taken is in this checkpoint."""
        self._seen.add_contents(self._taken, known=True)
        self._cuts.append((checkpoint_id, self._taken))
        self._looked_up.clear()
        self._taken = set()

    def aborted(self, checkpoint_id: int) -> None:
        """What was in this checkpoint, the newest, will be in the next one."""
        while self._cuts and self._cuts[-1][0] >= checkpoint_id:
            self._taken |= self._cuts.pop()[1]

    def completed(self, checkpoint_id: int) -> None:
        """What readers say of this checkpoint and all before it is counted."""
        while self._cuts and self._cuts[0][0] <= checkpoint_id:
            self._cuts.popleft()
            # Also of what an earlier incarnation has assigned.
            self._in_doubt = False
            self._is_news = True


def digests(storage_options: Mapping[str, Any], files: Sequence[FileVersion]) -> list[str]:
    """The content of each file as it is now, as a `Digest`.

    Raises:
        OSError: one cannot be read.
    """
    return at_once(partial(_digest, storage_options), files)


def _digest(storage_options: Mapping[str, Any], file: FileVersion) -> str:
    try:
        return patiently(partial(_read, *open_storage(file.path, storage_options)))
    except FileNotFoundError:
        # The options of reading say what that means.
        return ""


def _read(storage: Storage, name: str) -> str:
    # Nobody can make another file with the same digest, which would keep this one out of the table.
    digest = blake2b(digest_size=16)
    for part in storage.parts(name):
        digest.update(part)
    return digest.hexdigest()
