"""Bad records and bad files as JSON lines, in files that only one attempt writes.

The directory of a checkpoint is that of Databricks: `bad_records` and `bad_files` below it. Records
are in memory one batch at a time, and a file is closed at a size that one upload takes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...checkpoint_meta.documents.written_file import BadRecordsFile, FileName
from ...checkpoint_meta.storage.contract import Draft
from ..api import LeftOut
from .place import Place

_FILE_BYTES: Final = 32 * 1024 * 1024


@dataclass
class _OpenFile:
    draft: Draft
    lines: int = 0


class BadRecordsWriter:
    """Writes what one attempt leaves out of the rows of one assignment; used once.

    A crash before the reader commit leaves files that no commit names. The attempt that commits
    deletes them, or else the query's upkeep does.
    """

    def __init__(self, place: Place, name: FileName) -> None:
        """`place` is what `badRecordsPath` names."""
        self._place = place
        self._name = name
        self._open: dict[str, _OpenFile] = {}
        self._written: list[BadRecordsFile] = []
        self._begun = 0

    def write(self, left_out: LeftOut) -> None:
        """Take some records or files.

        Raises:
            OSError: a file cannot be written.
        """
        for row in left_out.batch.to_pylist():
            values = {key: value for key, value in row.items() if value is not None}
            line = json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n"
            file = self._file(left_out.kind)
            file.draft.sink.write(line.encode())
            file.lines += 1
            if file.draft.sink.tell() >= _FILE_BYTES:
                self._close(left_out.kind)

    def finish(self) -> Sequence[BadRecordsFile]:
        """Everything is written and durable."""
        for kind in list(self._open):
            self._close(kind)
        return self._written

    def settle(self, named: Collection[str]) -> None:
        """The commit that counts names these files: delete those of all other attempts."""
        # If another attempt's commit counts, nothing names these files.
        mine = [file.path for file in self._written]
        if not set(mine) <= set(named):
            self.discard()
            return
        # Attempts that were killed could not delete their own files.
        for path in {path.rsplit("/", 1)[0] + "/" for path in mine}:
            for other in self._place.files(path):
                if self._is_of_another_attempt(other):
                    with contextlib.suppress(OSError):  # The query's upkeep tries again.
                        self._place.delete(other)

    def discard(self) -> None:
        """Remove what was written, as far as possible: no commit will name it."""
        for file in self._open.values():
            file.draft.discard()
        self._open.clear()
        for written in self._written:
            with contextlib.suppress(OSError):
                self._place.delete(written.path)

    def _is_of_another_attempt(self, path: str) -> bool:
        name, own = FileName.parse(path), self._name
        if name is None or name.token == own.token:
            return False
        return (name.checkpoint, name.reader) == (own.checkpoint, own.reader)

    def _file(self, kind: str) -> _OpenFile:
        if kind not in self._open:
            own = self._name
            # One directory per checkpoint and epoch, so that a task lists only what attempts at its
            # own work left.
            checkpoint = f"{own.checkpoint.lineage}-{own.checkpoint.ref.name}"
            name = f"{checkpoint}/{kind}/{replace(own, number=self._begun)}"
            self._open[kind] = _OpenFile(self._place.begin(name))
            self._begun += 1
        return self._open[kind]

    def _close(self, kind: str) -> None:
        file = self._open[kind]
        published = file.draft.publish()
        self._written.append(BadRecordsFile(path=published, records=file.lines))
        del self._open[kind]
