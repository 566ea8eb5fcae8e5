"""Sessions: the errors that they show, the modules that they import, and starts after errors."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from pyspark_sluice import run_with_evolution
from pyspark_sluice.connector.session.processes import plain_errors
from pyspark_sluice.errors import MissingPathError, ProtocolError
from pyspark_sluice.tests.patience import PATIENCE


@plain_errors()
def _fails(kind: type[Exception]) -> None:
    try:
        raise OSError("the disk's own words")
    except OSError as error:
        raise kind("what", "where") from error


def test_an_error_of_the_tree_leaves_without_cause_and_context():
    with pytest.raises(MissingPathError, match="what: where") as caught:
        _fails(MissingPathError)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "SPARK_HIDE_TRACEBACK" not in os.environ, "this process is none of Spark's"


@pytest.mark.parametrize("kind", [ProtocolError, ZeroDivisionError])
def test_a_bug_keeps_its_history(kind):
    with pytest.raises(kind) as caught:
        _fails(kind)
    assert isinstance(caught.value.__cause__, OSError)


STREAM = """
import sys, types
from pathlib import Path
import pyarrow as pa
sys.modules["__main__"].__spec__ = types.SimpleNamespace(name="pyspark.of.spark")
from pyspark_sluice.tests.connector.stream import Stream
stream = Stream(Path(sys.argv[1]), {})
stream.land("a.json")
assert stream.batch() == [0]
stream.reader.stop()
assert "fsspec" not in sys.modules
assert pa.array(["a", "b"], pa.string()).to_pylist() == ["a", "b"]
assert "pandas" not in sys.modules
frame = pa.table({"a": [1.5, None]}).to_pandas()
assert frame["a"].isna().tolist() == [False, True]
assert pa.array(frame["a"]).null_count == 1, "a series is one again"
from pyspark_sluice.connector.session.processes import leave_pandas_out
leave_pandas_out()
import pandas
assert pandas is sys.modules["pandas"]
"""


def test_a_batch_of_local_files_imports_neither_fsspec_nor_pandas(tmp_path):
    command = [sys.executable, "-c", STREAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


STARTED = """
import os, sys
sys.argv = ["sluice", "runbook"]
from pyspark_sluice.connector.cli.entry import run
run()
assert "numpy" in sys.modules and "OPENBLAS_NUM_THREADS" not in os.environ
# One is pyarrow's own.
assert len(os.listdir("/proc/self/task")) <= 2
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads by /proc")
def test_a_command_starts_no_threads_for_linear_algebra(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    command = [sys.executable, "-c", STARTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


LATE = """
import sys, threading
import pyarrow as pa
from pyspark_sluice.connector.session.processes import import_late
import_late("pyarrow.compute", "pyarrow.lib")
import pyarrow.compute as pc
from pyarrow import compute
assert "inspect" in sys.modules and "pyarrow.vendored.docscrape" not in sys.modules
assert pa.lib is sys.modules["pyarrow.lib"] and pa.lib.Array is pa.Array
class TooManyFiles:
    def find_spec(self, *_):
        raise OSError("too many open files")
sys.meta_path.insert(0, TooManyFiles())
try:
    pc.take
except OSError:
    del sys.meta_path[0]
found, at_once = [], threading.Barrier(8)
def use():
    at_once.wait()
    found.append(pc.take)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
real = sys.modules["pyarrow.compute"]
assert real is not pc and found == [real.take] * 8, found
assert pa.compute is real and compute.take is real.take
assert pa.array([1, 2], pa.int64()).take(pa.array([1], pa.int64())).to_pylist() == [2]
try:
    pc.no_such_function
except AttributeError as error:
    assert "pyarrow.compute" in str(error)
else:
    raise AssertionError
"""


def test_a_module_that_is_imported_late_is_the_module_for_all_who_use_it():
    command = [sys.executable, "-c", LATE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr


class Stopped:
    """A query that new columns have stopped, or that has ended."""

    def __init__(self, column, version):
        self.column, self.version = column, version

    def awaitTermination(self, timeout):  # noqa: N802
        if self.column:
            raise StreamingQueryException(
                "pyspark_sluice.errors.SchemaEvolvedError: the data has new columns: "
                f"found {self.column} long. It continues with version {self.version} of the "
                "schema. "
                "SQLSTATE: 38000"
            )


def test_a_query_that_stops_of_the_same_column_again_and_again_is_not_started_for_ever():
    starts: Iterator[Any]
    starts = iter([Stopped("a", 1), Stopped("b", 2), Stopped("b", 4), Stopped("", 0)])
    with pytest.raises(StreamingQueryException, match=r"found b long.*version 4"):
        run_with_evolution(lambda: next(starts))
    assert not run_with_evolution(lambda: next(starts)).column
