"""`sluice run`, mostly in a process that has neither PySpark nor Java; and its Delta table."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.host.embedded_query import EmbeddedRun
from pyspark_sluice.connector.host.run import checked_with_target
from pyspark_sluice.connector.host.worker_pool import WorkerPool

# A module of None makes `import pyspark` fail as where it is not installed.
_START = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from pyspark_sluice.connector.cli.entry import run
sys.exit(run())
"""

SCHEMA = "id long, text string"


def keywords(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the source as keywords of `pyspark_sluice.run`."""
    names = {"fileFormat": "format", "checkpointLocation": "checkpoint", "writeSchema": "schema"}
    return {names.get(name, name): value for name, value in options.items()}


class Query:
    """One query below a directory."""

    def __init__(self, root: Path, checkpoint: str = "ck") -> None:
        self.source, self.table, self.checkpoint = root / "in", root / "table", root / checkpoint
        self.source.mkdir(parents=True, exist_ok=True)
        self.landed: Counter[int] = Counter()

    def options(self, **more: object) -> dict[str, Any]:
        """The options of the query, as `pyspark_sluice.run` takes them."""
        place = {"path": str(self.source), "checkpointLocation": str(self.checkpoint)}
        return {**place, "fileFormat": "json", "writeSchema": SCHEMA, **more}

    def land(self, name: str, ids: range, **columns: int) -> None:
        """Put a file of rows into the source, with more columns of one value each."""
        records = ({"id": i, "text": f"row {i}", **columns} for i in ids)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        temporary = self.source / f".{name.replace('/', '-')}"
        temporary.write_text(lines)
        temporary.rename(self.source / name)
        self.landed.update(ids)

    def start(
        self,
        *more: str,
        schema: str = SCHEMA,
        to: str = "",
        is_alone: bool = True,
        variables: Mapping[str, str] = MappingProxyType({}),
        **popen: Any,
    ) -> subprocess.Popen[str]:
        """Start the command in a process group of its own; alone, it finds no Spark and no Java.

        `variables` are added to the environment.
        """
        environment = {**os.environ, **variables}
        if is_alone:
            # Nothing is found on this path.
            environment["PATH"] = "/nowhere"
            environment.pop("JAVA_HOME", None)
        start = ["-c", _START] if is_alone else ["-m", "pyspark_sluice"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        return subprocess.Popen(
            [sys.executable, *start, *self._arguments(schema, to), *more],
            text=True,
            env=environment,
            start_new_session=True,
            **pipes,
        )

    def _arguments(self, schema: str, to: str) -> list[str]:
        arguments = ["run", str(self.source), "--to", to or f"delta:{self.table}"]
        arguments += ["--checkpoint", str(self.checkpoint)]
        return [*arguments, "--schema", schema] if schema else arguments

    def run_here(self, *more: str, schema: str = SCHEMA, to: str = "") -> tuple[int, str, str]:
        """Run the command in this process, of which nothing else is tested, as `run` does."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
                code = main([*self._arguments(schema, to), *more])
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return code, out.getvalue(), errors.getvalue()

    def run(self, *more: str, **how: Any) -> tuple[int, str, str]:
        """Run the command to its end: exit code, output, errors. `how` is for `start`."""
        process = self.start(*more, **how)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output, errors

    def batches(self, every: float | None = None, **options: object) -> Iterator[Any]:
        """Batches of a run in this process, one at a time."""
        with WorkerPool(1) as pool:
            call = checked_with_target(self.options(**options), f"delta:{self.table}")
            yield from EmbeddedRun(*call, pool, every=every).batches()

    def in_table(self) -> Counter[int]:
        """How often each id is in the table."""
        try:
            rows = DeltaTable(str(self.table)).to_pyarrow_table(columns=["id"])
        except TableNotFoundError:
            return Counter()
        return Counter(rows["id"].to_pylist())

    def logged(self, log: str) -> list[int]:
        """The batch numbers in a log of the checkpoint."""
        folder = self.checkpoint / log
        names = [p.name for p in folder.iterdir()] if folder.exists() else []
        return sorted(int(name) for name in names if name.isdecimal())
