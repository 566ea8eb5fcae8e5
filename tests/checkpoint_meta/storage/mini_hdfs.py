"""Hadoop's own mini cluster: a NameNode and two DataNodes in one process of Java.

Most of its classes are in PySpark; Maven fetches the rest once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.tests import maven
from pyspark_sluice.tests.repository import ROOT

_MORE = (
    "org.junit.jupiter:junit-jupiter-api:5.13.4",
    "org.bouncycastle:bcprov-jdk18on:1.82",
    "org.bouncycastle:bcutil-jdk18on:1.82",
    "org.bouncycastle:bcpkix-jdk18on:1.82",
)
"""YARN's mini cluster loads them."""


class MiniHdfs:
    """The cluster; commands and arguments are those of `MiniHdfs.java`."""

    def __init__(self, command: list[str], folder: Path, *arguments: str) -> None:
        self._errors = (folder / "errors").open("wb")
        self.configuration = folder / "cluster"
        """A value for HADOOP_CONF_DIR, if the cluster is more than one NameNode."""
        self.process = subprocess.Popen(
            [*command, str(self.configuration), *arguments],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True,
        )  # fmt: skip
        port = self.process.stdout.readline().strip()
        assert port.isdecimal(), (folder / "errors").read_text()
        self.authority = f"127.0.0.1:{port}"

    def tell(self, command: str) -> None:
        """Do it, and return when it is done."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer == "done", answer

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._errors.close()


def mini_hdfs_command() -> list[str]:
    """How the cluster is started; skips the test, by name, where something it needs is not here."""
    asked = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "java_home.py")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    java = Path(asked.stdout.strip()) / "bin"
    if asked.returncode or not (java / "javac").exists():
        pytest.skip("needs a JDK: its tests start Hadoop's mini cluster from source")
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    classes = [*jars.glob("hadoop-client-*.jar"), *jars.glob("*slf4j*.jar")]
    classes += [*jars.glob("commons-logging*.jar"), *jars.glob("jsr305*.jar")]
    classes += [*jars.glob("log4j-*.jar"), *jars.glob("snappy-java*.jar")]
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
    archives = maven.jars([f"org.apache.hadoop:hadoop-client-minicluster:{version}", *_MORE])
    source = Path(__file__).with_name("MiniHdfs.java")
    return [
        str(java / "java"),
        "-Xmx512m",
        "-cp",
        ":".join(map(str, archives + classes)),
        str(source),
    ]
