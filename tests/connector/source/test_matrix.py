"""Stores, formats, containers, hosts, discovery and limits in pairs: each row is read once."""

from __future__ import annotations

import gzip
import io
import json
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from allpairspy import AllPairs
from deltalake import DeltaTable

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.connector.host.embedded_query import EmbeddedRun
from pyspark_sluice.connector.host.run import checked_with_target
from pyspark_sluice.connector.host.worker_pool import WorkerPool
from pyspark_sluice.connector.testing import Row
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.tests.connector.source.file_trials import trial_of
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

IDS_AND_TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string())])
FILES, ROWS = 3, 8


class Kind(NamedTuple):
    """A format: the bytes of a file, and what a reader makes of it."""

    write: Callable[[list[Row]], bytes]
    schema: pa.Schema = IDS_AND_TEXTS
    read: Callable[[list[Row]], list[Row]] = list
    is_lines: bool = False


def _lines(line: Callable[[Row], str], rows: list[Row]) -> bytes:
    return "".join(line(row) + "\n" for row in rows).encode()


def _by(write: Callable[[pa.Table, Any], object], rows: list[Row]) -> bytes:
    sink = io.BytesIO()
    write(pa.Table.from_pylist(rows, IDS_AND_TEXTS), sink)
    return sink.getvalue()


def _arrow(table: pa.Table, sink: Any) -> None:
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _avro(table: pa.Table, sink: Any) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())


as_csv = partial(_lines, lambda row: f"{row['id']},{row['text']}")
as_xml = partial(_lines, lambda row: f"<row><id>{row['id']}</id><text>{row['text']}</text></row>")

KINDS = {
    "json": Kind(partial(_lines, json.dumps), is_lines=True),
    "csv": Kind(as_csv, is_lines=True),
    "text": Kind(
        as_csv,
        pa.schema([("value", pa.string())]),
        lambda rows: [{"value": line} for line in as_csv(rows).decode().splitlines()],
        is_lines=True,
    ),
    "xml": Kind(lambda rows: b"<rows>" + as_xml(rows) + b"</rows>", is_lines=True),
    "parquet": Kind(partial(_by, pq.write_table)),
    "orc": Kind(partial(_by, pyarrow.orc.write_table)),
    "arrow": Kind(partial(_by, _arrow)),
    "avro": Kind(partial(_by, _avro)),
    "binaryFile": Kind(
        as_csv,
        pa.schema([("length", pa.int64()), ("content", pa.binary())]),
        lambda rows: [{"length": len(as_csv(rows)), "content": as_csv(rows)}],
    ),
}
CONTAINERS = ["", ".gz", ".zip", ".tar.gz"]
STORES = ["disk", "s3", "google", "azure", "hdfs"]
HOSTS = ["Spark's calls", "without Spark"]
DISCOVERY = ["full", "incremental"]
LIMITS = ["", "maxFilesPerTrigger=2", "maxRowsPerTrigger=10", "maxBytesPerTrigger=500"]


def _exists(values: list[str]) -> bool:
    if len(values) < 3 or not values[2]:
        return True
    # To a binary file an archive is one, and a codec is a matter of lines.
    return KINDS[values[1]].is_lines if values[2] == ".gz" else values[1] != "binaryFile"


PAIRS = list(AllPairs([STORES, list(KINDS), CONTAINERS, HOSTS, DISCOVERY, LIMITS], _exists))


def _cases(*stores: str) -> list[Any]:
    pairs = [pair for pair in PAIRS if pair[0] in stores]
    return [pytest.param(pair[0], pair[1:], id="-".join(pair)) for pair in pairs]


class Landing:
    """A directory, of files whose names increase."""

    def __init__(self, url: str, storage_options: dict[str, Any]) -> None:
        self.url, self.storage_options = url, storage_options
        self.storage, self._name = open_storage(url, storage_options)
        self.rows: list[Row] = []
        self._files = 0

    def land(self, kind: str, container: str) -> None:
        for _ in range(FILES):
            begin = self._files * ROWS
            ids = range(begin, begin + ROWS)
            rows: list[Row] = [{"id": i, "text": f"row {i}"} for i in ids]
            halves = [rows[:4], rows[4:]] if container in PACKERS else [rows]
            contents = [KINDS[kind].write(half) for half in halves]
            packed = contents[0]
            if container in PACKERS:
                packed = PACKERS[container]({f"{n}.{kind}": c for n, c in enumerate(contents)})
            elif container:
                packed = gzip.compress(packed)
            leaf = f"{self._files:04}.{kind}{container}"
            self.storage.create(f"{self._name}/{leaf}", packed)
            self.rows += [row for half in halves for row in KINDS[kind].read(half)]
            self._files += 1


def check_all_once(landing: Landing, case: list[str], place: Path) -> None:
    kind, container, host, discovery, limit = case
    options = {"fileFormat": kind, "discoveryMode": discovery}
    options |= {"rowTag": "row"} if kind == "xml" else {}
    options |= {"storageOptions": json.dumps(landing.storage_options)}
    options |= dict([limit.split("=")]) if limit else {}
    read = _by_calls if host == "Spark's calls" else _without_spark
    rows = read(landing, lambda: landing.land(kind, container), KINDS[kind].schema, options, place)
    assert _counted(rows) == _counted(landing.rows)


def _counted(rows: list[Row]) -> Counter[Any]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def _by_calls(
    landing: Landing, land: Callable[[], None], schema: pa.Schema, options: dict[str, str], _: Path
) -> list[Row]:
    most = {name: options.pop(f"max{name.title()}PerTrigger", None) for name in LIMITED}
    limits = BatchLimits(**{name: int(value) for name, value in most.items() if value})
    land()
    trial = trial_of(landing.url, schema, options, limits=limits)
    trial.step()
    land()
    trial.restart(parallelism=3)
    trial.run_to_end()
    return trial.rows


LIMITED = ("files", "rows", "bytes")


def _without_spark(
    landing: Landing,
    land: Callable[[], None],
    schema: pa.Schema,
    options: dict[str, str],
    place: Path,
) -> list[Row]:
    names = {"int64": "long", "string": "string", "binary": "binary"}
    written = ", ".join(f"{field.name} {names[str(field.type)]}" for field in schema)
    call = {"path": landing.url, "checkpointLocation": str(place / "checkpoint"), **options}

    def batches() -> Any:
        to = f"delta:{place / 'table'}"
        with WorkerPool(1) as pool:
            checked = checked_with_target({**call, "writeSchema": written}, to)
            yield from EmbeddedRun(*checked, pool, every=None).batches()

    land()
    first = batches()
    next(first)
    # The process is gone between two batches, or after the only one.
    first.close()
    land()
    list(batches())
    rows: list[Row] = DeltaTable(str(place / "table")).to_pyarrow_table().to_pylist()
    return rows


@pytest.mark.parametrize(("_", "case"), _cases("disk"))
def test_each_row_of_a_disk_is_read_once(_, case, tmp_path):
    check_all_once(Landing(str(tmp_path / "in"), {}), case, tmp_path)


@pytest.mark.parametrize(
    ("any_server", "case"), _cases("s3", "google", "azure"), indirect=["any_server"]
)
def test_each_row_of_a_bucket_is_read_once(any_server, any_bucket, case, tmp_path):
    landing = Landing(f"{any_server.scheme}://{any_bucket}/in", any_server.options)
    check_all_once(landing, case, tmp_path)


@pytest.mark.thorough("a cluster takes half a minute to start")
@pytest.mark.parametrize(("_", "case"), _cases("hdfs"))
def test_each_row_of_a_cluster_is_read_once(hdfs, _, case, tmp_path):
    check_all_once(Landing(f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}/in", {}), case, tmp_path)
