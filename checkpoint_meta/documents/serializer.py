"""How a source's own values get into a checkpoint and out of it again.

Flink's SimpleVersionedSerializer, with Arrow record batches in the place of bytes: what a
checkpoint holds can then be read with any Arrow tool. The version travels outside the batch.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from pyarrow import ipc
from typing_extensions import override

from ...errors import StateVersionError

T = TypeVar("T")


def to_ipc(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    new: Callable[..., Any] = ipc.new_file,
    **options: Any,
) -> bytes:
    """The batches as an Arrow file, or as a stream with `ipc.new_stream`.

    Args:
        schema: the schema of all batches.
        batches: taken one by one.
        new: opens the writer.
        options: fields of `IpcWriteOptions`.
    """
    sink = pa.BufferOutputStream()
    with new(sink, schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


class Split(Protocol):
    """An immutable unit of work, with an identity that is derived from its content."""

    @property
    def split_id(self) -> str:
        """Equal for equal work, in every process and after every restart."""


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


def read_columns(
    serializer: VersionedSerializer[Sequence[T]], version: int, columns: Mapping[str, Sequence[Any]]
) -> Sequence[T]:
    """`read` of the columns of a JSON document. These have no types, and may lack newer columns."""
    empty = serializer.serialize([])
    schema = pa.schema([field for field in empty.schema if field.name in columns])
    batch = pa.record_batch(dict(columns), schema=schema) if columns else empty
    return serializer.read(version, batch)


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
        # Sorted, since equal values have to give equal batches.
        texts = [json.dumps(self._to_json(item), sort_keys=True) for item in value]
        return pa.record_batch({"json": pa.array(texts, pa.string())})

    @override
    def deserialize(self, version: int, batch: pa.RecordBatch) -> Sequence[T]:
        texts = batch.column("json").to_pylist()
        return [self._from_json(version, json.loads(text)) for text in texts]
