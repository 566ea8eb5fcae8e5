"""The records of a query: offsets, and the options and the schema that shape rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import (
    NO_CHECKPOINT,
    NO_IDENTITY,
    CheckpointIdentity,
    CheckpointRef,
)
from pyspark_sluice.checkpoint_meta.history import CheckpointHistory
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.connector.query.partitions import shape_of, shaped_as
from pyspark_sluice.connector.query.spark_checkpoint import Offsets, from_offset, to_offset
from pyspark_sluice.errors import StateCorruptError, StateMissingError, StateVersionError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import document


def test_equal_references_give_equal_json_text_in_canonical_key_order():
    identity = CheckpointIdentity(CheckpointRef(7, 2), "0011", "8899")
    assert json.dumps(to_offset(identity)) == (
        '{"checkpoint": 7, "checksum": "8899", "epoch": 2, "lineage": "0011", "version": 1}'
    )
    assert from_offset(dict(reversed(to_offset(identity).items()))) == identity


def test_a_newer_offset_is_refused_with_both_versions_named():
    with pytest.raises(StateVersionError, match=r"found offset version 9; expected at most .* 1"):
        from_offset({"checkpoint": 1, "epoch": 1, "version": 9})


def _with(**changes):
    return {
        "checkpoint": 7,
        "checksum": "8899",
        "epoch": 2,
        "lineage": "0011",
        "version": 1,
        **changes,
    }


@pytest.mark.parametrize(
    "offset",
    [
        {"logOffset": 3},
        5,
        [1],
        "7",
        None,
        {},
        _with(checkpoint=-1),
        _with(epoch=-2),
        _with(checkpoint="7"),
        _with(epoch=2.0),
        _with(checkpoint=True),
        _with(checkpoint=0),
        _with(epoch=0),
        _with(version=0),
        _with(version="1"),
        _with(lineage=""),
        _with(checksum=None),
        {"checkpoint": 7, "epoch": 2, "version": 1},
        {"checkpoint": 7, "checksum": "8899", "epoch": 2, "lineage": "0011"},
    ],
)
def test_an_offset_that_is_not_ours_is_refused_and_shown(offset):
    with pytest.raises(StateCorruptError, match="of another source") as caught:
        from_offset(offset)
    assert f"found {json.dumps(offset)}; expected {{" in str(caught.value)


def test_the_offset_before_anything_is_read_names_no_state():
    assert from_offset(to_offset(NO_IDENTITY)) == NO_IDENTITY
    offsets = Offsets(CheckpointHistory(MemoryStateStore()))
    assert offsets.ref(offsets.offset(NO_CHECKPOINT)) == NO_CHECKPOINT


@pytest.fixture
def history():
    history = CheckpointHistory(MemoryStateStore())
    history.publish(document(1, 1, NO_CHECKPOINT))
    return history


def test_an_offset_names_one_checkpoint_and_no_other_of_that_name(history):
    ref = CheckpointRef(1, 1)
    offset = Offsets(history).offset(ref)
    assert Offsets(history).ref(offset) == ref
    with pytest.raises(StateCorruptError, match="it is from another query"):
        Offsets(history).ref({**offset, "lineage": "ffff"})
    with pytest.raises(StateCorruptError, match="it is from another copy of the state"):
        Offsets(history).ref({**offset, "checksum": "ffff"})
    with pytest.raises(StateMissingError, match="checkpoint 2 of epoch 1 is not in the state"):
        Offsets(history).ref({**offset, "checkpoint": 2})


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


def test_options_come_back_from_json_as_they_were_without_secrets_and_defaults():
    first = options(**GIVEN)
    recorded = json.loads(json.dumps(shape_of(first, SCHEMA)))
    again = shaped_as(options(mode="FAILFAST", basepath="/elsewhere", locale="en-us"), recorded)
    unrecorded = {"storage_options", "batch_bytes", "base_path", "schema_hints"}
    for name in set(ReaderOptions.model_fields) - unrecorded:
        assert getattr(again, name) == getattr(first, name), name
    assert again.base_path == "/in"
    assert again.path == "/other"
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
