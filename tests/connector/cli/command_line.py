"""Commands in this process, and queries whose state they change."""

import json
from functools import partial

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.query.spark_checkpoint import Offsets
from pyspark_sluice.tests.connector.queries import drained
from pyspark_sluice.tests.patience import wait_until


def run(capsys, *arguments, code=0):
    """Run a command, and return the JSON that it prints."""
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def states(capsys, query):
    rows = run(capsys, "files", query.state)
    return {row["path"].rpartition("/")[2]: (row["state"], row["reason"]) for row in rows}


def land(query, **files):
    for name, row in files.items():
        query.land(f"{name}.json", text=json.dumps({"id": row}) + "\n")


def await_checkpoint(query, number):
    leaves = partial(query.store.list, "checkpoints")
    wait_until(lambda: any(leaf.startswith(f"{number:010d}") for leaf in leaves()))


def spark_knows(query, ref, *, committed=False):
    """Spark's offset log ends with this checkpoint; the sink has it only if it is `committed`."""
    text = json.dumps(Offsets(query.coordinator.history).offset(ref))
    for folder in ("offsets", "commits")[: 1 + committed]:
        (query.location / folder).mkdir(exist_ok=True)
        (query.location / folder / str(ref.checkpoint)).write_text(f"v1\n{{}}\n{text}\n")


def quarantine(query, **files):
    query.options |= {"onSplitError": "return", "mode": "FAILFAST"}
    for name in files:
        query.land(f"{name}.json", text="{ this is no json\n")
    assert drained(query) == []
