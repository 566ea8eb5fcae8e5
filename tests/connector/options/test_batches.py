"""What a batch of a stream has, by its options."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType

from pyspark_sluice.connector.source import file_source
from pyspark_sluice.connector.source.file_source import driver_cores
from pyspark_sluice.tests.connector.stream import LONG_AGO

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"maxFilesPerTrigger": "3"}, [0, 1, 2]),
        ({"maxBytesPerTrigger": "20"}, [0, 1]),
        ({"maxFilesPerTrigger": "3", "maxBytesPerTrigger": "20"}, [0, 1]),
        ({"maxBatchDuration": "1h"}, [0, 1, 2, 3, 4, 5]),
        ({"maxFilesPerTrigger": "3", "fileOrder": "name"}, [5, 4, 3]),
        ({"maxFilesPerTrigger": "3", "fileOrder": "newestFirst"}, [5, 4, 3]),
        ({"maxFilesPerTrigger": "4", "freshShare": "0.5"}, [0, 1, 4, 5]),
    ],
)
def test_limits_and_file_order_decide_which_files_the_first_batch_has(begin, options, first):
    stream = begin(parallelism="1", **options)
    for number in range(6):
        stream.land(f"{9 - number}.json", at=LONG_AGO + number)
    assert sorted(stream.batch()) == sorted(first)
    assert len(stream.until(6 - len(first))) == 6 - len(first)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"maxEventTimeSkew": "0"}, [3]),
        ({"maxEventTimeSkew": "1h"}, [2, 3]),
        ({"maxEventTimeSkew": "1d"}, [0, 1, 2, 3]),
        ({"maxEventTimeSkew": "0", "eventTimePattern": "{yyyy}-{MM}-{dd}"}, [0, 1, 2, 3]),
        ({"maxEventTimeSkew": "1h", "startAt": "2026-01-02T02"}, [1, 2]),
        ({"maxEventTimeSkew": "1d", "endAt": "2026-01-02T03"}, [2, 3]),
        ({"maxEventTimeSkew": "1d", "endAt": "path:date=2026-01-02/hour=02"}, [3]),
    ],
)
def test_options_of_event_time_decide_which_files_the_first_batch_has(begin, options, first):
    stream = begin(fileOrder="eventTime", **options)
    stream.land(*(f"date=2026-01-02/hour={hour:02}/a.json" for hour in (4, 3, 2, 1)))
    assert sorted(stream.batch()) == first


def test_a_batch_has_as_many_tasks_as_the_parallelism_says(begin):
    stream = begin(parallelism="3")
    stream.land(*(f"{number}.json" for number in range(9)))
    _, partitions = stream.plan()
    assert len(partitions) == 3


def test_a_batch_has_as_many_tasks_as_its_bytes_want_after_one_that_wanted_many(begin, monkeypatch):
    # As if each file were half of what a reader is meant to read; no core is idle at the end.
    monkeypatch.setattr(file_source, "_OPEN_COST_LOCAL", 64 * 1024 * 1024)
    stream = begin(maxFilesPerTrigger="12")
    stream.land(*(f"{number:02}.json" for number in range(17)))
    cores = driver_cores()
    for files, by_size in ((12, 7), (5, 3)):
        stream.at, partitions = stream.plan()
        assert len(partitions) == min(files, -(-by_size // cores) * cores)
        for partition in partitions:
            assert list(stream.reader.read(partition))


def test_a_large_file_is_one_file_to_the_limit_on_files_in_however_many_splits(begin, tmp_path):
    stream = begin(maxFilesPerTrigger="1", maxSplitBytes="16k", parallelism="9", fileOrder="name")
    rows = [{"id": number} for number in range(5000)]
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    stream.land("b.json")
    _, partitions = stream.plan()
    assert len(partitions) == 4
    assert sorted(stream.batch()) == list(range(5000))
    assert stream.batch() == [0]


def test_a_limit_on_rows_holds_inside_one_file_and_after_a_restart_in_its_middle(begin, tmp_path):
    options = {"fileFormat": "parquet", "maxRowsPerTrigger": "250"}
    stream = begin(**options)
    table = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(table, tmp_path / "in" / "a.parquet", 100)
    taken = [stream.batch(), stream.batch()]
    stream.reader.stop()
    at, stream = stream.at, begin(**options)
    stream.at = at
    while sum(map(len, taken)) < 1000:
        taken.append(stream.batch())
    assert [row for rows in taken for row in rows] == list(range(1000))
    assert len(taken) == 4


def test_a_batch_ends_once_its_readers_have_read_for_the_longest_duration(begin, tmp_path):
    stream = begin(maxBatchDuration="1ms")
    lines = "".join(f'{{"id":{number}}}\n' for number in range(300_000))
    (tmp_path / "in" / "a.json").write_text(lines)
    taken = [stream.batch(), stream.batch()]
    assert all(0 < len(rows) < 200_000 for rows in taken)
    while sum(map(len, taken)) < 300_000:
        taken.append(stream.batch())
    assert sorted(row for rows in taken for row in rows) == list(range(300_000))


def test_a_source_of_the_user_s_is_read_with_its_own_options(begin, tmp_path):
    source = "pyspark_sluice.examples.log_source.log_source:LogSource"
    schema = StructType().add("partition", "string").add("position", "long").add("line", "string")
    stream = begin(schema, source=source, sourceOptions='{"slice": 2}', parallelism="2")
    for name in ("p0", "p1"):
        (tmp_path / "in" / f"{name}.log").write_text("a\nb\nc\nd\ne\n")
    assert [len(stream.batch()) for _ in range(3)] == [4, 4, 2]
