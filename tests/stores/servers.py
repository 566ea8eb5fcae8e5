"""Servers of object stores that other projects wrote, built by Go or fetched by Maven.

They are kept in a folder of this machine; one that cannot be had is skipped by name.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.tests.maven import jars

HOME = Path(os.environ.get("STORES_HOME") or Path(tempfile.gettempdir(), "sluice-stores"))
_BUILD_SECONDS = 1800
_START_SECONDS = 60.0

KEY, SECRET = "sluice-tests", "sluice-tests-secret"


@dataclass(frozen=True)
class Kind:
    """How one server is had and started."""

    source: str
    """`module@version` of Go, or `group:name:version` of Maven."""

    command: Callable[[Path, int], list[str]]
    """Given an empty folder and a port; its first word is the program."""

    environment: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    """Of what a jar needs; empty for a jar that is complete."""

    newer: tuple[str, ...] = ()
    """Jars that it needs in another version than Maven would choose."""


def _s3proxy(folder: Path, port: int) -> list[str]:
    (folder / "data").mkdir()
    settings = {
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": "x",
        "jclouds.credential": "x",
        "jclouds.filesystem.basedir": str(folder / "data"),
    }
    (folder / "conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ["org.gaul.s3proxy.Main", "--properties", str(folder / "conf")]


KINDS: Mapping[str, Kind] = {
    "MinIO": Kind(
        "github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
        lambda folder, port: [
            "minio", "server", str(folder / "data"), "--address", f"127.0.0.1:{port}",
            "--console-address", "127.0.0.1:0", "--quiet",
        ],
        {"MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET},
    ),
    "versitygw": Kind(
        "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
        lambda folder, port: [
            "versitygw", "--access", KEY, "--secret", SECRET, "--port", f"127.0.0.1:{port}",
            "posix", _made(folder / "data"),
        ],
    ),
    "gofakes3": Kind(
        "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0",
        lambda _, port: ["gofakes3", "-backend", "memory", "-host", f"127.0.0.1:{port}"],
    ),
    "s3proxy": Kind(
        "org.gaul:s3proxy:4.1.0",
        _s3proxy,
        groups=("*",),
        newer=("com.fasterxml.jackson.core:jackson-annotations:2.22",),
    ),
    "S3Mock": Kind(
        "com.adobe.testing:s3mock:5.2.0:exec",
        lambda folder, port: [
            "-jar",
            "--server.port=0",
            f"--com.adobe.testing.s3mock.httpPort={port}",
            f"--com.adobe.testing.s3mock.store.root={_made(folder / 'data')}",
        ],
    ),
}  # fmt: skip
"""Name -> how."""


def _made(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return str(folder)


class RealServer:
    """One of them, in a process of its own."""

    scheme = path_scheme = "s3"

    def __init__(self, name: str, folder: Path) -> None:
        kind = KINDS[name]
        self.name = name
        self.version = kind.source.partition("@")[2] or kind.source.split(":")[2]
        self._folder, self._kind = folder, kind
        self.port = random.SystemRandom().randrange(10_000, 32_000)
        program, *arguments = kind.command(folder, self.port)
        self._command = [*_program(kind, program), *arguments]
        self.start()

    def start(self) -> None:
        with (self._folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env={**os.environ, **self._kind.environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                pytest.skip(f"{self.name} does not start: {self._log()[-300:]}")
            time.sleep(0.1)

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            self.client.list_buckets()
        except Exception:  # noqa: BLE001 - it is not there yet
            return False
        return True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        where = {"endpoint_url": self.url, "region_name": "us-east-1"}
        return {"key": KEY, "secret": SECRET, "client_kwargs": where}

    @cached_property
    def client(self) -> Any:
        """boto3's: the back door of the tests."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 2}),
        )

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def _program(kind: Kind, name: str) -> list[str]:
    if ":" not in kind.source:
        return [str(_by_go(kind.source, name))]
    java = shutil.which("java")
    if java is None:
        pytest.skip(f"{name} needs Java")
    if name == "-jar":
        (jar,) = jars([kind.source])
        return [java, "-jar", str(jar)]
    found = jars([*kind.newer, kind.source], groups=kind.groups)
    return [java, "-cp", os.pathsep.join(map(str, found)), name]


def _by_go(source: str, name: str) -> Path:
    module, _, version = source.partition("@")
    home = HOME / f"{name}-{version}"
    if not (home / name).exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip(f"{name} needs Go, whose command go is not here")
        home.mkdir(parents=True, exist_ok=True)
        try:
            built = subprocess.run(
                [go, "install", source],
                env={**os.environ, "GOBIN": str(home)},
                check=False, capture_output=True, text=True, timeout=_BUILD_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pytest.skip(f"{module} was not built in {_BUILD_SECONDS} s")
        if built.returncode:
            pytest.skip(f"{module} cannot be built: {built.stderr[-300:]}")
    return home / name
