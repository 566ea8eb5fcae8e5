"""The commands that pages print with URLs of S3 run as they are, against a server on loopback."""

from __future__ import annotations

import shlex

from deltalake import DeltaTable
from typer.testing import CliRunner

from pyspark_sluice.connector.cli.app import app
from pyspark_sluice.tests.pages import blocks, pages

COMMANDS = [
    line
    for page in pages()
    for block in blocks(page)
    if block.language == "sh"
    for line in block.code.replace("\\\n", " ").splitlines()
    if line.startswith("sluice ") and "s3://my-lake/" in line
]


def test_the_commands_of_the_pages_fill_and_show_a_table_in_a_bucket(server, bucket, monkeypatch):
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    for number in range(3):
        text = f'{{"order_id": {number}, "customer": "Ada", "amount": 12.5}}\n'
        server.put(bucket, f"landing/orders-{number}.json", text.encode())
    names = []
    for command in COMMANDS:
        words = shlex.split(command.replace("my-lake", bucket), comments=True)[1:]
        outcome = CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, f"{command}: {outcome.output}{outcome.exception!r}"
        assert outcome.output.strip(), command
        names.append(words[0])
    assert names == ["run", "status", "files", "compact-table"]
    options = {"aws_endpoint": server.url, "allow_http": "true"}
    assert DeltaTable(f"s3://{bucket}/orders", storage_options=options).count() == 3
