"""A month of deliveries in compressed time, with kills and restores between them.

Files are delivered again, hours are written again under the same and under other names, files are
withdrawn and hours are replayed, one of them after it was read in a wrong time zone. After each of
them the table has, row for row, what a fresh read of the files gives; at the end `sluice audit`
says equal.

`python -m pyspark_sluice.tests.connector.host.deliveries --kills 100 --seed 7` prints figures.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from typing_extensions import override

from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key
from pyspark_sluice.tests.connector.host.forked_commands import ForkedCommands
from pyspark_sluice.tests.connector.host.restores import Restores, run

_REPLACE = "--replace", "--skip-missing"
_COLUMNS = ("id", "text", "at", "day", "file")


class Deliveries(Restores):
    """Files below `day=D`, each with ids that no other version of any file has."""

    partition_by = ""
    rewrites = False
    """An hour is written again under other names, and then gets its marker."""

    def __init__(self, root: Path, kind: str, seed: int, commands: ForkedCommands) -> None:
        super().__init__(root, kind, seed, commands)
        self._retracted: list[Path] = []
        """Files that are there, whose rows an order has removed."""
        self._is_behind = False
        """True if the state may not know yet which files are gone."""
        self._time_zone = "UTC"

    @property
    @override
    def arguments(self) -> list[str]:
        options = [
            *("onOverwrite=replace", "onDelete=retract", "retractAfter=1s"),
            *("writeFileColumn=file", "ignoreMissingFiles=true", f"timeZone={self._time_zone}"),
            # A fork begins without the rows of files that it has not read.
            f"keepFileRows={str(self.query.checkpoint.name == 'ck').lower()}",
        ]
        if self.partition_by:
            options.append(f"writePartitionBy={self.partition_by}")
        if self.rewrites:
            options += ["onDelete=retract", "readyMarker=_SUCCESS"]
        words = [word for option in options for word in ("--option", option)]
        schema = "--schema", "id long, text string, at timestamp, day int"
        place = str(self.query.source), "--to", self.to, "--checkpoint", str(self.query.checkpoint)
        return ["run", *place, *schema, *words]

    @property
    @override
    def expected(self) -> Counter[Any]:
        return Counter(
            (
                record["id"],
                record["text"],
                datetime.fromisoformat(record["at"]).replace(tzinfo=UTC),
                int(path.parent.name.removeprefix("day=")),
                file_key(str(path)),
            )
            for path in self._files()
            if path not in self._retracted
            for record in map(json.loads, path.read_text().splitlines())
        )

    @override
    def _rows(self) -> Counter[Any]:
        if self.kind == "iceberg":
            rows = self.catalog.load_table("db.orders").scan().to_arrow()
        elif (self.query.table / "_delta_log").exists():
            rows = DeltaTable(str(self.query.table)).to_pyarrow_table()
        else:
            return Counter()
        if not len(rows):
            return Counter()
        columns = {name: rows[name].to_pylist() for name in _COLUMNS}
        # Partition columns of a Delta table that the sink creates are strings.
        columns["day"] = list(map(int, columns["day"]))
        return Counter(zip(*columns.values(), strict=True))

    def _files(self) -> list[Path]:
        return sorted(self.query.source.rglob("*.json"))

    def _put(self, path: Path, rows: int) -> None:
        ids = range(self.ids, self.ids + rows)
        self.ids += rows
        at = "2026-01-0{} 0{}:00:00"
        records = [
            {"id": i, "text": f"row {i}" if i % 5 else None, "at": at.format(1 + i % 9, i % 10)}
            for i in ids
        ]
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(record) + "\n" for record in records))
        draft.rename(path)
        if self.rewrites:
            (path.parent / "_SUCCESS").touch()

    def _new_file(self, day: Path, rows: int) -> None:
        self.files += 1
        self._put(day / f"{self.files:06d}.json", rows)

    def _withdraw(self, path: Path) -> None:
        path.unlink()
        self._is_behind = True

    @override
    def _land(self, count: int) -> None:
        day = self.query.source / f"day={self.random.randrange(5)}"
        hour, files = sorted(day.glob("*.json")), self._files()
        what = self.random.choice(("new", "new", "again", "hour", "other names", "withdrawn"))
        if what == "again" and files:
            self._put(self.random.choice(files), self.random.randrange(1, 5))
            self._note("delivered again")
        elif what == "hour" and hour:
            for path in hour:
                target = path
                if self.rewrites:
                    path.unlink()
                    self.files += 1
                    target = day / f"{self.files:06d}.json"
                self._put(target, self.random.randrange(1, 5))
            self._note("hours written again")
        elif what == "other names" and hour:
            # The first has rows: a loaded path without any file would be an error.
            for rows in (2, self.random.randrange(4)):
                self._new_file(day, rows)
            for path in hour:
                self._withdraw(path)
            self._note("hours written again, other names")
        elif what == "withdrawn" and len(files) > 3:
            self._withdraw(self.random.choice(files))
            self._note("withdrawn")
        else:
            self._new_file(day, count)

    @override
    def run_to_end(self) -> tuple[int | None, str]:
        ended = super().run_to_end()
        while self._is_behind and not ended[0]:
            self._is_behind = False
            time.sleep(1.1)
            # A state that was restored does not know of orders that were given since.
            for path in self._retracted:
                self._order("retract", "--matching", f"*/{path.name}")
            ended = super().run_to_end()
        return ended

    @override
    def _restore(self, what: str, backup: int) -> None:
        super()._restore(what, backup)
        self._is_behind = True

    @override
    def _fork(self) -> None:
        super()._fork()
        self._is_behind = True

    @override
    def settle(self) -> None:
        super().settle()
        deed = self.random.choice(("retract", "requeue", "rewind", "wrong zone", "", ""))
        files = self._files()
        if len(files) < 4 or not deed:
            return
        path = self.random.choice(files)
        if deed == "retract":
            self._retracted.append(path)
            self._order("retract", "--matching", f"*/{path.name}")
            super().settle()
            self._retracted.clear()
            self._withdraw(path)
        elif deed == "requeue":
            self._order("requeue", "--matching", f"*/{path.parent.name}/*", *_REPLACE)
        elif deed == "rewind":
            batch = self.random.choice(self.query.logged("commits")[-5:])
            at = (self.query.checkpoint / "commits" / str(batch)).stat().st_mtime
            moment = datetime.fromtimestamp(at, UTC).isoformat()
            self._order("rewind", "--to-time", moment, *_REPLACE)
        else:
            self._replay(path.parent)
        super().settle()

    def _replay(self, day: Path) -> None:
        """Read a file in a wrong time zone, and the day once more in the right one."""
        self._new_file(day, 3)
        self._time_zone = "Asia/Tokyo"
        code, output = self.run_to_end()
        assert not code, output
        self._time_zone = "UTC"
        # What a restore has had read again was read in the wrong zone, too.
        self._order("requeue", "--matching", "*", *_REPLACE)
        self._note("wrong zone")

    def _order(self, action: str, *more: str) -> None:
        code, output = self.commands.run(action, str(self.query.checkpoint), *more, "--yes")
        # A state from before the file was found knows nothing of it.
        assert not code or "nothing was selected" in output, output
        self._note(f"{action} {'--replace' * ('--replace' in more)}".strip())

    @override
    def finish(self) -> None:
        super().finish()
        audit = "audit", str(self.query.checkpoint), "--table", self.to, "--recount"
        code, output = self.commands.run(*audit)
        assert (code, output.splitlines()[-1:]) == (0, ["equal"]), f"{self.history}: {output}"
        self._note("audits")


class ByDay(Deliveries):
    """Into a table that is partitioned by the day of the path."""

    partition_by = "day"


class Rewritten(ByDay):
    """A job replaces all files of a day by others."""

    rewrites = True


KINDS = {
    "delta": Deliveries,
    "delta by day": ByDay,
    "delta rewritten": Rewritten,
    "iceberg": Deliveries,
}


def month(root: Path, kind: str, kills: int, seed: int) -> Counter[str]:
    """See `restores.run`."""
    return run(root, kind.partition(" ")[0], kills, seed, make=KINDS[kind])


def main() -> None:
    """Run the kinds of tables in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="over all kinds of tables")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--kind", choices=KINDS, help="one kind of table only")
    given = parser.parse_args()
    kinds = [given.kind] if given.kind else [*KINDS]
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="sluice-deliveries-") as folder:
            print(json.dumps({"table": kind, "seed": given.seed}), file=sys.stderr, flush=True)
            figures = month(Path(folder), kind, -(-given.kills // len(kinds)), given.seed)
        print(json.dumps({"table": kind, "seed": given.seed, **figures}), flush=True)


if __name__ == "__main__":
    main()
