"""Three feeds of one configuration file, and their tables."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pyspark_sluice.connector.cli.app import main


class Feeds:
    """A directory with `sluice.toml`, and below it the files and tables of its feeds."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root, self.file = root, root / "sluice.toml"
        self.names = names or ("a", "b", "c")
        self.write()

    def write(self, defaults: str = "", **more: str) -> None:
        """Write the file; `more` adds lines to a feed, or makes a new one."""
        lines = ["[defaults]", 'format = "json"', 'schema = "id long"', defaults]
        for name in dict.fromkeys((*self.names, *more)):
            self.directory(name).mkdir(parents=True, exist_ok=True)
            lines += [f"[feed.{name}]", f'path = "in/{name}"', f'to = "delta:table/{name}"']
            lines += [f'checkpoint = "checkpoint/{name}"', more.get(name, "")]
        temporary = self.root / ".sluice.toml"
        temporary.write_text("\n".join(lines))
        temporary.rename(self.file)

    def directory(self, name: str) -> Path:
        """Where the files of a feed land."""
        return self.root / "in" / name

    def land(self, feed: str, name: str, *ids: int) -> None:
        """Put a file into a feed."""
        temporary = self.directory(feed) / f".{name}"
        temporary.write_text("".join(json.dumps({"id": each}) + "\n" for each in ids))
        temporary.rename(self.directory(feed) / name)

    def ids(self, name: str) -> list[int]:
        """The ids in the table of a feed, sorted."""
        try:
            table = DeltaTable(str(self.root / "table" / name))
        except TableNotFoundError:
            return []
        return sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist())

    @contextmanager
    def started(self, *more: str, **popen: Any) -> Iterator[subprocess.Popen[str]]:
        """`sluice run --config` in a process of its own, and not in the directory."""
        call = [sys.executable, "-m", "pyspark_sluice", "run", "--config", str(self.file), *more]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        process = subprocess.Popen(call, text=True, start_new_session=True, **pipes)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def call(self, command: str, *more: str) -> tuple[int, str, str]:
        """Run a command in this process: exit code, output, errors."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        handlers = {number: signal.getsignal(number) for number in numbers}
        before = Path.cwd()
        try:
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
                code = main([command, "--config", str(self.file), *more])
        finally:
            os.chdir(before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return code, out.getvalue(), errors.getvalue()

    def run(self, *more: str) -> tuple[int, str, str]:
        """`sluice run` in this process."""
        return self.call("run", *more)

    def names_below(self) -> list[str]:
        """Everything in the directory."""
        return sorted(str(path) for path in self.root.rglob("*"))
