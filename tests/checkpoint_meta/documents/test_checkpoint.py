"""Checkpoint documents and splits as columns: what goes in comes out, or an error says why not."""

import json
import re
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.checkpoint import Checkpoint, QuarantinedSplit
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion, SampledFile
from pyspark_sluice.errors import StateCorruptError, StateVersionError
from pyspark_sluice.tests.checkpoint_meta.checkpoint_chains import document

pytestmark = pytest.mark.slow

PATHS = st.text("a/é\U0001f600 '\"%", min_size=1, max_size=20)
TEXTS = st.lists(st.text("aé\U0001f600", max_size=20), max_size=30)
FILES = st.builds(FileVersion, PATHS, st.integers(0, 2**60), st.integers(-1, 2**60), PATHS)
_BYTES = st.integers(0, 2**60)
_BOUNDS = dict.fromkeys(("read_bytes", "skip"), _BYTES)
SPLITS = st.builds(FileSplit, FILES, _BYTES, _BYTES, **_BOUNDS, replaces=st.integers(0, 2))
SERIALIZER = FileSplitSerializer()


def checkpoint(assigned=(), state=(), **header):
    batches = [(reader, SERIALIZER.serialize(splits)) for reader, splits in assigned]
    counts = {
        "assigned_splits": sum(len(splits) for _, splits in assigned),
        "state_rows": len(state),
    }
    empty = document(7, 2, CheckpointRef(6, 1), parent_checksum="0" * 16, **counts, **header)
    return replace(empty, assigned=batches, state=[SERIALIZER.serialize(state)])


def a_checkpoint():
    file = FileVersion("/data/a.json", 100, 5, "etag")
    return checkpoint(
        [(0, [FileSplit(file, 0, 50)]), (3, [FileSplit(file, 50, 100)])],
        [FileSplit(FileVersion("/data/b.json", 9, 6), 0, 9)],
        attempts={"x": 2},
        events={"3": [{"a": 1}]},
        waiting={"1": ["later"]},
        quarantined=[QuarantinedSplit(split_id="y", reason="gone", attempts=3, checkpoint=5)],
    )


@given(
    assigned=st.lists(
        st.tuples(st.integers(0, 9), st.lists(SPLITS, min_size=1, max_size=3)), max_size=3
    ),
    state=st.lists(SPLITS, max_size=3),
    events=st.dictionaries(st.sampled_from("012"), st.lists(PATHS, max_size=2), max_size=2),
)
def test_what_goes_in_comes_out(assigned, state, events):
    written = checkpoint(assigned, state, events=events)
    read = Checkpoint.from_bytes(written.to_bytes(), "here")
    assert read.header.model_copy(update={"checksum": ""}) == written.header.model_copy(
        update={"checksum": ""}
    )
    assert [(r, list(SERIALIZER.read(1, b))) for r, b in read.assigned] == assigned
    assert [s for batch in read.state for s in SERIALIZER.read(1, batch)] == state


def test_equal_checkpoints_give_equal_bytes():
    assert a_checkpoint().to_bytes() == a_checkpoint().to_bytes()


def test_a_name_that_looks_like_a_checksum_survives():
    text = "0" * 200
    file = FileVersion(f"/data/{text}", 1, 1)
    written = checkpoint([(0, [FileSplit(file, 0, 1)])], attempts={text: 1})
    read = Checkpoint.from_bytes(written.to_bytes(), "here")
    assert read.header.attempts == {text: 1}
    assert SERIALIZER.read(1, read.assigned[0][1])[0].file == file


@pytest.mark.parametrize("length", [0, 1, 8, 100, -1])
def test_a_file_cut_short_is_noticed_and_named(length):
    data = a_checkpoint().to_bytes()[:length]
    with pytest.raises(StateCorruptError, match=r"a checkpoint is damaged: /ck/7\.arrow"):
        Checkpoint.from_bytes(data, "/ck/7.arrow")


def rewritten(change):
    """The file of a checkpoint with another header; the checksum is left as it is."""
    data = a_checkpoint().to_bytes()
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        table = reader.read_all()
    metadata = dict(table.schema.metadata)
    header = json.loads(metadata[b"sluice"])
    metadata[b"sluice"] = json.dumps(change(header)).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_a_newer_version_is_refused_with_both_versions_named_before_its_content_is_read():
    data = rewritten(lambda header: {"format": 5, "all": "is different"})
    expected = "found format version 5; expected at most format version 1"
    with pytest.raises(StateVersionError, match=expected):
        Checkpoint.from_bytes(data, "here")


def test_a_wrong_checksum_is_named_with_the_right_one():
    data = rewritten(lambda header: {**header, "checksum": "a" * 64})
    with pytest.raises(StateCorruptError, match=r"found checksum [0-9a-f]{64}; expected checksum"):
        Checkpoint.from_bytes(data, "here")


@pytest.mark.parametrize("checksum", ["", "a", "a" * 65, None])
def test_a_checksum_of_another_length_is_refused_before_it_takes_memory(checksum):
    data = rewritten(lambda header: {**header, "checksum": checksum, "padding": "a" * 1_000_000})
    tracemalloc.start()
    try:
        with pytest.raises(StateCorruptError, match="expected a checksum of 64 digits"):
            Checkpoint.from_bytes(data, "here")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(data)


@pytest.mark.parametrize("header", [None, [], 7, {"format": "one"}, {}])
def test_an_arrow_file_that_is_no_checkpoint_is_refused(header):
    with pytest.raises(StateCorruptError, match=re.escape("a JSON header under the key 'sluice'")):
        Checkpoint.from_bytes(rewritten(lambda _: header), "here")


@given(paths=TEXTS, most=st.integers(1, 100))
def test_text_that_is_too_much_for_one_column_goes_into_several_batches(paths, most):
    splits = [FileSplit(FileVersion(path, i, i, path[:3]), 0, i) for i, path in enumerate(paths)]
    serializer = FileSplitSerializer(most)
    batches = serializer.serialize_all(splits)
    assert [s for batch in batches for s in serializer.deserialize(1, batch)] == splits
    assert len({str(batch.schema) for batch in batches}) == 1
    for batch in batches:
        held = [len(text.encode()) for text in batch.column("path").to_pylist()]
        assert sum(held) <= most or len(held) == 1
    assert batches[1:] == [] or all(batch.num_rows for batch in batches)


def test_what_fits_stays_one_batch_even_if_it_is_nothing():
    serializer = FileSplitSerializer()
    assert [batch.num_rows for batch in serializer.serialize_all([])] == [0]


def test_a_sample_is_stored_and_is_no_part_of_the_version():
    file, serializer = FileVersion("/a", 9, 5), FileSplitSerializer()
    splits = [FileSplit(SampledFile.of(file, 7), 0, 4), FileSplit(file, 4, 9)]
    batch = serializer.serialize(splits)
    for stored, samples in ((batch, [7, 0]), (batch.drop_columns(["sample"]), [0, 0])):
        restored = serializer.deserialize(1, stored)
        assert restored == splits
        assert [split.file.sample for split in restored] == samples
    assert len({split.file for split in splits}) == 1
