"""Block formats on a file system that is not the local one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.documents.file_split import FileVersion
from pyspark_sluice.errors import FileVanishedError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("count", [10, 30_000])
def test_rows_come_out_of_any_file_system_that_fsspec_opens(
    kind: str, count: int, write: Any, fmt: Any, read: Any, sample: Any
) -> None:
    local = write(kind, count, 5000)
    url = f"memory://blocks/{count}.{kind}"
    fsspec.filesystem("memory").pipe_file(url, Path(local.path).read_bytes())
    file = FileVersion(url, local.size, -1)
    reader = fmt(kind)
    cuts = [block.start for block in reader.blocks(file)][1:]
    assert read(reader, file, *cuts) == sample(count)


def test_a_vanished_object_is_named(kind: str, fmt: Any, read: Any) -> None:
    with pytest.raises(FileVanishedError, match="memory://blocks/gone"):
        read(fmt(kind), FileVersion("memory://blocks/gone", 5_000_000, -1))
