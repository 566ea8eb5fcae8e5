"""Prints how Azurite, Microsoft's emulator of Azure's storage, is started; installs it if needed.

`python tools/azurite.py` is for blobs, `python tools/azurite.py queue` for queues. Looks on
the path for `azurite-blob` or `azurite-queue`, then in .versions; needs Node.js and npm.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

# What the tests of the object stores were written against.
VERSION = "3.35.0"

FOLDER = Path(__file__).resolve().parent.parent / ".versions" / f"azurite-{VERSION}"

PROGRAMS = FOLDER / "node_modules" / "azurite" / "dist" / "src"

INSTALL_SECONDS = 300.0


def main() -> int:
    """Print the command as a list in JSON, or say in one line why it is missing."""
    service = sys.argv[1] if len(sys.argv) > 1 else "blob"
    on_path = shutil.which(f"azurite-{service}")
    if on_path:
        print(json.dumps([on_path]))
        return 0
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        print(
            f"sluice: no Azurite: neither azurite-{service} nor node with npm found",
            file=sys.stderr,
        )
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Several runs of tests begin at the same time.
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        why = "" if (FOLDER / "installed").exists() else _install(npm)
    if why:
        print(f"sluice: no Azurite: npm could not install it: {why}", file=sys.stderr)
        return 1
    print(json.dumps([node, str(PROGRAMS / service / "main.js")]))
    return 0


def _install(npm: str) -> str:
    """Why it failed; empty if it did not."""
    print(f"installing Azurite {VERSION} into {FOLDER}", file=sys.stderr, flush=True)
    command = [npm, "install", "--no-fund", "--no-audit", "--fetch-retries", "1", "--prefix"]
    try:
        subprocess.run(
            [*command, str(FOLDER), f"azurite@{VERSION}"],
            check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        lines = [line for line in str(error.stderr).splitlines() if line.startswith("npm error")]
        return " ".join(lines).replace("npm error ", "")[:300]
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    (FOLDER / "installed").touch()
    return ""


if __name__ == "__main__":
    sys.exit(main())
