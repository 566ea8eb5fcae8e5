"""A reader holds a few blocks, however large the file is."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.thorough import sampled

pytestmark = pytest.mark.slow

_READ = """
import json, resource, sys
import pyarrow as pa
from pathlib import Path
from pyspark_sluice.reader.api import ReaderContext
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.reading import whole

path, options = Path(sys.argv[1]), json.loads(sys.argv[2])
schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
small = Path(sys.argv[3])

def drain(path):
    context = ReaderContext(1, 0, 0, may_return=options.get("may_return", False))
    known = {name: value for name, value in options.items() if name != "may_return"}
    reader = FileSplitReader(schema, ReaderOptions(**known), context)
    return sum(x.num_rows for x in reader.read([whole(path)]) if isinstance(x, pa.RecordBatch))

drain(small)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = drain(path)
print(json.dumps([rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
"""
ROWS = 1_500_000
CASES = [
    ("json", '{{"a":{0},"b":"some text of a row, number {0}"}}\n', {}),
    ("json", '{{"a":{0},\n"b":"some text of a row, number {0}"}}', {"multi_line": True}),
    ("json.gz", '{{"a":{0},"b":"some text of a row, number {0}"}}\n', {}),
    ("csv", '{0},"some text of a row, number {0}, and a little more"\n', {}),
    ("csv", '{0},"some text\nof a row, number {0}, and a little more"\n', {"multi_line": True}),
    ("json", '{{"a":{0},"b":"some text of a row, number {0}"}}\n', {"may_return": True}),
]


@pytest.mark.parametrize(
    ("suffix", "line", "options"),
    sampled(
        CASES,
        lambda case: case is CASES[0],
        reason="test_all_formats.py measures what each format holds",
    ),
)
def test_resident_memory_does_not_follow_the_size_of_the_file(tmp_path, suffix, line, options):
    path, small = tmp_path / f"large.{suffix}", tmp_path / f"small.{suffix}"
    _write(small, line, ROWS // 4)
    _write(path, line, ROWS)
    known = {"file_format": suffix.partition(".")[0], "batch_bytes": "4m", **options}
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path), json.dumps(known), str(small)],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    rows, grown = json.loads(done.stdout)
    assert rows == ROWS
    # The larger file has 55 to 70 MB more of content.
    assert grown < 40 * 1024


def _write(path: Path, line: str, rows: int) -> None:
    lines = (line.format(number) for number in range(rows))
    if not line.endswith("\n"):
        path.write_text("[" + ",\n".join(lines) + "]")
        return
    if path.suffix == ".gz":
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.writelines(lines)
    else:
        with path.open("w") as file:
            file.writelines(lines)
