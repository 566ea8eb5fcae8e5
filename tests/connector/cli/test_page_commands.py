"""Commands that pages print run as they are: against S3, HDFS and a local state."""

from __future__ import annotations

import io
import shlex
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

import pyspark_sluice
from pyspark_sluice import tables
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.connector.cli.app import app_of
from pyspark_sluice.tables.manifests import MANIFESTS
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.pages import blocks, pages
from pyspark_sluice.tests.repository import ROOT


def commands_of(*pages):
    """The calls of `sluice`, each as one line."""
    shell = [block.code for page in pages for block in blocks(page) if block.language == "sh"]
    lines = "".join(shell).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("sluice ")]


def output_of(command, codes=(0,)):
    """Run a command as a shell would; the first word of its arguments, and what it prints."""
    words = shlex.split(command, comments=True)[1:]
    outcome = CliRunner().invoke(app_of(), words)
    assert outcome.exit_code in codes, f"{command}: {outcome.output}{outcome.exception!r}"
    assert outcome.output.strip(), command
    return words[0], outcome.output


def order(number):
    return f'{{"order_id": {number}, "customer": "Ada", "amount": 12.5}}\n'.encode()


def test_the_commands_of_the_pages_fill_and_show_a_table_in_a_bucket(
    server, bucket, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    for number in range(3):
        server.put(bucket, f"landing/orders-{number}.json", order(number))
    commands = [
        line for line in commands_of(*pages()) if "s3://my-lake/" in line and "$" not in line
    ]
    names = [output_of(command.replace("my-lake", bucket))[0] for command in commands]
    assert names == ["run", "status", "files", "run", "compact-table"]
    options = {"aws_endpoint": server.url, "allow_http": "true"}
    assert DeltaTable(f"s3://{bucket}/orders", storage_options=options).count() == 3


def test_the_commands_of_the_page_on_hdfs_fill_and_show_a_table(hdfs):
    place, home = "hdfs://namenode:8020", f"hdfs://{hdfs.authority}/{uuid.uuid4().hex}"
    files, root = open_storage(home, {})
    for number in range(3):
        files.create(f"{root}/landing/orders-{number}.json", order(number))
    commands = [line for line in commands_of(ROOT / "docs/hdfs.md") if f"{place}/" in line]
    outputs = [output_of(command.replace(place, home)) for command in commands]
    assert [name for name, _ in outputs] == ["run", "status"]
    assert "files seen   3" in outputs[-1][1]
    written = tables.manifest(f"{home}/tables/orders/{MANIFESTS}").paths()
    rows = [pq.read_table(io.BytesIO(files.whole(files.name(each)))) for each in written]
    assert sorted(i for each in rows for i in each["order_id"].to_pylist()) == [0, 1, 2]


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("shop")
    places = {name: str(home / name) for name in ("landing", "checkpoint", "table")}
    Path(places["landing"]).mkdir()
    Path(places["landing"], "orders-17.json").write_text('{"order_id": 1}\n')
    options = {"path": places["landing"], "checkpointLocation": places["checkpoint"]}
    pyspark_sluice.run(
        **keywords({**options, "fileFormat": "json"}), to=f"delta:{places['table']}", workers=0
    )
    return places


RUNBOOK = {
    line
    for line in commands_of(ROOT / "docs/runbook.md")
    # A session on a cluster; a view that ends with Ctrl-C.
    if "--master" not in line and line != 'sluice watch "$checkpoint"'
}


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(RUNBOOK))
def test_a_command_of_the_runbook_does_what_it_says(places, command):
    for name, path in places.items():
        command = command.replace(f"${name}", path)
    # The query of the page is older. 1: success, and something needs attention.
    output_of(command.replace("--at 41", "--at 1"), codes=(0, 1))
