"""How a source's own values get into a checkpoint and out of it again.

Flink's SimpleVersionedSerializer, with Arrow record batches in the place of bytes: what a
checkpoint holds can then be read with any Arrow tool. The version travels outside the batch.

Not here: the checkpoint around it (`checkpoint.py`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa
from typing_extensions import override

from ...errors import StateVersionError
from .file_columns import FILES, file_columns, ranges_of, splits_in
from .file_split import FileSplit, FileVersion

T = TypeVar("T")


class VersionedSerializer(ABC, Generic[T]):
    """Writes its current version, reads that and every older one."""

    @property
    @abstractmethod
    def version(self) -> int:
        """The version `serialize` writes; raised by one whenever the layout changes."""

    @abstractmethod
    def serialize(self, value: T) -> pa.RecordBatch:
        """`value` as one record batch; equal values give equal batches.

        The schema must depend on the version alone, never on the value.
        """

    @abstractmethod
    def deserialize(self, version: int, batch: pa.RecordBatch) -> T:
        """The value that `serialize` of `version` turned into `batch`.

        Called only with versions from 1 to `self.version`.
        """

    def serialize_all(self, value: T) -> Sequence[pa.RecordBatch]:
        """`value` as one record batch or several: a column of text holds at most 2 GiB.

        What each batch is read back as adds up to `value`, in their order.
        """
        return [self.serialize(value)]

    def check_version(self, version: int) -> None:
        """Refuse what a newer release has written.

        Raises:
            StateVersionError: `version` is newer than `self.version`.
        """
        if version > self.version:
            raise StateVersionError(
                f"{type(self).__name__} cannot read newer data",
                "",
                f"version {version}",
                f"at most version {self.version}",
                "Upgrade this installation, or start from an older checkpoint.",
            )

    def read(self, version: int, batch: pa.RecordBatch) -> T:
        """`deserialize`, after refusing what a newer release has written.

        Raises:
            StateVersionError: `version` is newer than `self.version`.
        """
        self.check_version(version)
        return self.deserialize(version, batch)


class JsonSerializer(VersionedSerializer[Sequence[T]], Generic[T]):
    """A sequence of values, each as one JSON text: the easy way for a source of one's own."""

    def __init__(
        self, version: int, to_json: Callable[[T], Any], from_json: Callable[[int, Any], T]
    ) -> None:
        self._version = version
        self._to_json = to_json
        self._from_json = from_json

    @property
    @override
    def version(self) -> int:
        return self._version

    @override
    def serialize(self, value: Sequence[T]) -> pa.RecordBatch:
        texts = [json.dumps(self._to_json(item), sort_keys=True) for item in value]
        return pa.record_batch({"json": pa.array(texts, pa.string())})

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[T]:
        texts = batch.column("json").to_pylist()
        return [self._from_json(version, json.loads(text)) for text in texts]


class FileSerializer(VersionedSerializer[Sequence[FileVersion]]):
    """File versions as four columns: path, size, modified (microseconds), etag."""

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: Sequence[FileVersion]) -> pa.RecordBatch:
        return pa.record_batch(file_columns(value), schema=FILES)

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[FileVersion]:
        columns = [batch.column(name).to_pylist() for name in FILES.names]
        return list(map(FileVersion, *columns))


class FileSplitSerializer(VersionedSerializer[Sequence[FileSplit]]):
    """File splits as six columns: those of the file, then start and end."""

    def __init__(self, most_text: int = 2**31 - 1) -> None:
        """`most_text` is how many bytes of text a column of one record batch may hold."""
        self._most_text = most_text

    @property
    @override
    def version(self) -> int:
        return 1

    @override
    def serialize(self, value: Sequence[FileSplit]) -> pa.RecordBatch:
        return ranges_of(value)

    @override
    def serialize_all(self, value: Sequence[FileSplit]) -> Sequence[pa.RecordBatch]:
        # A character has at most four bytes: few states have to be measured exactly.
        if 4 * sum(len(s.file.path) + len(s.file.etag) for s in value) <= self._most_text:
            return [self.serialize(value)]
        sizes = (max(len(s.file.path.encode()), len(s.file.etag.encode())) for s in value)
        starts, total = [0], 0
        for at, size in enumerate(sizes):
            total += size
            if total > self._most_text and at > starts[-1]:
                starts.append(at)
                total = size
        ends = [*starts[1:], len(value)]
        return [self.serialize(value[a:b]) for a, b in zip(starts, ends, strict=True)]

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[FileSplit]:
        return splits_in(batch)
