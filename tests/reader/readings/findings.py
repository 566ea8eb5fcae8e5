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
