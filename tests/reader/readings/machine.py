"""Compares five readings of every file of a group, in each mode; each kind of difference once."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from pyspark_sluice.tests.reader.readings.documented import row_of
from pyspark_sluice.tests.reader.readings.kinds import schema_ddl
from pyspark_sluice.tests.reader.readings.model import CORRUPT, MODES, Difference, Group, Outcome
from pyspark_sluice.tests.reader.readings.of_sluice import Ours

MOST_TO_CUT = 3_000
"""Bytes of a file up to which it is cut at every one."""


class SparkReader(Protocol):
    """Spark's reading of a group, as in `of_spark.read_by_spark`."""

    def __call__(
        self, group: Group, paths: Sequence[Path], mode: str, *, is_bad: bool = False
    ) -> list[Outcome]: ...


@dataclass
class Machine:
    """Reads groups, counts what it compared, and finds what differs."""

    by_spark: SparkReader
    chance: Random
    cuts: int = 3
    """Single cuts of each file, in addition to the one into splits of one byte."""

    failing: int = 8
    """Files of a group that Spark has to fail for, each alone, under FAILFAST."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many readings of each kind were compared."""

    def differences(self, group: Group) -> list[Difference]:
        """Everything that differs between the readings of a group."""
        found: list[Difference] = []
        with tempfile.TemporaryDirectory() as folder:
            paths = group.write(Path(folder))
            spoiled: set[int] = set()
            for mode in MODES if group.has_modes else MODES[:1]:
                found += self._in_mode(group, paths, mode, spoiled)
        return found

    def _in_mode(
        self, group: Group, paths: Sequence[Path], mode: str, spoiled: set[int]
    ) -> Iterator[Difference]:
        ours = Ours(group, mode)
        alone = [ours.alone(path) for path in paths]
        here = _Reading(group, paths, mode, ours, alone)
        expected = self._expected(group, paths, mode, spoiled)
        for number, (outcome, found) in enumerate(zip(expected, alone, strict=True)):
            if outcome is not None:
                yield from self._held(here, "spark", number, outcome, found)
        if ours.refused:
            return
        yield from self._packed(here)
        yield from self._cut(here)

    def _cut(self, here: _Reading) -> Iterator[Difference]:
        for number, (path, outcome) in enumerate(zip(here.paths, here.alone, strict=True)):
            size = path.stat().st_size
            if size > MOST_TO_CUT:
                continue
            single = [[self.chance.randrange(1, size)] for _ in range(self.cuts) if size > 1]
            for borders in ([*range(1, size)], *single):
                found = here.ours.cut(path, borders) if borders else None
                if found is not None:
                    yield from self._held(here, f"cut at {borders[:3]}", number, outcome, found)

    def _expected(
        self, group: Group, paths: Sequence[Path], mode: str, spoiled: set[int]
    ) -> Sequence[Outcome | None]:
        """What Spark makes of the files; None for those that it is not asked about."""
        if mode != "FAILFAST":
            outcomes = self.by_spark(group, paths, mode)
            if mode == "PERMISSIVE":
                spoiled |= {n for n, rows in enumerate(outcomes) if _is_spoiled(rows)}
            return [*outcomes]
        asked = sorted(spoiled)[: self.failing]
        outcomes_of: dict[int, Outcome] = {}
        for chosen in (sorted({*range(len(paths))} - spoiled), asked):
            of_these = [paths[n] for n in chosen]
            found = self.by_spark(group, of_these, mode, is_bad=chosen is asked)
            outcomes_of.update(zip(chosen, found, strict=True))
        return [outcomes_of.get(n) for n in range(len(paths))]

    def _packed(self, here: _Reading) -> Iterator[Difference]:
        paths, alone = here.paths, here.alone
        good = [n for n, outcome in enumerate(alone) if not isinstance(outcome, str)]
        whole = here.ours.packed([paths[n] for n in good])
        rows = [row for n in good for row in alone[n]]
        if good and whole == rows:
            self.counts["packed"] += len(good)
        else:
            for n in good:
                # With one neighbour each, to tell which file it is.
                other = good[(good.index(n) + 1) % len(good)]
                both = here.ours.packed([paths[n], paths[other]])
                yield from self._held(here, "packed", n, [*alone[n], *alone[other]], both)
        if here.group.bad and here.mode != "FAILFAST":
            yield from self._next_to_others(here)

    def _next_to_others(self, here: _Reading) -> Iterator[Difference]:
        """Each file in a pack with a malformed one, and with a malformed record behind its own."""
        group, folder = here.group, here.paths[0].parent
        bad = group.with_files((group.bad,)).write(_below(folder, "bad"))[0]
        spoiled = here.ours.alone(bad)
        for number, (path, rows) in enumerate(zip(here.paths, here.alone, strict=True)):
            if isinstance(rows, str) or isinstance(spoiled, str):
                continue
            both = here.ours.packed([path, bad])
            yield from self._held(here, "beside a bad file", number, [*rows, *spoiled], both)
            if group.line_end and rows:
                data = group.files[number]
                end = b"" if data.endswith(group.line_end) else group.line_end
                longer = group.with_files((data + end + group.bad,))
                found = here.ours.alone(longer.write(_below(folder, "longer"))[0])
                first = found if isinstance(found, str) else found[: len(rows)]
                yield from self._held(here, "before a bad record", number, rows, first)

    def _held(
        self, here: _Reading, reading: str, number: int, expected: Outcome, found: Outcome
    ) -> Iterator[Difference]:
        self.counts[reading.partition(" at ")[0]] += 1
        if not _same(expected, found):
            data = here.group.files[number]
            yield Difference(here.group, here.mode, reading, data, expected, found)


class _Reading(NamedTuple):
    """The files of a group in one mode, and what each gives alone."""

    group: Group
    paths: Sequence[Path]
    mode: str
    ours: Ours
    alone: Sequence[Outcome]


def _same(expected: Outcome, found: Outcome) -> bool:
    if isinstance(expected, str) or isinstance(found, str):
        return _is_refusal(expected) and _is_refusal(found)
    return expected == found


def _is_refusal(outcome: Outcome) -> bool:
    return isinstance(outcome, str) and outcome.startswith("refused")


def _is_spoiled(outcome: Outcome) -> bool:
    return isinstance(outcome, str) or any(row.get(CORRUPT) is not None for row in outcome)


def _below(folder: Path, name: str) -> Path:
    (made := folder / name).mkdir(exist_ok=True)
    return made


@dataclass
class Findings:
    """Differences of all groups, documented ones counted and others kept once a kind."""

    documented: Counter[str] = field(default_factory=Counter)
    undocumented: dict[tuple[object, ...], str] = field(default_factory=dict)

    def take(self, found: list[Difference], source: str) -> Iterator[str]:
        """Sort these in; yields the text of those that are new."""
        for difference in found:
            row = row_of(difference)
            if row:
                self.documented[row] += 1
            elif difference.signature not in self.undocumented:
                text = described(difference, source)
                self.undocumented[difference.signature] = text
                yield text


def described(difference: Difference, source: str) -> str:
    """A few lines for a person, and one to repeat the reading with."""
    group = difference.group
    replay = {
        "format": group.file_format,
        "mode": difference.mode,
        "schema": schema_ddl(group.schema),
        "options": dict(group.options),
        "only_spark": dict(group.only_spark),
    }
    return "\n".join(
        (
            f"--- {group.file_format}, {difference.mode}, {difference.reading}",
            f"    column   {difference.column}",
            f"    {json.dumps(replay, ensure_ascii=False)}",
            f"    file     {difference.data!r:.1200} {group.suffix}",
            *_both(difference),
            f"    again    {source}",
        )
    )


def _both(difference: Difference) -> list[str]:
    """What the two sides have, as far as the other one lacks it."""
    expected, found = difference.expected, difference.found
    if not isinstance(expected, str) and not isinstance(found, str):
        theirs, ours = Counter(map(str, expected)), Counter(map(str, found))
        expected, found = ("; ".join(more.elements()) for more in (theirs - ours, ours - theirs))
    return [f"    expected {expected!s:.400}", f"    found    {found!s:.400}"]
