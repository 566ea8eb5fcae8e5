"""Has SPIN search the model of the protocol to its end: `make prove`.

The sound model must have no wrong end and break no assertion; each witness must be reached, since a
model in which nothing happens is sound as well; and each planted bug must be found.

    python prove.py [--short]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("protocol.pml")
SEARCH_SECONDS = 1800.0

WITNESSES = {
    "TWO_HELD": "two checkpoints are held for one reader at the same time",
    "OUT_OF_ORDER": "a reader's gateway opens before that of another, which was to commit first",
    "ORPHANED_CHAIN": "two checkpoints of one chain are durable and Spark knows neither",
}
BUGS = {
    "GATEWAY_NEVER_CLOSES": "a continuation is let go on before its reader has committed",
    "OPENS_ON_FIRST": "the first commit of any reader opens the gateways of all",
    "OPENS_THE_NEXT": "the commit of n also opens what n+1 holds",
    "CUT_OMITS_HELD": "the cut leaves out what is held",
    "CUT_TAKES_TWICE": "the cut takes what is held, and the next one takes it again",
    "RECORDS_NOT_ROTATED": "no other record is opened by the cut",
    "ABORT_OF_THE_LAST": "the last cut is taken back instead of all from an id on",
    "ABORT_FORGOTTEN": "what was sent under an aborted checkpoint is not sent again",
    "COUNTED_TWICE": "a commit is counted twice",
    "RESTORE_FORGETS": "a restart forgets whose commits are still to be counted",
    "REMAINDER_TO_BOTH": "a remainder goes to its continuation and to the enumerator",
    "LAST_COMMIT_WINS": "a later commit of a reader replaces the first",
    "ABANDONED_IN_MEMORY": "an abandonment is counted and not published",
    "OFFSET_BEFORE_PUBLISH": "an offset is handed out before its checkpoint is durable",
    "ORPHAN_GOES_ON": "a restart goes on after an orphan",
    "PRUNES_TOO_MUCH": "retention lets go of what a checkpoint in flight needs",
}


@dataclass(frozen=True)
class Searched:
    """The result of one search."""

    states: int
    seconds: float
    megabytes: float
    error: str
    """Empty where the search has ended without one."""


def missing_tools() -> list[str]:
    """Names of programs that a search needs and that are not there."""
    compilers = ("cc", "gcc", "clang")
    needed = [] if shutil.which("spin") else ["spin"]
    return needed + ([] if any(map(shutil.which, compilers)) else ["a C compiler (cc)"])


def search(*defined: str) -> Searched:
    """Search the model with some names defined, all of it."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODEL, folder)
        _run(folder, "spin", "-a", *(f"-D{name}" for name in defined), MODEL.name)
        flags = ["-O2", "-DSAFETY", "-DNOCLAIM", "-DVECTORSZ=2048", "-w"]
        _run(folder, compiler, *flags, "-o", "pan", "pan.c")
        told = _run(folder, "./pan", "-m100000")
    states = re.search(r"(\d+) states, stored", told)
    seconds = re.search(r"elapsed time ([\d.]+)", told)
    memory = re.search(r"([\d.]+)\s+total actual memory", told)
    error = re.search(r"pan:1: (.*)", told)
    whole = "errors: 0" in told and "Search not completed" not in told
    assert states, told
    return Searched(
        int(states[1]),
        float(seconds[1]) if seconds else 0.0,
        float(memory[1]) if memory else 0.0,
        error[1].strip() if error else "" if whole else "the search did not come to its end",
    )


def _run(folder: str, *command: str) -> str:
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SEARCH_SECONDS, check=False
    )
    if ran.returncode != 0 and command[0] != "./pan":
        raise SystemExit(f"{' '.join(command)}: {ran.stdout}{ran.stderr}")
    return ran.stdout


def proved(*, short: bool) -> bool:
    """Print each search and what it has found; True if all is as it has to be.

    Args:
        short: one crash instead of two, in the search of the sound model.
    """
    sound = search(*(["CRASHES=1"] if short else []))
    print(
        f"sound model, {1 if short else 2} crashes: {sound.states:,} states, "
        f"{sound.seconds:.0f} s, {sound.megabytes:,.0f} MB: {sound.error or 'no error'}"
    )
    good = not sound.error
    print("\nreached, as it has to be:")
    for name, told in WITNESSES.items():
        good &= _expected(name, told)
    print("\nplanted, and found:")
    for name, told in BUGS.items():
        good &= _expected(name, told)
    return good


def _expected(name: str, told: str) -> bool:
    found = search(name)
    how = next((say for part, say in _MEANING.items() if part in found.error), found.error)
    how = "reached" if found.error and name in WITNESSES else how or "NOT FOUND"
    print(f"  {name:22} {told}: {how} ({found.states:,} states)")
    return bool(found.error)


_MEANING = {
    "end state": "a run that ends without all rows",
    "sunk": "a row is delivered twice",
    "durable": "Spark is told of what is not there",
    "gone": "something is needed and deleted",
}
"""What SPIN says in its own words -> what it means."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--short", action="store_true", help="one crash instead of two")
    asked = parser.parse_args()
    missing = missing_tools()
    if missing:
        print(
            f"The proof needs {' and '.join(missing)}, and installs nothing by itself. SPIN is the "
            "package spin of Debian, Ubuntu and Homebrew; its home is spinroot.com.",
            file=sys.stderr,
        )
        return 2
    return 0 if proved(short=asked.short) else 1


if __name__ == "__main__":
    sys.exit(main())
