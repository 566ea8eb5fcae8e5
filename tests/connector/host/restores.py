"""Kills of `sluice run`, and restores of its table and its checkpoint, apart or together.

`make restores`, or `python -m pyspark_sluice.tests.connector.host.restores --kills 50 --seed 7`:
each round lands a file, some without a record, and kills the run at a random moment. Half of the
runs are queries of Spark (`--spark`), of which the driver, the Python processes or the whole JVM
are killed. Between them the table, the checkpoint or both are backed up, or restored from a backup;
the table is taken back by its own `RESTORE` or rollback, or compacted by another writer. After that
the run ends exact, or it is refused by name; then the remedy that the error names makes it exact.

Prints seed and figures; exit status 0 only if each id is in the table once, every time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation

from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tests.connector.host.forked_commands import ForkedCommand, ForkedCommands
from pyspark_sluice.tests.connector.host.living_jvm import LivingJvm
from pyspark_sluice.tests.connector.host.query import SCHEMA, Query
from pyspark_sluice.tests.patience import wait_until

KINDS = ("delta", "iceberg", "parquet")

_PARTS = {"driver of Spark": 12, "workers of Spark": 5, "JVM": 1}
"""What is killed of a query of Spark, and how often; the driver has the sink."""

_PLACES = ("table", "checkpoint", "both")
_STEPS = {
    "delta": (*_PLACES, "log of the table", "take back", "take back", "compact"),
    "iceberg": (*_PLACES, "log of the table", "take back", "take back", "compact"),
    "parquet": _PLACES,
}


class Restores:
    """One query into one kind of table, and its backups."""

    def __init__(self, root: Path, kind: str, seed: int, commands: ForkedCommands) -> None:
        self.query, self.kind, self.root = Query(root), kind, root
        self.commands = commands
        self.random = random.Random(seed)
        self.to = f"{kind}:{self.query.table}"
        if kind == "iceberg":
            self.to = "iceberg:lake.db.orders"
            self.catalog.create_namespace("db")
            self.catalog.create_table("db.orders", Schema())
        self.ids = self.files = self.forks = 0
        self.backups: list[Path] = []
        """The checkpoint of each."""
        self.jvm, self.spark = LivingJvm(), 0.0
        """Where queries of Spark run, and their share of the runs."""
        self.forked: Path | None = None
        """The checkpoint that the newest fork continues."""
        self.figures: Counter[str] = Counter()
        self.history: list[str] = []

    @property
    def catalog(self) -> Any:
        """A catalog in a file below the table's directory."""
        self.query.table.mkdir(exist_ok=True)
        return SqlCatalog("lake", **catalog_at(self.root))

    @property
    def arguments(self) -> list[str]:
        """The arguments of the run."""
        checkpoint = ["--checkpoint", str(self.query.checkpoint), "--schema", SCHEMA]
        return ["run", str(self.query.source), "--to", self.to, *checkpoint]

    @property
    def expected(self) -> Counter[Any]:
        """The rows that the table has after a run: their ids, or all of each."""
        return self.query.landed

    def round(self) -> None:
        """Land a file, kill a run, and sometimes make a backup or restore one."""
        self._land(self.random.choice((0, 3, 3, 3, 20)))
        self._kill()
        if self.random.random() < 0.4:
            self._back_up()
        elif self.backups:
            self._step(self.random.choice(_STEPS[self.kind]))
            # A run shows what was restored also without a new file, and with one without rows.
            if self.random.random() < 0.7:
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
        is_spark = self.random.random() < self.spark
        process = self._start(is_spark=is_spark)

        def is_reached() -> bool:
            return self.query.logged("offsets") != before or process.poll() is not None

        (whose,) = self.random.choices([*_PARTS], [*_PARTS.values()])
        whose = whose if is_spark else "sluice run"
        # A driver that is killed at its start may leave a context behind that comes later.
        if self.random.random() < 0.8 or whose != "sluice run":
            wait_until(is_reached, "a batch", 240)
        if process.wait(self.random.uniform(0.0, 1.5 if is_spark else 0.3)) is None:
            self._note("kills")
            self._note(f"killed: {whose}")
            self._end(process, whose)

    def _start(self, *, is_spark: bool) -> ForkedCommand:
        if not is_spark:
            return self.commands.start(*self.arguments)
        variables = self.jvm.variables()
        return self.commands.start(*self.arguments, "--spark", "local[2]", variables=variables)

    def _end(self, process: ForkedCommand, whose: str) -> None:
        if whose == "workers of Spark":
            for pid in self.jvm.workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            # The query may just have ended.
            assert process.wait(240) is not None, f"{self.history}: {process.output}"
            return
        process.kill()
        if whose == "JVM":
            self.jvm.kill()
        elif whose == "driver of Spark":
            self.jvm.end_query()

    def _note(self, step: str) -> None:
        self.figures[step] += 1
        self.history.append(step)

    def _back_up(self) -> None:
        # Batches without a record create no table.
        if not self.query.logged("commits") or not self.query.table.exists():
            return
        target = self.root / "backups" / str(len(self.backups))
        shutil.rmtree(target, ignore_errors=True)
        for place in (self.query.table, self.query.checkpoint):
            shutil.copytree(place, target / place.name)
        self.backups.append(self.query.checkpoint)
        self.history.append("backup")

    def _step(self, step: str) -> None:
        if step == "take back":
            self._take_back()
        elif step == "compact":
            self._compact()
        else:
            # The old query does not know which files a fork has read.
            valid = [*map(self.query.checkpoint.__eq__, self.backups)]
            first = valid.index(True) if step == "checkpoint" and True in valid else 0
            if step != "checkpoint" or any(valid):
                self._restore(step, self.random.randrange(first, len(self.backups)))

    def _restore(self, what: str, backup: int) -> None:
        source = self.root / "backups" / str(backup)
        if what == "both" and self.query.checkpoint != self.backups[backup]:
            # Backups of the fork are of a history that does not come.
            self.query.checkpoint = self.backups[backup]
            self.forked = None
            del self.backups[backup + 1 :]
        both = [self.query.table, self.query.checkpoint]
        chosen = {"checkpoint": both[1:], "both": both}.get(what, both[:1])
        # With the log alone, the data files of later batches stay.
        is_log = what == "log of the table" and self._has_files_of(source / self.query.table.name)
        what = "table" if what.startswith("log") and not is_log else what
        for whole in chosen:
            below = "_delta_log" if is_log and self.kind == "delta" else ""
            place, copy = whole / below, source / whole.name / below
            if below or not is_log:
                shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(copy, place, dirs_exist_ok=True)
        self._note(f"restored: {what}")

    def _has_files_of(self, copy: Path) -> bool:
        """True if the table has the data files that its log in a backup names.

        Another restore may have removed files that a commit had written again.
        """
        if self.kind != "delta":
            return True
        named = (unquote(urlparse(uri).path) for uri in DeltaTable(str(copy)).file_uris())
        return all((self.query.table / Path(n).relative_to(copy)).exists() for n in named)

    def _take_back(self) -> None:
        """RESTORE of Delta to a version or a time; rollback of Iceberg."""
        if self.kind == "delta":
            table = DeltaTable(str(self.query.table))
            if table.version():
                version = self.random.randrange(table.version())
                by_time = table.history()[table.version() - version]["timestamp"] + 1
                moment = datetime.fromtimestamp(by_time / 1000, UTC)
                table.restore(self.random.choice((version, moment)))
                self._note("taken back")
            return
        table = self.catalog.load_table("db.orders")
        # Not to the first half of a rewrite by pyiceberg, which has deleted the rows.
        snapshots = [
            each.snapshot_id
            for each in table.metadata.snapshots[:-1]
            if each.summary.operation != Operation.DELETE
        ]
        if snapshots:
            with table.manage_snapshots() as manage:
                manage.set_current_snapshot(self.random.choice(snapshots))
            self._note("taken back")

    def _compact(self) -> None:
        """As another writer does it."""
        if self.kind == "delta":
            DeltaTable(str(self.query.table)).optimize.compact()
        else:
            table = self.catalog.load_table("db.orders")
            table.overwrite(table.scan().to_arrow())
        self._note("compacted")

    def settle(self) -> None:
        """Run to the end, and compare the rows."""
        code, output = self.run_to_end()
        rows = self._rows()
        lost, doubled = self.expected - rows, rows - self.expected
        self._note("settled")
        outcome = f"exit {code}, lost {[*lost]}, doubled {[*doubled]}: {output}"
        assert (code, lost, doubled) == (0, Counter(), Counter()), f"{self.history}: {outcome}"
        if self.forked is not None:
            self._start_forked(self.forked)
            self.forked = None

    def _start_forked(self, checkpoint: Path) -> None:
        """The fork has read what the table lacked, so the query that it continues has ended."""
        fork, self.query.checkpoint = self.query.checkpoint, checkpoint
        process = self._start(is_spark=self.random.random() < self.spark)
        code, output = process.wait(300), process.output
        self.query.checkpoint = fork
        if "behind the checkpoint" in output:
            # The table is from before this query, so the fork continues the one before it.
            added = self.commands.run("add-batches", str(checkpoint), self.to, "--yes")
            code, output = added[0], output + added[1]
        assert code, f"{self.history}: {output}"
        # The last where another writer's compaction is in a table from before this query.
        refused = (
            "is continued by another one",
            "cannot be brought together",
            "not known which batches of the query the table has",
        )
        assert any(words in output for words in refused), f"{self.history}: {output}"
        self._note("refused: continued by a fork")

    def finish(self) -> None:
        """Settle for the last time."""
        self.settle()

    def run_to_end(self) -> tuple[int | None, str]:
        """Run; where it is refused, carry out the remedy and run again. Exit code and output."""
        for _ in range(4):
            is_spark = self.random.random() < self.spark
            process = self._start(is_spark=is_spark)
            code, output = process.wait(300), process.output
            if not code:
                self._note("ended by Spark" if is_spark else "ended by sluice run")
                break
            # Spark logs tracebacks of its own; the error of the command is the last line.
            assert "Traceback" not in output or "Spark" in output, output
            self._follow(output)
        return code, output

    def _follow(self, output: str) -> None:
        checkpoint = str(self.query.checkpoint)
        if "ahead of the checkpoint" in output:
            self._note("refused: ahead")
            code, output = self.commands.run("remove-batches", checkpoint, self.to, "--yes")
            if code:
                self._restore_both(output)
        elif "behind the checkpoint" in output:
            self._note("refused: behind")
            code, output = self.commands.run("add-batches", checkpoint, self.to, "--yes")
            if "cannot be brought together" in output:
                self._restore_both(output)
            elif code:
                self._fork()
        elif "data files of a batch are missing" in output:
            self._note("refused: files missing")
            code, output = self.commands.run("reread", checkpoint, "--yes")
            assert not code, f"{self.history}: {output}"
        else:
            self._restore_both(output)

    def _fork(self) -> None:
        self.forks += 1
        new, checkpoint = self.root / f"ck-{self.forks}", self.query.checkpoint
        at_table = "--at-table", self.to, "--yes"
        code, output = self.commands.run("fork", str(checkpoint), str(new), *at_table)
        if code:
            self._note("of different histories")
            if "sluice remove-batches" in output:
                arguments = "remove-batches", str(checkpoint), self.to, "--yes"
                code, output = self.commands.run(*arguments)
            if code:
                self._restore_both(output)
            return
        self._note("forked")
        # With the old checkpoint, the table can get all batches again; or nobody has it any more.
        self.forked = checkpoint if self.random.random() < 0.5 else None
        if self.forked is None:
            shutil.rmtree(checkpoint)
        self.query.checkpoint = new

    def _restore_both(self, output: str) -> None:
        words = " ".join(output.split())
        assert "estore table and checkpoint from backups" in words or (
            "estore the table and the checkpoint from backups" in words
        ), f"{self.history}: {output}"
        self._restore("both", self.random.randrange(len(self.backups)))

    def _rows(self) -> Counter[Any]:
        if self.kind == "iceberg":
            rows = self.catalog.load_table("db.orders").scan().to_arrow()
            return Counter(rows["id"].to_pylist() if len(rows) else [])
        if self.kind == "delta":
            exists = (self.query.table / "_delta_log").exists()
            paths = [*DeltaTable(str(self.query.table)).file_uris()] if exists else []
        else:
            paths = [*Manifests(str(self.query.table / "_sluice"), {}).paths()]
        return Counter(i for p in paths for i in pq.read_table(p, columns=["id"])["id"].to_pylist())


def catalog_at(root: Path) -> dict[str, str]:
    """The properties of the catalog of a table."""
    return {"uri": f"sqlite:///{root}/table/catalog.db", "warehouse": f"{root}/table"}


def run(
    root: Path,
    kind: str,
    kills: int,
    seed: int,
    spark: float = 0.0,
    make: type[Restores] | None = None,
    jvm: LivingJvm | None = None,
) -> Counter[str]:
    """Rounds until there were so many kills; the figures.

    Raises:
        AssertionError: rows are lost or doubled, or a remedy does not help.
    """
    variables = {
        f"PYICEBERG_CATALOG__LAKE__{name.upper()}": value
        for name, value in {**catalog_at(root), "type": "sql"}.items()
    }
    outputs = root / "outputs"
    outputs.mkdir(parents=True)
    with ForkedCommands(outputs, variables) as commands:
        restores = (make or Restores)(root, kind, seed, commands)
        restores.jvm, restores.spark = jvm or restores.jvm, spark
        while restores.figures["kills"] < kills:
            restores.round()
        restores.finish()
    return restores.figures


def main() -> None:
    """Run the kinds of tables in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="over all kinds of tables")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--spark", type=float, default=0.5, help="share of runs of Spark")
    parser.add_argument("--kind", choices=KINDS, help="one kind of table only")
    given = parser.parse_args()
    kinds = [given.kind] if given.kind else KINDS
    kills, jvm = -(-given.kills // len(kinds)), LivingJvm()
    for at, kind in enumerate(kinds):
        with tempfile.TemporaryDirectory(prefix="sluice-restores-") as folder:
            seed = given.seed + at
            print(json.dumps({"table": kind, "seed": seed}), file=sys.stderr, flush=True)
            figures = run(Path(folder), kind, kills, seed, given.spark, jvm=jvm)
        print(json.dumps({"table": kind, "seed": seed, **figures}), flush=True)
    jvm.kill()


if __name__ == "__main__":
    main()
