"""A month of deliveries in compressed time, with kills and restores between them.

Files are delivered again, hours are written again, files are withdrawn, and hours are replayed with
`requeue --replace`. After each of them the table has what a fresh read of the files gives.

`python -m pyspark_sluice.tests.connector.host.deliveries --kills 100 --seed 7` prints figures.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from typing_extensions import override

from pyspark_sluice.tests.connector.host.forked_commands import ForkedCommands
from pyspark_sluice.tests.connector.host.restores import Restores, run

# Of a day, some files may be withdrawn.
_REPLACE = "--replace", "--skip-missing"


class Deliveries(Restores):
    """Files below `day=D`, each with ids that no other version of any file has."""

    partition_by = ""

    def __init__(self, root: Path, kind: str, seed: int, commands: ForkedCommands) -> None:
        super().__init__(root, kind, seed, commands)
        self._withdrawn: list[str] = []
        self._restored = 0

    @property
    @override
    def arguments(self) -> list[str]:
        options = ["onOverwrite=replace", "writeFileColumn=file", "ignoreMissingFiles=true"]
        if self.partition_by:
            options.append(f"writePartitionBy={self.partition_by}")
        words = [word for option in options for word in ("--option", option)]
        schema = "--schema", "id long, text string, day int"
        place = str(self.query.source), "--to", self.to, "--checkpoint", str(self.query.checkpoint)
        return ["run", *place, *schema, *words]

    @property
    @override
    def expected(self) -> Counter[int]:
        lines = [line for path in self._files() for line in path.read_text().splitlines()]
        return Counter(json.loads(line)["id"] for line in lines)

    def _files(self) -> list[Path]:
        return sorted(self.query.source.rglob("*.json"))

    def _put(self, path: Path, rows: int) -> None:
        records = [{"id": self.ids + i, "text": f"row {i}"} for i in range(rows)]
        self.ids += rows
        path.parent.mkdir(exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(record) + "\n" for record in records))
        draft.rename(path)

    @override
    def _land(self, count: int) -> None:
        day = self.query.source / f"day={self.random.randrange(5)}"
        hour, files = sorted(day.glob("*.json")), self._files()
        what = self.random.choice(("new", "new", "again", "again", "hour"))
        if what == "again" and files:
            self._put(self.random.choice(files), self.random.randrange(1, 5))
            self._note("delivered again")
        elif what == "hour" and hour:
            for path in hour:
                self._put(path, self.random.randrange(1, 5))
            self._note("hours written again")
        else:
            self.files += 1
            self._put(day / f"{self.files:06d}.json", count)

    @override
    def run_to_end(self) -> tuple[int | None, str]:
        ended = super().run_to_end()
        restored = sum(n for step, n in self.figures.items() if step.startswith("restored"))
        if restored != self._restored and not ended[0]:
            # A state that was restored does not know what was withdrawn since.
            self._restored = restored
            for pattern in self._withdrawn:
                self._order("retract", pattern)
            ended = super().run_to_end()
        return ended

    @override
    def settle(self) -> None:
        super().settle()
        what, files = self.random.random(), self._files()
        if what < 0.3 and len(files) > 3:
            path = self.random.choice(files)
            path.unlink()
            self._withdrawn.append(f"*{path.parent.name}/{path.name}")
            self._order("retract", self._withdrawn[-1])
            super().settle()
        elif what < 0.6 and files:
            self._order("requeue", f"*/{self.random.choice(files).parent.name}/*", *_REPLACE)
            super().settle()

    def _order(self, action: str, pattern: str, *more: str) -> None:
        arguments = action, str(self.query.checkpoint), "--matching", pattern, *more, "--yes"
        code, output = self.commands.run(*arguments)
        # A state from before the file was found knows nothing of it.
        assert not code or "nothing was selected" in output, output
        self._note(f"{action} {' '.join(more[:1])}".strip())


class ByDay(Deliveries):
    """Into a table that is partitioned by the day of the path."""

    partition_by = "day"


KINDS = {"delta": Deliveries, "delta by day": ByDay, "iceberg": Deliveries}


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
