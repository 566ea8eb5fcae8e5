"""What a run found: each kind of difference once, with what it takes to see it again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark_sluice.tests.reader.readings.documented import row_of
from pyspark_sluice.tests.reader.readings.kinds import schema_ddl
from pyspark_sluice.tests.reader.readings.model import Difference


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
    data = repr(_brief(difference.data)) if group.is_text else f"{len(difference.data)} bytes"
    return "\n".join(
        (
            f"--- {group.file_format}, {difference.mode}, {difference.reading}",
            f"    column   {difference.column}",
            f"    {json.dumps(replay, ensure_ascii=False)}",
            f"    file     {data} {difference.label} {group.suffix}",
            *_both(difference),
            f"    again    {source}",
        )
    )


def _brief(data: bytes) -> bytes:
    return data if len(data) < 1200 else data[:600] + b" ... " + data[-600:]


def _both(difference: Difference) -> list[str]:
    """The first row in which the two differ; the rows that one side lacks, if one has fewer."""
    expected, found = difference.expected, difference.found
    first = "expected"
    if not isinstance(expected, str) and not isinstance(found, str) and len(expected) == len(found):
        pairs = [(a, b) for a, b in zip(expected, found, strict=True) if a != b]
        one, other = pairs[0]
        names = [name for name in one if one[name] != other.get(name)]
        kept = [{name: row.get(name) for name in names} for row in (one, other)]
        return [f"    {first} {kept[0]!s:.400}", f"    found    {kept[1]!s:.400}"]
    if not isinstance(expected, str) and not isinstance(found, str):
        # Only what the other side lacks.
        theirs, ours = [str(row) for row in expected], [str(row) for row in found]
        expected, found = _without(theirs, ours), _without(ours, theirs)
    return [f"    {first} {expected!s:.400}", f"    found    {found!s:.400}"]


def _without(rows: list[str], others: list[str]) -> str:
    return "; ".join((Counter(rows) - Counter(others)).elements())
