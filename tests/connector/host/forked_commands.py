"""Commands of `sluice` in forks of one process that has the imports: a start takes 0.1 s.

The process has no thread, so a fork of it is like a new process. Each fork leads a group of its
own, and can be killed with all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

_PRELOADED = (
    "pyspark_sluice.connector.cli.app",
    "pyspark_sluice.connector.host.run",
    "pyspark_sluice.connector.cli.commands.repair",
    "pyspark_sluice.connector.cli.commands.spark_run",
    "pyspark_sluice.tests.connector.host.living_jvm",
    "deltalake",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
)


class ForkedCommand:
    """A command that was started."""

    def __init__(self, server: ForkedCommands, pid: int, output: Path) -> None:
        self._server, self.pid, self._output = server, pid, output
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self._code is None:
            self._code = self._server.ask({"poll": self.pid})
        return self._code

    def wait(self, seconds: float) -> int | None:
        """The exit code, or None after so many seconds."""
        ends = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < ends:
            time.sleep(0.005)
        return self._code

    def kill(self) -> None:
        """SIGKILL to it and what it has started."""
        os.killpg(self.pid, signal.SIGKILL)
        self.wait(60)

    @property
    def output(self) -> str:
        """All lines that it has printed."""
        return self._output.read_text()


class ForkedCommands:
    """Starts commands; a context, with variables of the environment of all of them."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._started = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, request: Mapping[str, Any]) -> Any:
        """The answer of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(
        self, *arguments: str, variables: Mapping[str, str] = MappingProxyType({})
    ) -> ForkedCommand:
        """Start a command, with more variables of the environment."""
        self._started += 1
        output = self._folder / f"{self._started}.txt"
        request = {"arguments": arguments, "output": str(output), "variables": {**variables}}
        pid = self.ask(request)
        return ForkedCommand(self, pid, output)

    def run(
        self, *arguments: str, variables: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[int | None, str]:
        """Run a command to its end: exit code, and what it has printed."""
        command = self.start(*arguments, variables=variables)
        return command.wait(300), command.output


def _serve() -> None:
    for name in _PRELOADED:
        # PySpark may not be installed.
        with suppress(ImportError):
            __import__(name)
    codes: dict[int, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid = request["poll"]
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
            answer = codes.get(pid)
        else:
            answer = os.fork()
            if not answer:
                _become(**request)
            # Here as well: a kill of the group may be faster than the fork.
            os.setpgid(answer, answer)
            # A process that has ended long ago may have had the same number.
            codes.pop(answer, None)
        print(json.dumps(answer), flush=True)


def _become(arguments: list[str], output: str, variables: Mapping[str, str]) -> None:
    from pyspark_sluice.connector.cli.app import main

    code = 70
    try:
        os.setpgid(0, 0)
        os.environ.update(variables)
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(target, number)
        os.close(0)
        if "PYSPARK_GATEWAY_PORT" in variables:
            from pyspark_sluice.tests.connector.host.living_jvm import connect

            connect()
        code = main(arguments)
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
