"""Files of a few bytes that expand to gigabytes: read within the bound, or refused by name."""

from __future__ import annotations

from functools import partial

import fastavro
import pyarrow as pa
import pytest

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.avro.container import encoded
from pyspark_sluice.reader.files.io.memory_bounds import held_at_most
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.io import bombs
from pyspark_sluice.tests.reader.files.reading import read, whole
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

BOUNDED = {
    "parquet": [
        bombs.parquet_dictionary,
        bombs.parquet_dictionary_type,
        bombs.parquet_pages,
        bombs.parquet_deltas,
    ],
    "arrow": [bombs.arrow_dictionary, bombs.arrow_views],
}
REFUSED = {
    "orc": [bombs.orc_dictionary],
    "arrow": [bombs.arrow_compressed, bombs.arrow_stream, bombs.arrow_plain],
    "avro": [bombs.avro_block],
}


@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in BOUNDED.items() for write in made]
)
def test_values_that_are_stored_once_and_named_often_are_read_within_the_bound(
    tmp_path, name, write
):
    found = bombs.outcome(tmp_path, write, _options(name))
    assert not found.error
    assert found.rows >= bombs.ROWS
    assert found.grown < held_at_most(ReaderOptions(**_options(name)))


@pytest.mark.parametrize(
    ("name", "write"), [(name, write) for name, made in REFUSED.items() for write in made]
)
def test_what_has_to_be_decoded_at_once_and_swells_is_refused_by_name(tmp_path, name, write):
    found = bombs.outcome(tmp_path, write, _options(name))
    assert f"{tmp_path}/bomb, " in found.error
    assert "set maxRecordBytes" in found.error
    assert found.grown < held_at_most(ReaderOptions(**_options(name)))


@pytest.mark.parametrize(
    "codec",
    sampled(
        bombs.COMPRESSED,
        ("gz", "bz2", "zst").__contains__,
        reason="other codecs are bounded by the same code",
    ),
)
def test_compressed_text_without_an_end_is_refused_by_name(tmp_path, codec):
    write = partial(bombs.without_end, codec=codec)
    found = bombs.outcome(tmp_path, write, _options("json"), f".{codec}")
    assert f"{tmp_path}/bomb.{codec}, byte 0;" in found.error
    assert "set maxRecordBytes" in found.error
    assert found.grown < held_at_most(ReaderOptions(**_options("json")))


def test_rows_of_avro_that_take_no_bytes_are_not_decoded_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "a.avro"
    count = 30_000_000
    bombs.avro_nulls(path, count)
    decoded = []
    iterate = fastavro.block_reader

    def counting(stream, **how):
        for block in iterate(stream, **how):
            decoded.append(block.num_records)
            yield block

    monkeypatch.setattr(fastavro, "block_reader", counting)
    table, _ = read([whole(path)], bombs.SCHEMA, file_format="avro")
    assert (table.num_rows, table.column("a").null_count) == (count, count)
    assert decoded == [1]


def test_arrays_of_avro_whose_elements_take_no_bytes_are_refused(tmp_path):
    path = tmp_path / "a.avro"
    nothing = {"type": "record", "name": "n", "fields": [{"name": "x", "type": "null"}]}
    for items in ("null", nothing, {"type": "fixed", "name": "f", "size": 0}):
        kind = {"type": "array", "items": items}
        claim = encoded(1 << 50) + encoded(0)
        path.write_bytes(bombs.avro_claiming({"name": "a", "type": kind}, 1, claim))
        with pytest.raises(MalformedDataError, match="an array whose elements take no bytes"):
            read([whole(path)], pa.schema([("b", pa.string())]), file_format="avro")


def _options(name):
    return {"file_format": name, "batch_bytes": "4m", "max_record_bytes": "8m"}
