"""A check as a row: what is looked at, what is expected, how to repair it; and looks.

Looks at a place delete again what they write. What an interpreter has is asked of the interpreter
itself, in a process of its own, since Spark starts one as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from typing import Any, Final, Literal

from ...checkpoint_meta.storage.urls import Location
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import probe_name
from ...errors import SluiceError, StateError
from ..spark.registration import interpreters_before, is_same_environment

Verdict = Literal["ok", "warning", "failed"]


class NotAsExpected(Exception):
    """A look found something else than what is expected."""

    def __init__(self, found: str, way_out: str = "", verdict: Verdict | None = None) -> None:
        """`way_out` and `verdict` are of this case; by default those of the check."""
        super().__init__(found)
        self.way_out, self.verdict = way_out, verdict


@dataclass(frozen=True)
class Finding:
    """One check: what was found, what was expected, and the way out."""

    what: str
    verdict: Verdict
    found: str
    expected: str = ""
    way_out: str = ""

    def __str__(self) -> str:
        lines = [f"{self.verdict:<7}  {self.what}: {self.found}"]
        if self.verdict != "ok":
            lines += [f"         expected: {self.expected}", f"         fix: {self.way_out}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Check:
    """One look at the machine or a place."""

    what: str
    expected: str
    way_out: str
    look: Callable[[], str]
    """Returns what it found; any error is a finding."""

    verdict: Verdict = "failed"
    """Of an error."""

    def finding(self) -> Finding:
        """Look."""
        try:
            return Finding(self.what, "ok", self.look(), self.expected)
        except NotAsExpected as other:
            found, verdict = str(other), other.verdict or self.verdict
            return Finding(self.what, verdict, found, self.expected, other.way_out or self.way_out)
        except Exception as error:  # noqa: BLE001 - each client and Spark have errors of their own
            found = str(error) if isinstance(error, SluiceError | AssertionError) else repr(error)
            return Finding(self.what, self.verdict, found, self.expected, self.way_out)


# Places --------------------------------------------------------------------------------------


def check_local_directory(place: str) -> None:
    """Raise, without the patience that a query has, if a local place can be no directory."""
    # The first ancestor that exists decides whether a directory can be created.
    path = _missing(place)[1]
    if not os.path.isdir(path):
        raise StateError("a directory cannot be created", place, f"a file at {path}", "a directory")


def _missing(place: str) -> tuple[list[str], str]:
    """The directories that writing into a local place creates, the deepest first; and above them.

    Writing into any other place creates none.
    """
    location = Location.of(place)
    path, missing = location.url if location.is_local else os.sep, list[str]()
    while not os.path.exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing, path


@contextlib.contextmanager
def left_as_it_was(place: str) -> Iterator[None]:
    """Local directories that come to be by writing into them go again."""
    directories, _ = _missing(place)
    try:
        yield
    finally:
        # The deepest one first. One that something else was put into meanwhile is not empty, and
        # stays.
        for each in directories:
            with contextlib.suppress(OSError):
                os.rmdir(each)


def tried(store: StateStore) -> str:
    """Write, read, list and delete one object."""
    name = probe_name()
    data = uuid.uuid4().bytes
    store.publish(name, data)
    try:
        stored = store.read(name)
        assert stored == data, f"{name} was written, and something else was read"
        assert name in store.list(""), f"{name} was written, and a listing does not show it"
    finally:
        store.delete(name)
    assert name not in store.list(""), f"{name} was deleted, and a listing still shows it"
    return f"written, read, listed and deleted at {store.location}"


# Interpreters, packages and Java, and whether Spark will find the data source ----------------

_LEAST_JAVA: Final = 17

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


def interpreter_checks() -> Iterator[Check]:
    """The packages of this interpreter, the interpreters that Spark starts, and Java."""
    tested = "Python 3.11 to 3.13, Spark 4.0 to 4.3, and the releases that pyspark-sluice needs"
    yield Check("packages", tested, "Install these releases.", _packages)
    configured = interpreters_before()
    driver = configured.get("PYSPARK_DRIVER_PYTHON") or configured.get("PYSPARK_PYTHON")
    # PYSPARK_DRIVER_PYTHON is for the driver alone; tasks are started with the other one.
    worker = configured.get("PYSPARK_PYTHON")
    finds = 'an interpreter in which Spark finds the source "sluice"'
    install = "Install pyspark-sluice for that interpreter, or name another in PYSPARK_PYTHON."
    yield Check("python of Spark", finds, install, partial(_sees_source, driver or sys.executable))
    if worker and worker != driver:
        yield Check("python of tasks", finds, install, partial(_sees_source, worker))
    first = shutil.which("python3") or "python3"
    if not driver and not is_same_environment(first):
        # What spark-submit, notebooks and programs that import Spark first would run.
        activate = (
            "Import pyspark_sluice before the session is created, activate the environment, or set "
            "PYSPARK_PYTHON."
        )
        look = partial(_sees_source, first, activate)
        yield Check("python3 of the PATH", finds, activate, look, "warning")
    runtime = f"Install a Java {_LEAST_JAVA} runtime, or set JAVA_HOME to one."
    yield Check("java", f"Java {_LEAST_JAVA} or newer", runtime, _java)


def _version_of(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _packages() -> str:
    least = {"pyspark": "4.0"}
    for line in metadata.requires("pyspark-sluice") or ():
        needed = re.match(r"([\w.-]+)[^;]*>=([\d.]+)[^;]*$", line)
        least |= {needed[1]: needed[2]} if needed else {}
    found = {}
    for name in least:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    if old := [n for n in least if _version_of(found[n]) < _version_of(least[n])]:
        raise NotAsExpected(", ".join(f"{n} {found[n]}, not {least[n]} or newer" for n in old))
    python = platform.python_version()
    versions = f"Python {python}, " + ", ".join(f"{name} {found[name]}" for name in least)
    if sys.version_info[:2] > (3, 13) or _version_of(found["pyspark"])[:2] > (4, 3):
        raise NotAsExpected(versions, "This release has not been tested.", "warning")
    return versions


def _sees_source(python: str, way_out: str = "") -> str:
    asked = _asked(python)
    if isinstance(asked, str):
        way_out = way_out or "Correct PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON."
        raise NotAsExpected(f"{python} cannot be run: {asked}", way_out)
    found = f"{python}, Python {'.'.join(map(str, asked['version']))}"
    if "error" in asked:
        if "package" in asked:
            way_out = way_out or "Install what the message names for that interpreter."
        raise NotAsExpected(f"{found}: {asked['error']}", way_out)
    if not asked["sees"]:
        way_out = "pip install . instead of -e, or pyspark_sluice.register(spark)."
        raise NotAsExpected(f"{found}: imported, not listed", way_out, "warning")
    if tuple(asked["version"][:2]) != sys.version_info[:2]:
        way_out = "Driver and executors need the same Python version: set PYSPARK_PYTHON."
        raise NotAsExpected(found, way_out, "warning")
    return f"{found}, {asked['package']}"


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


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        raise NotAsExpected("no Java: no JAVA_HOME, no java in the PATH")
    done = _run(java, "-version")
    # Most runtimes print their version on standard error.
    printed = re.search(r'version "(\d+)([^"]*)"', done.stderr + done.stdout)
    found = f"{printed[1]}{printed[2]} at {java}" if printed else f"{java} prints no version"
    # Before Java 9 the first number was 1.
    if printed is None or int(printed[1]) < _LEAST_JAVA:
        raise NotAsExpected(found)
    return found
