"""Tables as files of each format, by the formats' own libraries."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc, orc


def write_table(kind: str, path: Path, table: pa.Table, block_rows: int = 1000) -> None:
    """Write the table in blocks of so many rows; `kind` is a format, or an Arrow `stream`."""
    if kind in ("csv", "json", "xml"):
        path.write_text("".join(line + "\n" for line in _lines(kind, table)))
    elif kind == "parquet":
        pq.write_table(table, path, row_group_size=block_rows)
    elif kind == "orc":
        # Of tables, not of slices of one: Arrow's writer takes the nulls of a sliced struct from
        # the wrong place.
        with orc.ORCWriter(path, stripe_size=1, batch_size=block_rows) as writer:
            for start in range(0, max(1, table.num_rows), block_rows):
                rows = table.slice(start, block_rows).to_pylist()
                writer.write(pa.Table.from_pylist(rows, table.schema))
    elif kind == "avro":
        # About 40 bytes a row: fastavro closes a block by bytes.
        path.write_bytes(avro_file(table, codec="deflate", sync_interval=40 * block_rows))
    else:
        new = {"arrow": ipc.new_file, "stream": ipc.new_stream}[kind]
        with new(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=block_rows)


def _lines(kind: str, table: pa.Table) -> list[str]:
    """Plain values, with a header in CSV."""
    rows = table.to_pylist()
    if kind == "json":
        return [*map(json.dumps, rows)]
    if kind == "csv":
        return [",".join(map(str, line)) for line in (table.column_names, *map(dict.values, rows))]
    fields = ("".join(f"<{name}>{value}</{name}>" for name, value in row.items()) for row in rows)
    return [f"<ROW>{inner}</ROW>" for inner in fields]


def avro_file(table: pa.Table, **options: Any) -> bytes:
    """A table as fastavro writes it, with null in each union."""
    # Avro has no columns with dots and spaces in their names, but fastavro writes them.
    columns = [{"name": f.name, "type": _avro_type(f, f"r{n}")} for n, f in enumerate(table.schema)]
    sink = io.BytesIO()
    rows = table.to_pylist(maps_as_pydicts="strict")
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": columns}, rows, **options)
    return sink.getvalue()


_IN_AVRO: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}


def _avro_type(field: pa.Field, name: str) -> list[Any]:
    """A union of null and the type; `name` makes the names of its records differ."""
    kind = field.type
    if pa.types.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return ["null", {"type": "bytes", "logicalType": "decimal", **digits}]
    if pa.types.is_struct(kind):
        parts = [{"name": f.name, "type": _avro_type(f, f"{name}_{n}")} for n, f in enumerate(kind)]
        return ["null", {"type": "record", "name": name, "fields": parts}]
    if pa.types.is_list(kind):
        return ["null", {"type": "array", "items": _avro_type(kind.value_field, name)}]
    if pa.types.is_map(kind):
        return ["null", {"type": "map", "values": _avro_type(kind.item_field, name)}]
    return ["null", _IN_AVRO[kind]]
