"""The schema of formats with types, inferred from files that differ, and the rows read with it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.connector.spark.data_source import SluiceDataSource
from pyspark_sluice.tests.reader.files.formats.avro_tables import avro_file

TABLES = (
    pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]}),
    pa.table({"name": ["c"], "price": [2.5], "id": pa.array([3], pa.int64())}),
)
ROWS = [(1, "a", None, "eu"), (2, "b", None, "eu"), (3, "c", 2.5, "us")]


WRITERS = {
    "orc": pa_orc.write_table,
    "avro": lambda table, path: path.write_bytes(avro_file(table)),
    "arrow": lambda table, path: pa_feather.write_feather(table, str(path)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_schema_is_inferred_and_merged_over_files(tmp_path, name):
    for table, region in zip(TABLES, ("eu", "us"), strict=True):
        (tmp_path / f"region={region}").mkdir()
        WRITERS[name](table, tmp_path / f"region={region}" / "0")
    source = SluiceDataSource({"path": str(tmp_path), "fileformat": name})
    schema = source.schema()
    assert isinstance(schema, StructType)
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    assert types == {"id": "bigint", "name": "string", "price": "double", "region": "string"}
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert (
        sorted(tuple(row[key] for key in ("id", "name", "price", "region")) for row in rows) == ROWS
    )
