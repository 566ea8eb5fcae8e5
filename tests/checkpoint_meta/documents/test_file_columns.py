"""Splits as columns, however much text their paths are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.documents.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.documents.file_split import (
    FileSplit,
    FileVersion,
    SampledFile,
)

PATHS = st.lists(st.text("aé\U0001f600", max_size=20), max_size=30)


@given(paths=PATHS, most=st.integers(1, 100))
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
