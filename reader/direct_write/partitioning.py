"""Rows by the values of partition columns, as Hive, Spark and Delta write those values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import OptionError
from ..files.path_columns import NULL

_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
"""What Spark quotes in names of partition directories (ExternalCatalogUtils)."""

_MOST = 2**63 - 1
"""The greatest number of 64 bits."""

_types = pa.types
Values = tuple[Any, ...]


class Partitioning:
    """Takes batches apart by their partition columns."""

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        """`schema` is that of the rows.

        Raises:
            OptionError: a column is missing, or of a type that is no partition value; or no
                column would be left for the files.
        """
        self._columns = list(columns)
        missing = [name for name in columns if name not in schema.names]
        if missing or len(set(columns)) < len(columns):
            raise _refused("columns of the rows, each once", missing or columns)
        odd = [name for name in columns if not _may_partition(schema.field(name).type)]
        if odd:
            kinds = [f"{name} {schema.field(name).type}" for name in odd]
            raise _refused("columns of text, numbers, booleans, dates or timestamps", kinds)
        kept = [field for field in schema if field.name not in columns]
        if not kept:
            raise _refused("at least one other column for the files", columns)
        self.schema = pa.schema(kept)
        """Schema of the data files, which have no partition columns."""

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """The values of each partition and its rows in order, as the files have them."""
        keys = [key.dictionary_encode() for key in self._keys(batch)]
        if not keys:
            yield (), batch
            return
        rest = batch.select(self.schema.names)
        # Null is one more value of each column, behind those of the dictionary.
        codes = [pc.fill_null(k.indices, len(k.dictionary)).to_numpy() for k in keys]
        sizes = [len(k.dictionary) + 1 for k in keys]
        # One number for each combination of values; the codes themselves have 32 bits.
        whole, count = codes[0].astype(np.int64), sizes[0]
        for more, size in zip(codes[1:], sizes[1:], strict=True):
            if count * size > _MOST:
                # In the same order, but no more numbers than rows.
                _, whole = np.unique(whole, return_inverse=True)
                count = len(whole)
            whole, count = whole * size + more, count * size
        # Stable, so that rows of a partition keep their order.
        order = np.argsort(whole, kind="stable")
        if not len(order):
            return
        for rows in np.split(order, np.flatnonzero(np.diff(whole[order])) + 1):
            values = tuple(key[int(rows[0])].as_py() for key in keys)
            # Parts that are cut out of one sorted batch would keep all of it in memory.
            yield values, rest if len(rows) == len(order) else rest.take(pa.array(rows))

    def _keys(self, batch: pa.RecordBatch) -> Sequence[pa.Array]:
        """The partition values of each row, one array per column."""
        return [_texts(batch.column(name)) for name in self._columns]

    def metadata(self, values: Values) -> Mapping[bytes, str]:  # noqa: ARG002 - see the subclass
        """Metadata for the footers of the files of a partition."""
        return {}

    def mapping(self, values: Values) -> Mapping[str, str | None]:
        """Partition column -> its value as text; None for null."""
        return dict(zip(self._columns, values, strict=True))

    def directory(self, values: Values) -> str:
        """The directories of a partition, with a slash at the end; empty without columns."""
        parts = (
            f"{_quoted(name)}={NULL if value is None else _quoted(value)}/"
            for name, value in zip(self._columns, values, strict=True)
        )
        return "".join(parts)


def _may_partition(kind: pa.DataType) -> bool:
    numbers = (_types.is_integer, _types.is_floating, _types.is_decimal)
    others = (_types.is_string, _types.is_boolean, _types.is_date32, _types.is_timestamp)
    return any(is_kind(kind) for is_kind in (*numbers, *others))


def partition_text(value: pa.Scalar) -> str | None:
    """One value as tables have it."""
    text: str | None = _texts(pa.array([value.as_py()], value.type))[0].as_py()
    return text


def _texts(column: pa.Array) -> pa.Array:
    """Values as Delta's protocol writes them; an empty text is null there."""
    if _types.is_timestamp(column.type):
        # Spark would read an instant without its zone in the zone of whichever session reads it.
        layout, zone = ("%Y-%m-%dT%H:%M:%S", "Z") if column.type.tz else ("%Y-%m-%d %H:%M:%S", "")
        text = pc.strftime(column.cast(pa.timestamp("us")), layout)
        # Arrow writes six digits of a fraction; Spark leaves out a fraction of zero.
        return pc.replace_substring_regex(text, r"(\.0+)?$", zone, max_replacements=1)
    text = column.cast(pa.string())
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _quoted(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _refused(expected: str, value: object) -> OptionError:
    return OptionError(
        "writePartitionBy: rows cannot be partitioned by these columns", "", str(value), expected
    )
