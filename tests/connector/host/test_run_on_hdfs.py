"""`sluice run` with state, data and table on HDFS, killed all the time."""

from __future__ import annotations

import io
import json
import os
import signal
import time
import uuid
from collections import Counter

import pyarrow.parquet as pq

from pyspark_sluice import tables
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.connector.host.targets import MANIFESTS
from pyspark_sluice.tests.connector.host.query import Query

KILLS = 50


def test_kills_of_the_host_at_any_time_lose_and_double_nothing(hdfs, tmp_path):
    home = f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}"
    files, root = open_storage(home, {})
    query = Query(tmp_path)
    query.source = f"{home}/in"  # type: ignore[assignment]
    query.checkpoint = f"{home}/ck"  # type: ignore[assignment]
    to = f"parquet:{home}/table"
    limit = ("--option", "maxFilesPerTrigger=1", "--workers", "2")
    landed = Counter[int]()
    for turn in range(KILLS):
        for number in range(3):
            ids = range((turn * 3 + number) * 10, (turn * 3 + number) * 10 + 10)
            lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
            files.create(f"{root}/in/{turn:02}-{number}.json", lines.encode())
            landed.update(ids)
        process = query.start(*limit, to=to)
        # From the start of Python to the last of three batches.
        time.sleep(0.5 + turn % 6 * 0.5)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    code, _, errors = query.run(*limit, to=to)
    assert (code, errors) == (0, "")
    written = tables.manifest(f"{home}/table/{MANIFESTS}").paths()
    rows = [pq.read_table(io.BytesIO(files.whole(files.name(each)))) for each in written]
    assert Counter(i for each in rows for i in each["id"].to_pylist()) == landed
    offsets, commits = (files.names(f"{root}/ck/{log}") for log in ("offsets", "commits"))
    assert offsets == commits
    print(f"{KILLS} kills, {len(offsets)} batches, {landed.total()} rows")
