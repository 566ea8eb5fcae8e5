"""A home of Spark in which Python processes and JVMs start in half of the time.

The Python processes would import PySpark out of Spark's zip file, which holds no bytecode: each of
them compiles it again, a second and more, and a query starts several. Without the zip file they
import what is installed. What a newcomer starts has a test with the zip file
(`spark/test_first_minute.py`).

A JVM would load and verify twenty thousand classes out of hundreds of jars. This module, run as a
program, archives them (class data sharing). An archive is only good for the class path that it was
made with, so the home has a fixed place. A JVM that cannot use an archive starts without it.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# JVMs that live for seconds or minutes: neither thorough compilation nor threads that collect
# garbage pay. Frames are larger without it.
_QUICK = "-XX:TieredStopAtLevel=1 -Xss4m -XX:+UseSerialGC"

# Spark reads what its launcher writes to the standard output.
_WITHOUT_WARNINGS = "-Xlog:disable -Xlog:all=error:stderr"


def use_a_quick_home() -> None:
    """For every Spark that this process and those below it start, unless one is chosen already."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return
    if "SPARK_HOME" not in os.environ:
        os.environ["SPARK_HOME"] = str(_home(Path(found.origin).parent))
    os.environ.setdefault("JDK_JAVA_OPTIONS", quick_java_options())


def _home(installed: Path) -> Path:
    """Over an installed PySpark; made by who asks first."""
    home = Path(sys.prefix) / "spark-home"
    if not os.access(sys.prefix, os.W_OK):
        home = Path(tempfile.mkdtemp(prefix="spark-home-")) / "home"
        atexit.register(shutil.rmtree, home.parent, ignore_errors=True)
    if home.exists():
        return home
    made = Path(tempfile.mkdtemp(prefix="spark-home-", dir=home.parent))
    (made / "python" / "lib").mkdir(parents=True)
    for entry in installed.iterdir():
        if entry.name != "python":
            (made / entry.name).symlink_to(entry)
    try:
        made.rename(home)
    except OSError:
        # Another process was first. Links are not followed.
        shutil.rmtree(made)
    return home


def quick_java_options() -> str:
    """For JVMs that live for seconds or minutes, out of SPARK_HOME and JAVA_HOME."""
    archive = _archive()
    if not archive.exists():
        return _QUICK
    return f"{_QUICK} -XX:SharedArchiveFile={archive} {_WITHOUT_WARNINGS}"


def quick_environment() -> dict[str, str]:
    """For a Spark on loopback that a test starts without the variables of this process."""
    return {
        "SPARK_HOME": os.environ["SPARK_HOME"],
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Only a Spark of this home can use the archive; another starts without it.
        "JDK_JAVA_OPTIONS": quick_java_options(),
    }


def _archive() -> Path:
    """Of the classes of this Spark for this Java."""
    release = Path(os.environ.get("JAVA_HOME", ""), "release")
    java = release.read_bytes() if release.exists() else b""
    name = hashlib.sha256(java + version("pyspark").encode()).hexdigest()[:16]
    return Path(os.environ["SPARK_HOME"]) / f"classes-{name}.jsa"


def main() -> None:
    """Make the archive of classes, if it is missing: of those that the query of the demo loads."""
    use_a_quick_home()
    archive = _archive()
    if archive.exists():
        return
    with tempfile.TemporaryDirectory(prefix="spark-home-", dir=archive.parent) as folder:
        home = Path(folder)
        made = home / archive.name
        # For the driver alone: its launcher is a JVM, too.
        options = f"--driver-java-options -XX:ArchiveClassesAtExit={made} pyspark-shell"
        os.environ["PYSPARK_SUBMIT_ARGS"] = options
        (home / "landing").mkdir()
        (home / "landing" / "one.json").write_text('{"id": 1, "text": "one"}\n')
        (home / "until").touch()
        command = [sys.executable, "-m", "pyspark_sluice.examples.demo.query"]
        for name in ("landing", "sink", "checkpoint", "until", "home"):
            command += [f"--{name}", str(home / name)]
        # The JVM outlives the program and holds on to its output until the archive is written.
        ran = subprocess.run(
            [*command, "--schema", "id long, text string"],
            check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if made.exists():
            made.rename(archive)
        else:
            print(f"Spark's classes were not archived; tests take longer:\n{ran.stdout[-2000:]}")


if __name__ == "__main__":
    main()
