"""JSON files, a checkpoint and a Delta table, and runs of the embedded host over them."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice import run
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.connector.host.batch_log import BatchLog
from pyspark_sluice.connector.host.run import checked_with_target, planned_batch
from pyspark_sluice.connector.host.wording import as_options
from pyspark_sluice.connector.query.driver import StreamDriver
from pyspark_sluice.enumerator.coordinator import coordinator
from pyspark_sluice.errors import TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.tables.sinks import processes

DELETING = {
    "onDelete": "retract",
    "retractAfter": "1s",
    "writeFileColumn": "file",
    "discoveryAttempts": "1",
}
"""Options with which the rows of a deleted file leave the table."""


class Landing:
    """Files, a checkpoint and a Delta table below one directory."""

    def __init__(self, root):
        self.data, self.checkpoint, self.table = root / "in", root / "ck", root / "table"
        self.data.mkdir(exist_ok=True)

    def json(self, name, *rows):
        (self.data / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def create(self, *columns, partition_by=()):
        schema = pa.schema([*columns])
        DeltaTable.create(str(self.table), schema=schema, partition_by=[*partition_by])

    def call(self, **options):
        usual = {"path": str(self.data), "checkpointLocation": str(self.checkpoint)}
        inferred = {} if "writeSchema" in options else {"inferColumnTypes": "true"}
        return {"fileFormat": "json", **usual, **inferred, **options}

    def run(self, to=None, **options):
        return run(**keywords(self.call(**options)), to=to or f"delta:{self.table}")

    def refused(self, told, to=None, error=TableError, **options):
        """Neither the run nor the rehearsal leaves a trace, but for the record of the run."""
        before = self.files()
        target = to or f"delta:{self.table}"
        with pytest.raises(error, match=told) as run_error:
            self.run(to, **options)
        with pytest.raises(error) as dry_error:
            planned_batch(*checked_with_target(self.call(**options), target))
        assert as_options(str(dry_error.value)) == str(run_error.value)
        assert self.files() == before

    def die(self, step, is_done, **options):
        """A run in a process that is killed before or after a step."""
        arguments = self.data.parent, step, is_done
        killed = processes().Process(target=run_and_die, args=arguments, kwargs=options)
        killed.start()
        killed.join(PATIENCE)
        assert killed.exitcode == -signal.SIGKILL

    def files(self):
        return sorted(path for path in self.data.parent.rglob("*") if "runs" not in path.parts)

    def rows(self):
        return DeltaTable(str(self.table)).to_pyarrow_table().to_pylist()


STEPS: dict[str, tuple[Any, str]] = {
    "give back": (coordinator, "give_back"),
    "commit": (ReaderCommits, "publish"),
    "sink": (DeltaSink, "add"),
    "log": (BatchLog, "end"),
    "delete": (StreamDriver, "_delete_written"),
}


def dying_at(step, is_done, die):
    """An owner, a name and a function in its place, which calls `die` before or after a step."""
    owner, name = STEPS[step]
    function = getattr(owner, name)

    def dying(*arguments, **more):
        if is_done:
            function(*arguments, **more)
        die()

    return owner, name, dying


def run_and_die(root, step, is_done, **options):
    """Run the query, without the rows that have no `v`, and die before or after a step."""
    setattr(*dying_at(step, is_done, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    Landing(root).run(**{"filter": "v IS NOT NULL", **options})
