"""Jars for tests, by Maven; a test that needs them skips by name where they cannot be had."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

_SECONDS = 300
_POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
<dependencies>{}</dependencies></project>"""
_PLACES = ("groupId", "artifactId", "version", "classifier")


def jars(artifacts: Sequence[str], *, groups: Sequence[str] = ()) -> list[Path]:
    """Return the jars of `group:name:version[:classifier]`, and what they need of these groups.

    `*` means all groups.

    They are fetched once a machine.
    """
    key = hashlib.sha256(repr((artifacts, groups)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"sluice-jars-{key}"
    if not folder.is_dir():
        _fetch(artifacts, groups, folder)
    return sorted(folder.glob("*.jar"))


def _fetch(artifacts: Sequence[str], groups: Sequence[str], folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("needs Maven, whose command mvn is not here")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        dependencies = "".join(map(_dependency, artifacts))
        Path(scratch, "pom.xml").write_text(_POM.format(dependencies), encoding="utf-8")
        call = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        call += ["-Daether.connector.connectTimeout=500", f"-DoutputDirectory={scratch}/jars"]
        call += ["-Daether.connector.http.retryHandler.count=0"]
        of_groups = f"-DincludeGroupIds={','.join(groups)}"
        if "*" not in groups:
            call.append(of_groups if groups else "-DexcludeTransitive=true")
        try:
            ran = subprocess.run(
                call, cwd=scratch, timeout=_SECONDS, check=False, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"needs {', '.join(artifacts)}; Maven fetched none in {_SECONDS} s")
        if ran.returncode:
            pytest.skip(f"needs {', '.join(artifacts)}; Maven: {ran.stdout.strip()[:300]}")
        # Another process may have been first.
        with contextlib.suppress(OSError):
            Path(scratch, "jars").replace(folder)


def _dependency(artifact: str) -> str:
    """Return one dependency; of one with an empty classifier, Maven would copy no jar."""
    parts = zip(_PLACES, artifact.split(":"), strict=False)
    inner = "".join(f"<{place}>{part}</{place}>" for place, part in parts)
    return f"<dependency>{inner}</dependency>"
