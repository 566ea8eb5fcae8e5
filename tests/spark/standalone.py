"""A standalone Spark cluster of one master and two workers, and an S3 server, on loopback.

PySpark ships the classes. Everything is started here, listens on 127.0.0.1 only, waits with a
bound, and is ended by its id.

Not here: what runs on the cluster (`soak.py`, `test_standalone.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home

from pyspark_sluice.examples.demo.driver import descendants
from pyspark_sluice.tests.patience import PATIENCE

BUCKET = "lake"


class Daemon:
    """One process in a group of its own, with its output in a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, env=environment, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """Of the process itself."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    def wait_until(self, text: str, what: str) -> None:
        """Return once the process has said `text`."""
        self.wait_for(lambda: text in self._log.read_text(errors="replace"), what)

    def wait_for(self, ready: Callable[[], bool], what: str) -> None:
        """Return once `ready`; raise if that takes too long or the process ends before."""
        deadline = time.monotonic() + PATIENCE
        while not ready():
            if not self.runs or time.monotonic() > deadline:
                tail = self._log.read_text(errors="replace")[-2000:]
                message = f"{what} did not come up:\n{tail}"
                raise TimeoutError(message)
            time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to the process and everything below it; returns when it is gone."""
        below = descendants(self.pid) if self.runs else []
        for pid in (self.pid, *below):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE)


class StandaloneCluster:
    """One master, and workers of one core each."""

    def __init__(self, home: Path, *, workers: int = 2) -> None:
        self._home = home
        home.mkdir(parents=True, exist_ok=True)
        # What a worker passes on to its executors must not be a driver's own affairs.
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))
        }
        self._environment = {
            **inherited,
            "SPARK_HOME": _find_spark_home(),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            # An application outlives as many executors as a test may kill.
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            "PYSPARK_PYTHON": sys.executable,
        }
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._master = self._start(
            "master", "org.apache.spark.deploy.master.Master", "--port", str(port)
        )
        self._workers: list[Daemon] = []
        try:
            self._master.wait_until("I have been elected", "the master")
            self._workers = [self._start_worker(number) for number in range(workers)]
            for worker in self._workers:
                worker.wait_until("registered with master", "a worker")
        except BaseException:
            self.kill()
            raise

    def _start(self, name: str, main: str, *arguments: str) -> Daemon:
        command = [
            str(Path(self._environment["SPARK_HOME"]) / "bin" / "spark-class"),
            main,
            *("--host", "127.0.0.1", "--webui-port", "0"),
            *arguments,
        ]
        return Daemon(command, self._home / f"{name}.log", self._environment)

    def _start_worker(self, number: int) -> Daemon:
        work = self._home / f"work-{number}"
        return self._start(
            f"worker-{number}",
            "org.apache.spark.deploy.worker.Worker",
            *("--cores", "1", "--memory", "700M", "--work-dir", str(work), self.url),
        )

    def processes(self, mark: bytes) -> list[int]:
        """Processes below the workers, and these themselves, with `mark` in their command line."""
        found = []
        for worker in self._workers:
            for pid in (worker.pid, *descendants(worker.pid)):
                with contextlib.suppress(OSError):
                    if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                        found.append(pid)
        return found

    def replace_dead_workers(self) -> None:
        """Start a worker for each that was killed, as the operator of a cluster does."""
        for number, worker in enumerate(self._workers):
            if not worker.runs:
                worker.kill()
                self._workers[number] = self._start_worker(number)

    def kill(self) -> None:
        """End all of it."""
        for daemon in (*self._workers, self._master):
            daemon.kill()


class S3Server:
    """An S3 server in a process of its own, with one bucket."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self._process = Daemon(command, home / "s3.log", dict(os.environ))
        self.options: dict[str, Any] = {
            "key": "test",
            "secret": "test",
            "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"},
        }
        try:
            self._process.wait_for(lambda: _listens(port), "the S3 server")
            self.files.call_s3("create_bucket", Bucket=BUCKET)
        except BaseException:
            self.kill()
            raise

    @property
    def files(self) -> Any:
        """The server as a file system of fsspec."""
        import fsspec

        return fsspec.filesystem("s3", use_listings_cache=False, **self.options)

    @property
    def storage_options(self) -> str:
        """What goes into the option of that name."""
        return json.dumps(self.options)

    def kill(self) -> None:
        """End it; its content is gone."""
        self._process.kill()


@contextlib.contextmanager
def standalone(home: Path) -> Iterator[tuple[StandaloneCluster, S3Server]]:
    """A cluster and an S3 server for as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        server = S3Server(home)
        stack.callback(server.kill)
        cluster = StandaloneCluster(home)
        stack.callback(cluster.kill)
        yield cluster, server


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
