"""Hadoop's own mini cluster: a NameNode and two DataNodes in one process of Java.

Most of its classes are in PySpark; the rest is one archive, which Maven fetches once.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pyspark_sluice.tests.repository import ROOT

_ARCHIVE = "hadoop-client-minicluster"
_GROUP = "org.apache.hadoop"
_REPOSITORY = Path.home() / ".m2" / "repository"
_FETCH_SECONDS = 300.0


class MiniHdfs:
    """The cluster; commands are those of `MiniHdfs.java`."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._errors = (folder / "errors").open("wb")
        self._process = subprocess.Popen(
            [*command, str(folder / "cluster")],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True,
        )  # fmt: skip
        port = self._process.stdout.readline().strip()
        assert port.isdecimal(), (folder / "errors").read_text()
        self.authority = f"127.0.0.1:{port}"

    def tell(self, command: str) -> None:
        """Do it, and return when it is done."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        assert answer == "done", answer

    @property
    def process(self) -> int:
        """Its number."""
        return self._process.pid

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def mini_hdfs_command() -> list[str]:
    """How the cluster is started.

    Raises:
        LookupError: what it needs and is not here.
    """
    asked = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "java_home.py")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    java = Path(asked.stdout.strip()) / "bin"
    if asked.returncode or not (java / "javac").exists():
        raise LookupError("needs a JDK: its tests start Hadoop's mini cluster from source")
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    classes = [*jars.glob("hadoop-client-*.jar"), *jars.glob("*slf4j*.jar")]
    classes += [*jars.glob("commons-logging*.jar"), *jars.glob("jsr305*.jar")]
    classes += [*jars.glob("log4j-*.jar"), *jars.glob("snappy-java*.jar")]
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.removeprefix("hadoop-client-api-")
    path = ":".join(map(str, [_archive(version), *classes]))
    source = Path(__file__).with_name("MiniHdfs.java")
    return [str(java / "java"), "-Xmx512m", "-cp", path, str(source)]


def _archive(version: str) -> Path:
    folder = _REPOSITORY.joinpath(*_GROUP.split("."), _ARCHIVE, version)
    archive = folder / f"{_ARCHIVE}-{version}.jar"
    if archive.exists():
        return archive
    maven = shutil.which("mvn")
    if maven is None:
        raise LookupError(f"needs Maven, which fetches {_ARCHIVE}-{version}.jar")
    quick = ["connectTimeout=500", "http.retryHandler.count=0"]
    fetched = subprocess.run(
        [
            maven, "-q", "-B", *(f"-Daether.connector.{each}" for each in quick),
            "dependency:get", "-Dtransitive=false", f"-Dartifact={_GROUP}:{_ARCHIVE}:{version}",
        ],
        check=False, capture_output=True, text=True, timeout=_FETCH_SECONDS,
    )  # fmt: skip
    if fetched.returncode or not archive.exists():
        raise LookupError(f"needs {_ARCHIVE}-{version}.jar, which Maven cannot fetch")
    return archive
