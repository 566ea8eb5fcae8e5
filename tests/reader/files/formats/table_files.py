"""Tables as files of the block formats, by the formats' own libraries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc, orc

from pyspark_sluice.tests.reader.files.formats.avro_tables import avro_file


def write_table(kind: str, path: Path, table: pa.Table, block_rows: int = 1000) -> None:
    """Write the table in blocks of so many rows; `kind` is a format, or an Arrow `stream`."""
    if kind == "parquet":
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
