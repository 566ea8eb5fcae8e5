"""Block formats on another file system, and decoders that crash on either."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileSplit, FileVersion
from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.reader.files.formats.orc import format as orc_format
from pyspark_sluice.tests.reader.files.formats.blocks.block_files import (
    format_of,
    rows_of,
    sample_rows,
)

pytestmark = pytest.mark.slow


def remote(file: FileVersion) -> FileVersion:
    """The file as an object elsewhere."""
    url = f"memory://blocks/{Path(file.path).name}"
    fsspec.filesystem("memory").pipe_file(url, Path(file.path).read_bytes())
    return FileVersion(url, file.size, -1)


def test_rows_come_out_of_any_file_system_that_fsspec_opens(kind, write):
    file = remote(write(kind, 3_000, 500))
    reader = format_of(kind)
    cuts = [block.start for block in reader.blocks(file)][1:]
    assert rows_of(reader, file, *cuts) == sample_rows(3_000)


@pytest.mark.parametrize("is_remote", [False, True], ids=["local", "remote"])
def test_a_decoder_that_crashes_is_an_error_with_the_file_s_name_and_the_next_file_is_read(
    write, monkeypatch, is_remote
):
    bad, good = write("orc", 300, 100), write("orc", 301, 100)
    if is_remote:
        bad, good = remote(bad), remote(good)
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
