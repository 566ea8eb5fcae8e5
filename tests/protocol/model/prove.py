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

TWICE = "a row is delivered twice"
NEVER = "a run ends without all rows"
NOT_THERE = "Spark learns of a checkpoint that does not exist"
DELETED = "something is needed and deleted"
UNRELEASED = "a part is planned before the commit that releases it"

ERRORS = {
    "assertion violated (sunk[k]==0)": TWICE,
    "invalid end state": NEVER,
    "assertion violated ck[logged].durable": NOT_THERE,
    "assertion violated !(ck[ck[": DELETED,
    "assertion violated (commit[(2*ck[": UNRELEASED,
}
"""How an error of SPIN begins -> what it means."""

WITNESSES = {
    "TWO_HELD": "two checkpoints are held for one reader at the same time",
    "OUT_OF_ORDER": "a reader's gateway opens before that of another, which was to commit first",
    "ORPHANED_CHAIN": "two checkpoints of one chain are durable and Spark knows neither",
}


VARIANTS = {
    "BUDGET": "a reader stops at a record border of its choice; its commit says at which",
    "PARTS": "a bounded split may be read in part, and the rest returns later",
    "LOST_ANSWERS": "a create takes effect or not, and its author does not learn which",
    "LATE_OBJECTS": "an object cannot be created again, and is not shown yet",
}
"""What one more search adds to the sound model; all at once do not fit into memory."""

BOUNDS = {"LATE_OBJECTS": ("CRASHES=1", "ROWS=2")}
"""Smaller bounds of a variant that has too many states otherwise."""


def small(variant: str) -> tuple[str, ...]:
    """Bounds of a search of a variant that takes seconds."""
    # One row has no border at which a reader could stop.
    return ("CRASHES=1", "AHEAD=1", "ROWS=2" if variant == "BUDGET" else "ROWS=1")


@dataclass(frozen=True)
class Bug:
    """A bug of the model that the search has to find."""

    planted: str
    found: str
    """The error that the search has to end with."""

    variant: str = ""
    """The one of `VARIANTS` without which the bug does nothing."""


BUGS = {
    "GATEWAY_NEVER_CLOSES": Bug("a continuation starts before its reader has committed", TWICE),
    "OPENS_ON_FIRST": Bug("the first commit of any reader opens the gateways of all", TWICE),
    "OPENS_THE_NEXT": Bug("the commit of n also opens what n+1 holds", TWICE),
    "CUT_OMITS_HELD": Bug("the cut leaves out what is held", NEVER),
    "CUT_TAKES_TWICE": Bug("the cut takes what is held, and the next one takes it again", TWICE),
    "RECORDS_NOT_ROTATED": Bug("no other record is opened by the cut", TWICE),
    "ABORT_OF_THE_LAST": Bug("the last cut is taken back instead of all from an id on", NEVER),
    "ABORT_FORGOTTEN": Bug("what was sent under an aborted checkpoint is not sent again", NEVER),
    "COUNTED_TWICE": Bug("a commit is counted twice", TWICE),
    "COUNTED_AFTER_CUT": Bug("a checkpoint claims commits that come only after its cut", NEVER),
    "COUNTS_NOT_WRITTEN": Bug("a checkpoint does not say which commits it counts", TWICE),
    "RESTORE_FORGETS": Bug("a restart forgets whose commits are still to be counted", NEVER),
    "RESTORE_FORGETS_HELD": Bug("a restart forgets the continuations that are held", TWICE),
    "REMAINDER_TO_BOTH": Bug("a remainder goes to its continuation and the enumerator", TWICE),
    "LAST_COMMIT_WINS": Bug("a later commit of a reader replaces the first", TWICE),
    "ABANDONED_IN_MEMORY": Bug("an abandonment is counted and not published", TWICE),
    "OFFSET_BEFORE_PUBLISH": Bug("an offset is given before its checkpoint is durable", NOT_THERE),
    "ORPHAN_GOES_ON": Bug("a restart resumes after an orphan", NEVER),
    "ORPHAN_FOR_PARENT": Bug("a restart finds its checkpoint by number in any epoch", TWICE),
    "PRUNES_TOO_MUCH": Bug("retention deletes what a checkpoint in flight needs", DELETED),
    "GATE_NOT_ASKED": Bug("a part is handed out without its gateway", UNRELEASED, "BUDGET"),
    "LEFTOVER_IS_DROPPED": Bug(
        "what a reader leaves and nobody continues is dropped", NEVER, "BUDGET"
    ),
    "BORDER_IS_ASSUMED": Bug("a continuation starts where the plan says", TWICE, "BUDGET"),
    "BORDER_NOT_FOLLOWED": Bug(
        "an attempt does not stop where the first commit says", TWICE, "BUDGET"
    ),
    "REST_IS_DROPPED": Bug("the rest of an unfinished bounded split is dropped", NEVER, "PARTS"),
    "REST_RETURNS_WHOLE": Bug("an unfinished bounded split returns whole", TWICE, "PARTS"),
    "LOST_IS_SUCCESS": Bug(
        "who gets no answer does not read back which commit counts", TWICE, "LOST_ANSWERS"
    ),
    "LOST_NAME_IS_FREE": Bug(
        "a checkpoint whose create had no answer gives its name to another", NEVER, "LOST_ANSWERS"
    ),
    "LATE_IS_OWN": Bug(
        "a refused commit that is not shown yet is taken for one's own", TWICE, "LATE_OBJECTS"
    ),
    "LATE_IS_ABSENT": Bug(
        "a restart takes a checkpoint that is not shown yet for absent", TWICE, "LATE_OBJECTS"
    ),
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
        # With -O2 the compiler takes three seconds, and most searches less than one.
        flags = ["-Og", "-DSAFETY", "-DNOCLAIM", "-DVECTORSZ=2048", "-w"]
        _run(folder, compiler, *flags, "-o", "pan", "pan.c")
        output = _run(folder, "./pan", "-m100000")
    states = re.search(r"(\d+) states, stored", output)
    seconds = re.search(r"elapsed time ([\d.]+)", output)
    memory = re.search(r"([\d.]+)\s+total actual memory", output)
    error = re.search(r"pan:1: (.*)", output)
    whole = "errors: 0" in output and "Search not completed" not in output
    assert states, output
    return Searched(
        int(states[1]),
        float(seconds[1]) if seconds else 0.0,
        float(memory[1]) if memory else 0.0,
        " ".join(error[1].split())
        if error
        else ""
        if whole
        else "the search did not come to its end",
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
    good = _is_sound("sound model", *(["CRASHES=1"] if short else []))
    for name, variant in VARIANTS.items():
        good &= _is_sound(
            f"  {name:22} {variant}", name, *(small(name) if short else BOUNDS.get(name, ()))
        )
    print("\nreached, as it has to be:")
    for name, witness in WITNESSES.items():
        reached = search(name)
        good &= is_reached(reached)
        print(f"  {name:22} {witness}: {_shown(reached)}")
    print("\nplanted, and found:")
    for name, bug in BUGS.items():
        found = search(name, *([bug.variant, *small(bug.variant)] if bug.variant else []))
        good &= meaning(found) == bug.found
        print(f"  {name:22} {bug.planted}: {_shown(found)}")
    return good


def _is_sound(what: str, *defined: str) -> bool:
    found = search(*defined)
    bounds = ", ".join(name for name in defined if "=" in name) or "CRASHES=2"
    print(
        f"{what} ({bounds}): {found.states:,} states, {found.seconds:.0f} s, "
        f"{found.megabytes:,.0f} MB: {found.error or 'no error'}",
        flush=True,
    )
    return not found.error


def meaning(searched: Searched) -> str:
    """What the error means; SPIN's own words where no planted bug has it."""
    known = (means for begins, means in ERRORS.items() if searched.error.startswith(begins))
    return next(known, searched.error)


def is_reached(searched: Searched) -> bool:
    """True if the search of a witness has ended at the witness, and not at an error."""
    return searched.error.startswith("assertion violated") and meaning(searched) == searched.error


def _shown(searched: Searched) -> str:
    result = "reached" if is_reached(searched) else meaning(searched) or "NO ERROR"
    return f"{result} ({searched.states:,} states)"


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
