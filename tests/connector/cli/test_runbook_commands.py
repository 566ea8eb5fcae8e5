"""The commands of the runbook run as they are printed, on the state of a query that has ended."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pyspark_sluice
from pyspark_sluice.connector.cli.app import app
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

COMMANDS = sorted(
    {
        line
        for block in re.findall(
            r"(?ms)^```sh\n(.*?)^```", (ROOT / "docs/runbook.md").read_text(encoding="utf-8")
        )
        for line in block.splitlines()
        if line.startswith("sluice ")
        # A session on a cluster; a view that ends with Ctrl-C.
        and "--master" not in line
        and line != 'sluice watch "$checkpoint"'
    }
)


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("shop")
    places = {name: str(home / name) for name in ("landing", "checkpoint", "table")}
    Path(places["landing"]).mkdir()
    Path(places["landing"], "orders-17.json").write_text('{"order_id": 1}\n')
    pyspark_sluice.run(
        {
            "path": places["landing"],
            "fileFormat": "json",
            "checkpointLocation": places["checkpoint"],
        },
        to=f"delta:{places['table']}",
        workers=0,
    )
    return places


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_runbook_does_what_it_says(places, command):
    for name, path in places.items():
        command = command.replace(f"${name}", path)
    # The query of the page is older.
    words = shlex.split(command.replace("--at 41", "--at 1"))[1:]
    outcome = CliRunner().invoke(app, words)
    # 1: success, and something needs attention, such as that nothing was selected.
    assert outcome.exit_code in (0, 1), f"{outcome.output}{outcome.exception!r}"
    assert outcome.output.strip()
