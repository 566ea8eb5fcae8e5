"""Discovery of files that a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.enumerator.files.discovery.api import (
    Discovery,
    FoundFiles,
    KnownFiles,
    Skipped,
    SkippedFile,
)


def found(files: Sequence[FileVersion]) -> FoundFiles:
    return FoundFiles(
        [file.path for file in files],
        np.array([file.size for file in files], np.int64),
        np.array([file.modified for file in files], np.int64),
        [file.etag for file in files] if any(file.etag for file in files) else None,
    )


class Listed(Discovery):
    """Hands out what a function lists, some files at a time; known ones only on demand."""

    def __init__(
        self,
        files: Callable[[], Iterable[FileVersion]],
        chunk: int = 1000,
        *,
        with_known: bool = False,
    ) -> None:
        self._files = files
        self._chunk = chunk
        self._with_known = with_known

    @property
    def skipped(self) -> Skipped:
        return Skipped()

    def listing(self, known: KnownFiles) -> Iterator[FoundFiles]:
        files = list(self._files())
        for at in range(0, len(files), self._chunk):
            part = files[at : at + self._chunk]
            are_known = known.are_known([file.path for file in part]).tolist()
            new = [f for f, old in zip(part, are_known, strict=True) if self._with_known or not old]
            if new:
                yield found(new)

    def left_out(self, known: KnownFiles) -> Iterator[SkippedFile]:
        return iter(())

    def position(self) -> Mapping[str, Any]:
        return {}

    def resume(self, position: Mapping[str, Any]) -> None:
        """No files."""
