"""Interpreters, releases of packages, and whether Spark will find the data source.

What an interpreter has is asked of the interpreter itself, in a process of its own, since Spark
starts one as well.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from typing import Any, Final

from ...spark.registration import interpreters_before, is_same_environment
from .patient import Finding

_LEAST_PYTHON, _NEWEST_PYTHON = (3, 11), (3, 13)
_LEAST_JAVA: Final = 17
_NEWEST_SPARK: Final = (4, 3)

_LEAST: Final = {
    "pyspark": "4.0",
    "pyarrow": "18",
    "fsspec": "2024.2",
    "pydantic": "2.7",
    "pydantic-settings": "2.3",
    "numpy": "1.26",
    "xxhash": "3.4",
    "msgspec": "0.19",
    "arro3-io": "0.9",
    "isal": "1.7",
    "regex": "2024.4",
}
"""As in setup.cfg, which a test holds against this."""

# Spark looks for sources by `iter_modules`, which does not see what an editable install links.
_PROBE: Final = """
import json, pkgutil, sys
found = {"version": list(sys.version_info[:3]), "executable": sys.executable, "sees": False}
found["sees"] = any(each.name == "pyspark_sluice" for each in pkgutil.iter_modules())
try:
    import pyspark_sluice
    found["package"] = list(pyspark_sluice.__path__)[0]
    pyspark_sluice.DefaultSource.name()
except BaseException as error:
    found["error"] = type(error).__name__ + ": " + str(error)
print(json.dumps(found))
"""

_INSTALL: Final = "install pyspark-sluice for that interpreter, or name another in PYSPARK_PYTHON"


def python_findings() -> Iterator[Finding]:
    """This interpreter, the one that Spark starts, and what each has."""
    yield _this_python()
    yield from _releases()
    yield from _pythons_of_spark()
    yield _java()


def _this_python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    expected = "Python 3.11 to 3.13"
    here = sys.version_info[:2]
    if here < _LEAST_PYTHON:
        way_out = "Create a virtual environment with a supported Python."
        return Finding("python", "failed", found, expected, way_out)
    if here > _NEWEST_PYTHON:
        return Finding("python", "warning", found, expected, "This version has not been tested.")
    return Finding("python", "ok", found, expected)


def _version_of(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _releases() -> Iterator[Finding]:
    for name, least in _LEAST.items():
        expected = f"{least} or newer"
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "not installed"
        if _version_of(version) < _version_of(least):
            yield Finding(name, "failed", version, expected, f"pip install '{name}>={least}'")
        elif name == "pyspark" and _version_of(version)[:2] > _NEWEST_SPARK:
            way_out = "This release has not been tested."
            yield Finding(name, "warning", version, "4.0 to 4.3", way_out)
        else:
            yield Finding(name, "ok", version, expected)


# The Python that Spark starts ---------------------------------------------------------------


def _pythons_of_spark() -> Iterator[Finding]:
    configured = interpreters_before()
    driver = configured.get("PYSPARK_DRIVER_PYTHON") or configured.get("PYSPARK_PYTHON")
    if driver:
        yield _registration("python of Spark", driver, "named in the environment")
    else:
        yield _registration(
            "python of Spark", sys.executable, "where pyspark_sluice is imported before the session"
        )
        other = shutil.which("python3")
        if other is None or not is_same_environment(other):
            yield _first_of_the_path(other)
    # PYSPARK_DRIVER_PYTHON is for the driver alone; tasks are started with this one.
    worker = configured.get("PYSPARK_PYTHON")
    if worker and driver and worker != driver:
        yield _registration("python of tasks", worker, "PYSPARK_PYTHON")


def _first_of_the_path(python: str | None) -> Finding:
    """Check what spark-submit, notebooks and programs that import Spark first would run."""
    what = "python3 of the PATH"
    expected = "the interpreter that has pyspark-sluice"
    way_out = (
        "Import pyspark_sluice before the session is created, activate the environment, or "
        "set PYSPARK_PYTHON="
    )
    if python is None:
        return Finding(what, "warning", "none", expected, way_out)
    finding = _registration(what, python, "used unless another is set")
    if finding.verdict == "ok":
        return finding
    return Finding(what, "warning", finding.found, expected, way_out)


def _registration(what: str, python: str, why: str) -> Finding:
    expected = 'an interpreter in which Spark finds the source "sluice"'
    described = f"{python} ({why})"
    asked = _asked(python)
    if isinstance(asked, str):
        way_out = "Correct PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON."
        return Finding(what, "failed", f"{described} cannot be run: {asked}", expected, way_out)
    version = ".".join(map(str, asked["version"]))
    described = f"{described}, Python {version}"
    if "package" not in asked:
        return Finding(what, "failed", f"{described}: {asked['error']}", expected, _INSTALL)
    if "error" in asked:
        way_out = "Install what the message names for that interpreter."
        return Finding(what, "failed", f"{described}: {asked['error']}", expected, way_out)
    if not asked["sees"]:
        way_out = "pip install . instead of -e, or pyspark_sluice.register(spark)."
        return Finding(what, "warning", f"{described}: imported, not listed", expected, way_out)
    if tuple(asked["version"][:2]) != sys.version_info[:2]:
        way_out = "Driver and executors need the same Python version: set PYSPARK_PYTHON."
        return Finding(what, "warning", described, f"Python {platform.python_version()}", way_out)
    return Finding(what, "ok", f"{described}, {asked['package']}", expected)


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# Driver and tasks often have the same one, and each answer costs a start of Python.
@cache
def _asked(python: str) -> dict[str, Any] | str:
    try:
        done = _run(python, "-c", _PROBE)
        # What is imported may print lines of its own before the answer.
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"
    except (ValueError, IndexError):
        return (done.stderr.strip().splitlines() or ["no answer"])[-1]
    return answer


# Java ---------------------------------------------------------------------------------------


def _java() -> Finding:
    expected = f"Java {_LEAST_JAVA} or newer"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    way_out = f"Install a Java {_LEAST_JAVA} runtime, or set JAVA_HOME to one."
    if java is None:
        found = "no Java: no JAVA_HOME, no java in the PATH"
        return Finding("java", "failed", found, expected, way_out)
    try:
        done = _run(java, "-version")
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("java", "failed", f"{java}: {type(error).__name__}", expected, way_out)
    # Most runtimes print their version on standard error.
    printed = re.search(r'version "(\d+)([^"]*)"', done.stderr + done.stdout)
    if printed is None:
        return Finding("java", "failed", f"{java} does not print its version", expected, way_out)
    found = f"{printed[1]}{printed[2]} at {java}"
    # Before Java 9 the first number was 1.
    if int(printed[1]) < _LEAST_JAVA:
        return Finding("java", "failed", found, expected, way_out)
    return Finding("java", "ok", found, expected)
