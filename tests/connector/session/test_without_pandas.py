"""A process that leaves pandas out starts without it, and has it as soon as it is wanted."""

from __future__ import annotations

import subprocess
import sys

from pyspark_sluice.tests.patience import PATIENCE

PROGRAM = """
import sys
import pyarrow as pa
from pyspark_sluice.connector.session.without_pandas import leave_pandas_out
leave_pandas_out()
assert pa.array(["a", "b"], pa.string()).to_pylist() == ["a", "b"]
assert "pandas" not in sys.modules
frame = pa.table({"a": [1.5, None]}).to_pandas()
assert frame["a"].isna().tolist() == [False, True]
assert pa.array(frame["a"]).null_count == 1, "a series is one again"
leave_pandas_out()
import pandas
assert pandas is sys.modules["pandas"]
"""

STREAM = """
import sys, runpy, types
from pathlib import Path
sys.modules["__main__"].__spec__ = types.SimpleNamespace(name="pyspark.of.spark")
from pyspark_sluice.tests.connector.stream import Stream
stream = Stream(Path(sys.argv[1]), {})
stream.land("a.json")
assert stream.batch() == [0]
stream.reader.stop()
assert "pandas" not in sys.modules
assert "fsspec" not in sys.modules
"""


def _run(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


def test_pandas_is_left_out_until_it_is_wanted():
    _run(PROGRAM)


def test_a_batch_of_local_files_imports_neither_pandas_nor_fsspec(tmp_path):
    _run(STREAM, tmp_path)
