"""A JVM with one context of Spark for many drivers, one after the other: each starts in a second.

Each driver is a process of its own, and runs one query. A test that kills a driver ends the query
that it has left in the JVM, as the death of a real driver does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from pyspark import SparkContext
from pyspark.daemon import manager
from pyspark.java_gateway import launch_gateway

from pyspark_sluice.connector.spark import limited_reader  # noqa: F401 - for forks, see below
from pyspark_sluice.examples.demo.driver import descendants
from pyspark_sluice.tests.spark_home import use_a_quick_home

_SETTINGS: Final = {
    "spark.app.name": "drivers",
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Spark's Python processes are forks of this module, which has the imports.
    "spark.python.daemon.module": __spec__.name,
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
}


class LivingJvm:
    """It starts when a query needs it."""

    def __init__(self) -> None:
        self._gateway: Any = None

    def variables(self) -> Mapping[str, str]:
        """Variables that connect a driver to the JVM; see `connect`."""
        if self._gateway is None:
            self._start()
        parameters = self._gateway.gateway_parameters
        return {
            "PYSPARK_GATEWAY_PORT": str(parameters.port),
            "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
        }

    def _start(self) -> None:
        use_a_quick_home()
        settings = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 1g {settings} pyspark-shell"
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._gateway = launch_gateway(popen_kwargs={"stderr": subprocess.DEVNULL})

    def workers(self) -> set[int]:
        """The Python processes of the source and of tasks; not those of which they are forks."""
        return {
            worker
            for process in descendants(self._gateway.proc.pid)
            for worker in descendants(process)
        }

    def end_query(self) -> None:
        """End the query that a killed driver has left."""
        sessions = self._gateway.jvm.org.apache.spark.sql.classic.SparkSession
        session = sessions.getDefaultSession()
        if session.isDefined():
            for query in session.get().streams().active():
                query.stop()
            sessions.clearDefaultSession()

    def kill(self) -> None:
        """SIGKILL to it and what it has started; the next driver gets another one."""
        if self._gateway is None:
            return
        process = self._gateway.proc
        for pid in [process.pid, *descendants(process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        self._gateway = None


class _Context(SparkContext):
    """It stays in the JVM when its driver stops it."""

    def stop(self) -> None:
        self._jsc: Any = None
        super().stop()


def connect() -> None:
    """Make the context of the JVM that of this process."""
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    shared = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    _Context(gateway=SparkContext._gateway, jsc=shared)


if __name__ == "__main__":
    manager()
