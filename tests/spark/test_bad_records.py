"""Bad records through a SIGKILL: counted in their files and in the table, each exactly once."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.examples.demo.watch import Watch
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.moments import in_the_tasks
from pyspark_sluice.tests.spark.programs import bad_records_query

pytestmark = [pytest.mark.spark, pytest.mark.drivers]

FILES, ROWS = 48, 4000
"""A task takes long enough to be met at its work."""


def is_bad(number: int) -> bool:
    return number % 7 == 0


def record(file_format: str, number: int) -> str:
    value = f"bad{number}" if is_bad(number) else str(number)
    if file_format == "csv":
        return f"{value},row"
    if file_format == "xml":
        return f"<ROW><id>{value}</id></ROW>"
    return f'{{"id": {value}}}'


def land(root: Path, file_format: str) -> None:
    (root / "landing").mkdir()
    for file in range(FILES):
        numbers = range(file * ROWS, (file + 1) * ROWS)
        lines = "".join(record(file_format, number) + "\n" for number in numbers)
        (root / "landing" / f"{file:03}.data").write_text(lines)


def start(root: Path, file_format: str, sink: str) -> Driver:
    program = [sys.executable, bad_records_query.__file__, str(root), file_format, sink]
    return Driver(program, lambda line: None)


def kill_in_the_tasks(driver: Driver, watch: Watch) -> None:
    """One task of a batch has committed and another has not, when everything dies at once."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert driver.ended() is None, "\n".join(driver.tail)
        if in_the_tasks(watch):
            driver.freeze()
            if in_the_tasks(watch):
                driver.kill()
                return
            driver.thaw()
        time.sleep(0.001 if watch.epochs() else 0.02)
    pytest.fail("no batch was met at its work\n" + "\n".join(driver.tail))


@pytest.mark.parametrize(
    ("file_format", "sink"),
    [
        ("csv", "delta"),
        pytest.param(
            "json",
            "parquet",
            marks=pytest.mark.thorough("bad records of each format take the same way"),
        ),
        pytest.param(
            "xml",
            "parquet",
            marks=pytest.mark.thorough("bad records of each format take the same way"),
        ),
    ],
)
@pytest.mark.thorough("test_crash.py and test_soak.py kill at each moment")
def test_a_kill_loses_and_doubles_no_bad_record_and_no_row(spark, tmp_path, file_format, sink):
    land(tmp_path, file_format)
    driver = start(tmp_path, file_format, sink)
    try:
        kill_in_the_tasks(driver, Watch(tmp_path / "checkpoint"))
        driver = start(tmp_path, file_format, sink)
        assert driver.wait(PATIENCE) == 0, "\n".join(driver.tail)
    finally:
        driver.kill()
    everything = range(FILES * ROWS)
    if sink == "delta":
        table = DeltaTable(str(tmp_path / "sink"))
        found = table.to_pyarrow_table(columns=["id"])["id"].to_pylist()
    else:
        found = [row.id for row in spark.read.parquet(str(tmp_path / "sink")).collect()]
    assert Counter(found) == Counter(n for n in everything if not is_bad(n))
    bad = spark.read.json(f"{tmp_path}/bad/*/bad_records")
    assert bad.columns == ["path", "position", "reason", "record"]
    expected = Counter(record(file_format, n) for n in everything if is_bad(n))
    assert Counter(row.record for row in bad.collect()) == expected
    # The same by names alone: what Spark does not see has been counted as well.
    files = [path for path in (tmp_path / "bad").rglob("*.json") if path.name[0] != "."]
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert len(lines) == expected.total()
