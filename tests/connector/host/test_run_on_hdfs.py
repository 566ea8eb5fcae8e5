"""`sluice run` with state, data and table on HDFS: the commands of the page."""

from __future__ import annotations

import io
import shlex
import uuid

import pyarrow.parquet as pq
from typer.testing import CliRunner

from pyspark_sluice import tables
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.connector.cli.app import app
from pyspark_sluice.connector.host.run import MANIFESTS
from pyspark_sluice.tests.pages import blocks
from pyspark_sluice.tests.repository import ROOT


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
