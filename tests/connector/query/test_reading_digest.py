"""What shapes rows is recorded, secrets are not, and is taken up again as it was."""

from __future__ import annotations

import json

import pyarrow as pa

from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.connector.query.partition_reader import shape_of, shaped_as
from pyspark_sluice.reader.files.options import ReaderOptions

SCHEMA = pa.schema([("id", pa.int64())])
GIVEN = {
    "path": "/in",
    "fileformat": "csv",
    "mode": "DROPMALFORMED",
    "filter": "id > 3",
    "delimiter": r";\\",
    "timestampntzformat": "yyyy",
    "storageoptions": '{"secret": "hunter2"}',
    "batchbytes": "1m",
    "schemahints": "id long",
}


def options(**given: str) -> SluiceOptions:
    return parse_options({"path": "/other", **given}, streaming=False)


def test_options_come_back_from_json_as_they_were():
    first = options(**GIVEN)
    recorded = json.loads(json.dumps(shape_of(first, SCHEMA)))
    again = shaped_as(options(mode="FAILFAST", basepath="/elsewhere", locale="en-us"), recorded)
    unrecorded = {"storage_options", "batch_bytes", "base_path", "schema_hints"}
    for name in set(ReaderOptions.model_fields) - unrecorded:
        assert getattr(again, name) == getattr(first, name), name
    assert again.base_path == "/in"
    assert again.path == "/other"


def test_neither_secrets_nor_defaults_are_recorded():
    recorded = shape_of(options(**GIVEN), SCHEMA)
    assert "hunter2" not in json.dumps(recorded)
    assert set(recorded["options"]) == {
        *("fileFormat", "mode", "filter", "sep", "timestampNTZFormat", "basePath")
    }


def test_another_schema_has_another_digest():
    other = pa.schema([("id", pa.int32())])
    shapes = [shape_of(options(), schema)["schema"] for schema in (SCHEMA, SCHEMA, other)]
    assert shapes[0] == shapes[1] != shapes[2]


def test_where_nothing_was_recorded_the_options_of_today_count():
    today = options(mode="PERMISSIVE")
    assert shaped_as(today, {}) == today
