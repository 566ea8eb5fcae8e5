"""Block formats on another file system, and decoders that crash on either."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow import orc

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.orc import format as orc_format
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    sample_rows,
)

pytestmark = pytest.mark.slow


@pytest.mark.sample("parquet", "10", why="the same pieces of other formats")
@pytest.mark.parametrize("count", [10, 30_000])
def test_rows_come_out_of_any_file_system_that_fsspec_opens(kind, count, write):
    local = write(kind, count, 5000)
    url = f"memory://blocks/{count}.{kind}"
    fsspec.filesystem("memory").pipe_file(url, Path(local.path).read_bytes())
    file = FileVersion(url, local.size, -1)
    reader = format_of(kind)
    cuts = [block.start for block in reader.blocks(file)][1:]
    assert rows_of(reader, file, *cuts) == sample_rows(count)


def remote(path: Path) -> FileVersion:
    """The file as an object elsewhere."""
    url = f"memory://blocks/{path.name}"
    fsspec.filesystem("memory").pipe_file(url, path.read_bytes())
    return FileVersion(url, path.stat().st_size, -1)


@pytest.mark.thorough("a local one is refused in test_bombs.py")
def test_a_stripe_of_an_object_that_swells_is_refused_by_name(tmp_path):
    path = tmp_path / "swells.orc"
    long = "x" * 50_000
    with orc.ORCWriter(str(path), dictionary_key_size_threshold=1.0, compression="zstd") as out:
        for _ in range(40):
            out.write(pa.table({"a": [long] * 1000}))
    reader = format_of("orc", pa.schema([("a", pa.string())]), batchBytes="4m", maxRecordBytes="8m")
    with pytest.raises(MalformedDataError, match=r"memory://blocks/swells.orc, stripe 0") as caught:
        rows_of(reader, remote(path))
    assert "set maxRecordBytes" in str(caught.value)


@pytest.mark.parametrize("is_remote", [False, True], ids=["local", "remote"])
def test_a_decoder_that_crashes_is_an_error_with_the_file_s_name_and_the_next_file_is_read(
    write, monkeypatch, is_remote
):
    bad, good = write("orc", 300, 100), write("orc", 301, 100)
    if is_remote:
        bad, good = remote(Path(bad.path)), remote(Path(good.path))
    stripes = orc_format._stripes

    def crash_half_way(fitter: Any, options: Any, split: FileSplit, source: Any) -> Any:
        batches = stripes(fitter, options, split, source)
        yield next(batches)
        if split.file.path.endswith(Path(bad.path).name):
            os.kill(os.getpid(), signal.SIGSEGV)
        yield from batches

    monkeypatch.setattr(orc_format, "_stripes", crash_half_way)
    reader = format_of("orc")
    with pytest.raises(MalformedDataError, match=r"crashed \(SIGSEGV\)") as caught:
        rows_of(reader, bad)
    assert bad.path in caught.value.where
    assert rows_of(reader, good) == sample_rows(301)
