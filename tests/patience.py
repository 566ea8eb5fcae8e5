"""How long a test waits for what has to happen: for a machine that does much else."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PATIENCE = 600
"""Seconds; the bound of a wait that ends as soon as what it waits for is there."""


def wait_until(
    condition: Callable[[], object], what: object = "", seconds: float = PATIENCE
) -> None:
    """Return as soon as `condition` holds.

    Args:
        condition: is asked a hundred times a second.
        what: is waited for; a function is called to say so when it did not come.
        seconds: after which it did not come.

    Raises:
        AssertionError: it did not come.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            missing = what() if callable(what) else what
            message = f"not within {seconds} s: {missing}"
            raise AssertionError(message)
        time.sleep(0.01)


def answers(port: int) -> bool:
    """True if something listens on the port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def output_of(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end, and return what it has printed; raise if it fails."""
    ran = subprocess.run(
        command, cwd=cwd, env=environment, start_new_session=True,
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-6000:]
    return ran.stdout
