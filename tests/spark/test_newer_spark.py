"""Additions of Spark 4.1 to 4.3: named sources, offset log 2, pipelines, TIME, archives."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql.streaming import DataStreamReader

from pyspark_sluice.tests.pages import ROOT, blocks
from pyspark_sluice.tests.patience import output_of
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS
from pyspark_sluice.tests.spark_home import quick_environment

pytestmark = pytest.mark.spark

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@pytest.fixture
def conf(spark):
    """Settings of the session until the end of the test."""
    names: list[str] = []

    def put(name: str, value: str) -> None:
        names.append(name)
        spark.conf.set(name, value)

    yield put
    for name in names:
        spark.conf.unset(name)


def run_union(lake, *names):
    """A run of a query over sources with these names, each with a folder of its own."""
    frames = []
    for name in names:
        (lake.source / name).mkdir(exist_ok=True)
        reader = lake.spark.readStream.name(name).format("sluice").schema("id long, text string")
        reader = reader.options(fileFormat="json", checkpointLocation=str(lake.checkpoint))
        frames.append(reader.option("sourceName", name).load(str(lake.source / name)))
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.union(other)
    lake.finish(frame.writeStream.format("parquet"), str(lake.sink))


@pytest.mark.thorough("sources that change places without names are in test_protocol_in_spark.py")
@pytest.mark.skipif(not hasattr(DataStreamReader, "name"), reason="Spark 4.2 adds names of sources")
def test_named_sources_change_places_come_and_go(lake, conf):
    conf(EVOLUTION, "true")
    lake.land("0.json", range(10), folder="a")
    lake.land("1.json", range(10, 20), folder="b")
    run_union(lake, "a", "b")
    lake.check_exactly_once()
    lake.land("2.json", range(20, 30), folder="a")
    lake.land("3.json", range(30, 40), folder="c")
    run_union(lake, "c", "b", "a")
    lake.check_exactly_once()
    lake.land("4.json", range(40, 50), folder="c")
    run_union(lake, "a", "c")
    lake.check_exactly_once()
    assert (lake.checkpoint / "offsets" / "0").read_text().startswith("v2\n")


@pytest.mark.thorough("a Spark of its own; the page's program")
@pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.1 adds Declarative Pipelines")
def test_a_streaming_table_of_a_pipeline_has_every_row_once(tmp_path):
    home = tmp_path / "pipeline"
    (home / "transformations").mkdir(parents=True)
    (home / "landing").mkdir()
    page = list(blocks(ROOT / "docs" / "spark-versions.md"))
    project, table = (
        block.code.replace("/data/", f"{home}/") for block in page if "/data/" in block.code
    )
    (command,) = (shlex.split(block.code) for block in page if block.language == "sh")
    (home / "spark-pipeline.yml").write_text(project)
    (home / "transformations" / "orders.py").write_text(table)
    for at in range(2):
        lines = [f'{{"order_id": {n}}}\n' for n in range(at * 10, at * 10 + 10)]
        (home / "landing" / f"{at}.json").write_text("".join(lines))
        run_pipeline(home, command)
        table = pq.read_table(home / "spark-warehouse" / "orders", columns=["order_id"])
        assert Counter(table["order_id"].to_pylist()) == Counter(range(at * 10 + 10))


def run_pipeline(home: Path, command: list[str]) -> None:
    environment = {**os.environ, **quick_environment(), "PYSPARK_PYTHON": sys.executable}
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    command = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    output_of(command, cwd=home, environment=environment)


@pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.1 adds the type TIME")
def test_times_of_day_of_parquet_files_reach_spark(lake, conf):
    conf("spark.sql.timeType.enabled", "true")
    times = [dt.time(1, 2, 3, 456789), None]
    pq.write_table(pa.table({"t": pa.array(times, pa.time64("us"))}), lake.source / "a.parquet")
    reader = lake.spark.read.format("sluice").option("fileFormat", "parquet").schema("t time(6)")
    frame = reader.load(str(lake.source)).selectExpr("cast(t as string) as t")
    assert [row.t for row in frame.collect()] == ["01:02:03.456789", None]


@pytest.mark.thorough("the members are compared with plain files in test_archives.py")
@pytest.mark.skipif(SPARK < (4, 3), reason="Spark 4.3 reads archives")
@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".7z"])
@pytest.mark.parametrize(
    ("file_format", "options", "head", "record"),
    [
        ("json", {}, b"", b'{"id":%d,"text":"%d"}\n'),
        ("csv", {"header": "true", "escape": '"'}, b"id,text\n", b'%d,"a ""%d"""\n'),
    ],
)
def test_archives_have_the_rows_that_sparks_own_reader_returns(
    lake, conf, suffix, file_format, options, head, record
):
    conf("spark.sql.files.archive.reader.enabled", "true")
    members = {
        f"d/{first}": head + b"".join(record % (n, n) for n in range(first, first + 9))
        for first in range(0, 90, 9)
    }
    (lake.source / f"a{suffix}").write_bytes(PACKERS[suffix](members))

    def rows(source, **more):
        reader = lake.spark.read.format(source).options(**options, **more)
        reader = reader.schema("id long, text string")
        return Counter(map(tuple, reader.load(str(lake.source)).collect()))

    own = rows(file_format)
    assert own.total() == 90
    assert rows("sluice", fileFormat=file_format) == own
