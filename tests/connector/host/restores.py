"""Kills of `sluice run`, and restores of its table and its checkpoint, apart or together.

`make restores`, or `python -m pyspark_sluice.tests.connector.host.restores --kills 50 --seed 7`:
each round lands a file, some without a record, and kills the run at a random moment. Between them
the table, the checkpoint or both are backed up, or restored from a backup. After a restore the run
ends exact, or it is refused by name; then the remedy that the error names makes it exact.

Prints seed and figures; exit status 0 only if each id is in the table once, every time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable

from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.patience import wait_until

_DRAWN = ("table", "checkpoint", "log of the table", "both")
_NO_LOG = ("checkpoint", "table", "both")


class Restores:
    """One query into one kind of table, and its backups."""

    def __init__(self, root: Path, kind: str, seed: int) -> None:
        self.query, self.kind, self.root = Query(root), kind, root
        self.random = random.Random(seed)
        self.to = f"{kind}:{self.query.table}"
        self.ids = self.files = self.backups = 0
        self.figures: Counter[str] = Counter()
        self.history: list[str] = []

    def round(self) -> None:
        """Land a file, kill a run, and sometimes make a backup or restore one."""
        self._land(self.random.choice((0, 3, 3, 3, 20)))
        self._kill()
        if self.random.random() < 0.4:
            self._back_up()
        elif self.backups:
            self._restore(self.random.choice(_DRAWN if self.kind == "delta" else _NO_LOG))
            # Only a batch shows what was restored; it may be one without rows.
            self._land(self.random.choice((0, 1)))
            self.settle()

    def _land(self, count: int) -> None:
        self.files += 1
        name = f"{self.files:06d}.json"
        self.query.land(name, range(self.ids, self.ids + count))
        if not count:
            (self.query.source / name).write_text("\n")
        self.ids += count

    def _kill(self) -> None:
        """SIGKILL to the run and its workers, soon after a batch was begun or at its start."""
        before = self.query.logged("offsets")
        process = self.query.start(to=self.to, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def is_reached() -> bool:
            return self.query.logged("offsets") != before or process.poll() is not None

        if self.random.random() < 0.8:
            wait_until(is_reached, "a batch", 60)
        try:
            process.wait(self.random.uniform(0.0, 0.3))
        except subprocess.TimeoutExpired:
            self._note("kills")
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _note(self, step: str) -> None:
        self.figures[step] += 1
        self.history.append(step)

    def _places(self, what: str) -> list[Path]:
        both = [self.query.table, self.query.checkpoint]
        return {"table": both[:1], "log of the table": both[:1], "checkpoint": both[1:]}.get(
            what, both
        )

    def _back_up(self) -> None:
        # Without a table there is nothing to restore.
        if not self.query.logged("commits"):
            return
        target = self.root / "backups" / str(self.backups)
        for place in self._places("both"):
            if place.exists():
                shutil.copytree(place, target / place.name)
        self.backups += 1
        self.history.append("backup")

    def _restore(self, what: str) -> None:
        source = self.root / "backups" / str(self.random.randrange(self.backups))
        for place in self._places(what):
            copy = source / place.name
            # What was not there at the time of the backup is not deleted by its restore.
            if copy.exists() and place.exists():
                # With the log alone, the data files of later batches stay.
                shutil.rmtree(place / "_delta_log" if what == "log of the table" else place, True)
                shutil.copytree(copy, place, dirs_exist_ok=True)
                self._note(f"restored: {what}")

    def settle(self) -> None:
        """Run to the end; where it is refused, carry out the remedy and run again."""
        for _ in range(3):
            code, _, errors = self.query.run(to=self.to)
            if not code:
                break
            assert "Traceback" not in errors, errors
            self._follow(errors)
        rows = self._rows()
        lost, doubled = self.query.landed - rows, rows - self.query.landed
        self._note("settled")
        outcome = f"exit {code}, lost {sorted(lost)}, doubled {sorted(doubled)}: {errors}"
        assert (code, lost, doubled) == (0, Counter(), Counter()), f"{self.history}: {outcome}"

    def _follow(self, errors: str) -> None:
        checkpoint = str(self.query.checkpoint)
        if "ahead of the checkpoint" in errors:
            self._note("refused: ahead")
            self._command("remove-batches", checkpoint, self.to)
            return
        assert "behind the checkpoint" in errors, errors
        self._note("refused: behind")
        if self._command("add-batches", checkpoint, self.to):
            new = self.root / f"ck-{self.figures['refused: behind']}"
            assert not self._command("fork", checkpoint, str(new), "--at-table", self.to)
            shutil.rmtree(self.query.checkpoint)
            new.rename(self.query.checkpoint)
            # The fork is another query: it knows nothing of batches that the old one added later.
            self.backups = 0
            shutil.rmtree(self.root / "backups")

    def _command(self, *arguments: str) -> int:
        command = [sys.executable, "-m", "pyspark_sluice", *arguments, "--yes"]
        return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode

    def _rows(self) -> Counter[int]:
        if self.kind == "delta":
            exists = (self.query.table / "_delta_log").exists()
            paths = [*DeltaTable(str(self.query.table)).file_uris()] if exists else []
        else:
            paths = [*Manifests(str(self.query.table / "_sluice"), {}).paths()]
        return Counter(i for p in paths for i in pq.read_table(p, columns=["id"])["id"].to_pylist())


def run(root: Path, kind: str, kills: int, seed: int) -> Counter[str]:
    """Rounds until there were so many kills; the figures.

    Raises:
        AssertionError: rows are lost or doubled, or a remedy does not help.
    """
    restores = Restores(root, kind, seed)
    while restores.figures["kills"] < kills:
        restores.round()
    restores.settle()
    return restores.figures


def main() -> None:
    """Run the kinds of tables in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="over all kinds of tables")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args()
    for at, kind in enumerate(("delta", "parquet")):
        with tempfile.TemporaryDirectory() as folder:
            seed = given.seed + at
            figures = run(Path(folder), kind, given.kills // 2, seed)
        print(json.dumps({"table": kind, "seed": seed, **figures}), flush=True)


if __name__ == "__main__":
    main()
