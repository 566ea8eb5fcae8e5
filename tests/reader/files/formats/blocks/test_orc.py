"""ORC files of other writers and versions: zones, names by position, odd tails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from pyspark_sluice.errors import MalformedDataError, SchemaMismatchError
from pyspark_sluice.reader.files.formats.orc.encoding import (
    LZ4,
    Field,
    expand,
    fields,
    message,
    stored,
)
from pyspark_sluice.reader.files.formats.orc.tail import read_tail
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import table_of
from pyspark_sluice.tests.reader.readings.of_spark import in_zones
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

INSTANT = pa.timestamp("us", "UTC")
LOCAL = pa.timestamp("us")


def test_timestamps_are_the_writer_s_instants_in_any_zone_of_the_session(spark, tmp_path):
    # Years 1680 to 2250, the hours around 1970, and a night when the clocks are set back.
    query = """
        SELECT id, t, CAST(t AS TIMESTAMP_NTZ) AS n,
            STRUCT(t AS a, CAST(t AS TIMESTAMP_NTZ) AS b) AS s, ARRAY(t) AS l
        FROM (SELECT id, CASE
                WHEN id % 10 = 9 THEN NULL
                WHEN id < 300 THEN TIMESTAMP_MICROS(-9100000000000000 + id * 60000000321000)
                WHEN id < 600 THEN TIMESTAMP_MICROS((id - 450) * 400137123)
                ELSE TIMESTAMP_MICROS(1793500000000000 + (id - 600) * 300000000) END AS t
              FROM RANGE(0, 900, 1, 1))"""
    with in_zones(spark, "UTC", "America/Los_Angeles"):
        spark.sql(query).write.orc(str(tmp_path / "x"))
        expected = spark.read.orc(str(tmp_path / "x")).orderBy("id").toArrow()
    inner = pa.struct([("a", INSTANT), ("b", LOCAL)])
    schema = pa.schema(
        [("id", pa.int64()), ("t", INSTANT), ("n", LOCAL), ("s", inner), ("l", pa.list_(INSTANT))]
    )
    paths = sorted((tmp_path / "x").glob("*.orc"))
    table = table_of("orc", paths, schema, timeZone="Pacific/Auckland").sort_by("id")
    assert table.to_pylist() == expected.to_pylist()


def test_columns_that_hive_named_by_position_are_the_schema_s_in_order(spark_answers, tmp_path):
    path, ddl = tmp_path / "x.orc", "id long, text string, later long"
    orc.write_table(
        pa.table({"_col0": range(3), "_col1": [f"text {i:0100}" for i in range(3)]}), path
    )
    expected = spark_answers(
        lambda spark: spark.read.schema(ddl).orc(str(path)).toArrow().to_pydict(), ddl
    )
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("later", pa.int64())])
    assert table_of("orc", [path], schema).to_pydict() == expected
    with pytest.raises(SchemaMismatchError, match="string"):
        table_of("orc", [path], pa.schema([("text", pa.string()), ("id", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match="_col0 to _col1"):
        table_of("orc", [path], pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize(
    ("codec", "file_version"),
    sampled(
        [(codec, "0.12") for codec in ("uncompressed", "zlib", "snappy", "lz4", "zstd")]
        + [("zlib", "0.11")],
        lambda case: case == ("zlib", "0.11"),
        reason="footers of the other codecs are found in the same way",
    ),
)
def test_footers_of_every_size_are_read_in_every_codec_and_version(codec, file_version, tmp_path):
    schema = pa.schema([("c0", pa.int64())])
    for columns in (1, 60, 300):
        table = pa.table({f"c{i}": [i, None] for i in range(columns)})
        path = tmp_path / f"{columns}.orc"
        orc.write_table(table, path, compression=codec, file_version=file_version)
        assert table_of("orc", [path], schema)["c0"].to_pylist() == [0, None]


def test_an_lz4_footer_ends_where_its_content_does():
    # Arrow's codec fills the whole block, behind the content with what was there.
    for size in range(0, 400, 3):
        content = b"abcdef" * size + bytes(range(size % 256)) + b"x" * (size * 5)
        chunk = pa.Codec("lz4_raw").compress(content, asbytes=True)
        framed = (len(chunk) << 1).to_bytes(3, "little") + chunk
        assert expand(framed, LZ4, 65_536) == content


def _with_tail(
    path: Path,
    footer: Callable[[list[Field]], list[Field]] = list,
    postscript: Callable[[list[Field]], list[Field]] = list,
) -> Path:
    """The file with other fields in its tail."""
    with pa.OSFile(str(path)) as source:
        tail = read_tail(source)
    assert tail is not None
    data = path.read_bytes()[: tail.start]
    made = stored(message(footer(tail.footer)), tail.codec, tail.block)
    lengths = [(i, len(made) if i == 1 else value) for i, value in tail.postscript]
    end = message(postscript(lengths))
    path.write_bytes(data + made + end + bytes([len(end)]))
    return path


def test_a_file_that_says_orc_only_where_it_begins_is_read(spark_answers, tmp_path):
    path = tmp_path / "x.orc"
    orc.write_table(pa.table({"id": [1, 2]}), path, file_version="0.11")
    _with_tail(path, postscript=lambda found: [pair for pair in found if pair[0] != 8000])
    schema = pa.schema([("id", pa.int64())])
    assert spark_answers(lambda spark: spark.read.schema("id long").orc(str(path)).count()) == 2
    assert table_of("orc", [path], schema)["id"].to_pylist() == [1, 2]


def test_decimals_that_do_not_say_their_digits_are_refused_where_they_are_wanted(tmp_path):
    path = tmp_path / "x.orc"
    price = pa.array(["1.123456789"]).cast(pa.decimal128(12, 9))
    orc.write_table(pa.table({"id": [1], "price": price}), path)

    def unscaled(found: list[Field]) -> list[Field]:
        types = [[p for p in fields(v) if p[0] < 5] for i, v in found if i == 4]
        return [pair for pair in found if pair[0] != 4] + [(4, message(t)) for t in types]

    _with_tail(path, footer=unscaled)
    schema = pa.schema([("id", pa.int64()), ("price", pa.decimal128(12, 9))])
    with pytest.raises(SchemaMismatchError, match=r"column 'price'.*Hive 0\.11"):
        table_of("orc", [path], schema)
    assert table_of("orc", [path], schema.remove(1)).num_rows == 1


@pytest.mark.parametrize("codec", [3, 6])
def test_codecs_that_arrow_does_not_know_are_named(codec, tmp_path):
    path = tmp_path / "x.orc"
    orc.write_table(pa.table({"id": [1]}), path)
    _with_tail(path, postscript=lambda found: [(i, codec if i == 2 else v) for i, v in found])
    schema = pa.schema([("id", pa.int64())])
    with pytest.raises(MalformedDataError, match="LZO or Brotli"):
        table_of("orc", [path], schema)


def test_a_file_of_spark_without_rows_has_wall_clocks_for_its_numbers_of_microseconds(
    spark, tmp_path
):
    empty = spark.range(0).selectExpr("CAST(NULL AS TIMESTAMP_NTZ) AS t").coalesce(1)
    empty.write.orc(str(tmp_path / "x"))
    schema = pa.schema([("t", LOCAL)])
    paths = sorted((tmp_path / "x").glob("*.orc"))
    assert table_of("orc", paths, schema) == schema.empty_table()


def test_a_process_that_has_a_channel_of_grpc_reads_its_files(tmp_path):
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"id": range(5)}), path)
    program = f"""
import threading, grpc, pyarrow as pa
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import table_of
waited = threading.Event()
channel = grpc.insecure_channel("127.0.0.1:9")
channel.subscribe(lambda _: waited.set(), try_to_connect=True)
assert waited.wait(60)
print(table_of("orc", [{str(path)!r}], pa.schema([("id", pa.int64())])).num_rows)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
