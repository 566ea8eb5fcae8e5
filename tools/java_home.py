"""Prints the home of a Java runtime that Spark can use; fetches one if the machine has none.

Looks at JAVA_HOME, at `java` on the path, at the folder .jdk of the project, in this order.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LEAST = 17
"""The oldest Java release that Spark 4 runs on."""

FETCHED = 21
"""The release that is fetched: the newest one that every Spark 4 supports."""

FOLDER = Path(__file__).resolve().parent.parent / ".jdk"


def main() -> int:
    """Print the home, or say in one line what to install."""
    home = next((home for home in _candidates() if _release(home) >= LEAST), None)
    if home is None:
        home = _fetch()
    if home is None or _release(home) < LEAST:
        print(
            f"sluice: no Java {LEAST}+ found and none could be fetched: install one "
            f"(Debian and Ubuntu: sudo apt-get install openjdk-{LEAST}-jre-headless; "
            f"macOS: brew install openjdk@{LEAST}) or set JAVA_HOME",
            file=sys.stderr,
        )
        return 1
    print(home)
    return 0


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield _home_of(on_path)
    for folder in sorted(FOLDER.glob("*"), reverse=True):
        yield folder / "Contents" / "Home"  # where macOS archives keep it
        yield folder


def _home_of(java: str) -> Path:
    """Ask the runtime itself: on macOS and under version managers `java` is only a front."""
    asked = subprocess.run(
        [java, "-XshowSettings:properties", "-version"],
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    found = re.search(r"java\.home = (.+)", asked.stderr)
    return Path(found.group(1).strip()) if found else Path(java).resolve().parent.parent


def _release(home: Path) -> int:
    """The feature release of the runtime at `home`; 0 if nothing there starts."""
    try:
        asked = subprocess.run(
            [home / "bin" / "java", "-version"],
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', asked.stderr)
    return int(found.group(1)) if found and asked.returncode == 0 else 0


def _fetch() -> Path | None:
    try:
        import jdk
    except ImportError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return None
    print(f"fetching a Java {FETCHED} runtime into {FOLDER.name}", file=sys.stderr, flush=True)
    FOLDER.mkdir(exist_ok=True)
    try:
        home = Path(jdk.install(str(FETCHED), path=str(FOLDER)))
    except Exception as error:  # noqa: BLE001 any failure has the same remedy
        print(f"sluice: fetching Java failed: {error}", file=sys.stderr)
        return None
    mac = home / "Contents" / "Home"
    return mac if mac.is_dir() else home


if __name__ == "__main__":
    sys.exit(main())
