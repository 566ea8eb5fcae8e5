"""`sluice run` in a process of its own, which has neither PySpark nor Java; and its Delta table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

# A module of None makes `import pyspark` fail as where it is not installed.
_START = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from pyspark_sluice.connector.cli.entry import run
sys.exit(run())
"""


class Query:
    """One query below a directory."""

    def __init__(self, root: Path) -> None:
        self.source, self.table, self.checkpoint = root / "in", root / "table", root / "ck"
        self.source.mkdir()
        self.landed: Counter[int] = Counter()

    def land(self, name: str, ids: range, **columns: int) -> None:
        """Put a file of rows into the source, with more columns of one value each."""
        records = ({"id": i, "text": f"row {i}", **columns} for i in ids)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        temporary = self.source / f".{name}"
        temporary.write_text(lines)
        temporary.rename(self.source / name)
        self.landed.update(ids)

    def start(self, *more: str, schema: str = "id long, text string") -> subprocess.Popen[str]:
        """Start the command in a process group of its own."""
        arguments = ["run", str(self.source), "--to", f"delta:{self.table}"]
        arguments += ["--checkpoint", str(self.checkpoint)]
        arguments += ["--schema", schema] if schema else []
        # No Java, either: nothing is found on this path.
        environment = {**os.environ, "PATH": "/nowhere"}
        environment.pop("JAVA_HOME", None)
        return subprocess.Popen(
            [sys.executable, "-c", _START, *arguments, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def run(self, *more: str, schema: str = "id long, text string") -> tuple[int, str, str]:
        """Run the command to its end: exit code, output, errors."""
        process = self.start(*more, schema=schema)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output, errors

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
