"""`sluice run` with state, data and table on HDFS: the commands of the page, and kills."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import time
import uuid
from collections import Counter

import pyarrow.parquet as pq
from typer.testing import CliRunner

from pyspark_sluice import tables
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.connector.cli.app import app
from pyspark_sluice.connector.host.run import MANIFESTS
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.pages import blocks
from pyspark_sluice.tests.repository import ROOT

KILLS = 18


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


def test_the_commands_of_the_page_on_hdfs_fill_and_show_a_table(hdfs):
    home = f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}"
    files, root = open_storage(home, {})
    for number in range(3):
        line = f'{{"order_id": {number}, "customer": "Ada", "amount": 12.5}}\n'
        files.create(f"{root}/landing/orders-{number}.json", line.encode())
    code = "".join(block.code for block in blocks(ROOT / "docs/hdfs.md") if block.language == "sh")
    lines = code.replace("\\\n", " ").splitlines()
    commands = [line for line in lines if "hdfs://namenode:8020/" in line]
    for command in commands:
        words = shlex.split(command.replace("hdfs://namenode:8020", home))[1:]
        outcome = CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, f"{command}: {outcome.output}{outcome.exception!r}"
    assert [command.split()[1] for command in commands] == ["run", "status"]
    assert "files seen   3" in outcome.output
    written = tables.manifest(f"{home}/tables/orders/{MANIFESTS}").paths()
    rows = [pq.read_table(io.BytesIO(files.whole(files.name(each)))) for each in written]
    assert sorted(i for each in rows for i in each["order_id"].to_pylist()) == [0, 1, 2]
