"""A local file that is replaced by one of equal size and modification time while it is read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pyspark_sluice.connector.cli.reprocess.file_check import unreadable
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.errors import FileChangedError
from pyspark_sluice.tests.connector.queries import Query
from pyspark_sluice.tests.connector.stream import LONG_AGO, Stream

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("id", pa.int64())])
OLD, NEW = range(1000, 4000), range(5000, 8000)


def _lines(ids):
    return "".join(json.dumps({"id": each}) + "\n" for each in ids).encode()


def _write(path: Path, ids) -> Path:
    """A file whose size says nothing of its content."""
    if path.suffix == ".parquet":
        table = pa.table({"id": pa.array(ids, pa.int64())}, SCHEMA)
        parquet.write_table(
            table, path, row_group_size=500, compression="none", use_dictionary=False
        )
    else:
        data = _lines(ids)
        path.write_bytes(gzip.compress(data, 0) if path.suffix == ".gz" else data)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def copied(new: Path, path: Path) -> None:
    subprocess.run(["cp", "-p", new, path], check=True)


def renamed(new: Path, path: Path) -> None:
    # As rsync -t does.
    hidden = path.with_name(f".{path.name}.x")
    shutil.copyfile(new, hidden)
    os.utime(hidden, (LONG_AGO, LONG_AGO))
    hidden.rename(path)


def chmod(new: Path, path: Path) -> None:
    path.chmod(0o640)


def linked(new: Path, path: Path) -> None:
    os.link(path, new.with_name("link"))


def restored(new: Path, path: Path) -> None:
    copied(path, new)
    path.unlink()
    copied(new, path)


LIMITS = {
    "bytes": {"maxBytesPerTrigger": "8k", "maxSplitBytes": "8k"},
    "rows": {"maxRowsPerTrigger": "700"},
}


def _begun(tmp_path: Path, name: str, limit: str) -> tuple[Stream, Path, Path, list[int]]:
    """A stream of which one batch is read, its file, and another file of equal size."""
    kind = "parquet" if name.endswith("parquet") else "json"
    stream = Stream(tmp_path, {"fileFormat": kind, **LIMITS[limit]})
    path = _write(stream.data / name, OLD)
    new = _write(tmp_path / name, NEW)
    assert path.stat().st_size == new.stat().st_size
    rows: list[int] = []
    while not rows:
        rows = stream.batch()
    assert len(rows) < len(OLD)
    return stream, path, new, rows


NAMES = [("a.json", "bytes"), ("a.parquet", "bytes")]
NAMES += [("a.json", "rows"), ("a.json.gz", "rows"), ("a.parquet", "rows")]


@pytest.mark.parametrize(("name", "limit"), NAMES)
@pytest.mark.parametrize("replace", [copied, renamed])
def test_another_content_ends_the_query_until_the_old_one_is_back(tmp_path, name, limit, replace):
    stream, path, new, rows = _begun(tmp_path, name, limit)
    copied(path, tmp_path / "backup")
    replace(new, path)
    with pytest.raises(FileChangedError, match="other content of equal size and modification time"):
        stream.batch()
    stream.reader.stop()
    at, stream = stream.at, Stream(tmp_path, {**stream_options(name), **LIMITS[limit]})
    stream.at = at
    copied(tmp_path / "backup", path)
    rows += stream.until(len(OLD) - len(rows))
    stream.reader.stop()
    assert sorted(rows) == list(OLD)


def stream_options(name: str) -> dict[str, str]:
    return {"fileFormat": "parquet" if name.endswith("parquet") else "json"}


@pytest.mark.parametrize(("name", "limit"), NAMES)
@pytest.mark.parametrize("touch", [chmod, linked, restored])
def test_a_file_whose_content_stays_is_read_to_its_end(tmp_path, name, limit, touch):
    stream, path, new, rows = _begun(tmp_path, name, limit)
    touch(new, path)
    rows += stream.until(len(OLD) - len(rows))
    stream.reader.stop()
    assert sorted(rows) == list(OLD)


def test_parts_of_one_batch_come_from_one_content(tmp_path):
    stream = Stream(tmp_path, {"maxSplitBytes": "8k"})
    path = _write(stream.data / "a.json", OLD)
    new = _write(tmp_path / "a.json", NEW)
    partitions: list[object] = []
    while not partitions:
        _, partitions = stream.plan()
    # As one task would read all of them after the other.
    copied(new, path)
    with pytest.raises(FileChangedError, match="other content"):
        list(chain.from_iterable(map(stream.reader.read, partitions)))
    stream.reader.stop()


def test_what_its_batch_cannot_read_may_be_waived_and_no_other_part(tmp_path):
    query = Query(tmp_path, maxSplitBytes="8k")
    path = _write(query.data / "a.json", OLD)
    query.plan()
    (link,) = query.coordinator.assignments(query.done, query.coordinator.latest(query.done))
    splits = [s for _, batch in link.assigned for s in query.source.split_serializer.read(1, batch)]
    assert len(splits) > 1
    assert unreadable(splits, {}) == []
    copied(_write(tmp_path / "new.json", NEW), path)
    assert unreadable(splits, {}) == splits
    query.coordinator.close()


def test_readers_that_send_splits_back_mix_nothing_either(tmp_path):
    (tmp_path / "in").mkdir()
    path = _write(tmp_path / "in" / "a.json", OLD)
    new = _write(tmp_path / "new.json", NEW)
    options = parse_options(
        {
            "path": str(tmp_path / "in"),
            "stateLocation": "unused",
            "fileFormat": "json",
            "onSplitError": "return",
        },
        streaming=True,
    )
    trial = Trial(lambda: FileSource(options, SCHEMA), limits=BatchLimits(rows=700))
    assert trial.step()
    copied(path, tmp_path / "backup")
    copied(new, path)
    for _ in range(3):
        trial.step()
    trial.restart()
    trial.step()
    assert {row["id"] for row in trial.rows} <= set(OLD)
    copied(tmp_path / "backup", path)
    trial.run_to_end()
    trial.check([{"id": each} for each in OLD])
