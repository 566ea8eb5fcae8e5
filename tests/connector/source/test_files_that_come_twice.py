"""What the protocol promises of files holds with `identity=content`, where each comes twice."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import SourceSuite

pytestmark = pytest.mark.thorough("half a minute; test_known_contents.py has kills and restarts")

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


class TestEachFileComesTwice(SourceSuite):
    """A kill at every operation on the state, restarts and restores, bases, savepoints."""

    planted_bugs = ()

    def make_source(self, place):
        options = {"path": f"{place}/in", "fileFormat": "json", "identity": "content"}
        options |= {"stateLocation": "unused", "onSplitError": "return"}
        (place / "in").mkdir(exist_ok=True)
        return FileSource(parse_options(options, streaming=True), SCHEMA)

    def land(self, place, part, rows):
        folder = place / "in"
        folder.mkdir(exist_ok=True)
        first = 1000 * len(list(folder.iterdir()))
        landed = [{"id": first + row, "text": f"part {part}"} for row in range(rows)]
        # The copies come before and after the others in the order of names.
        for name in (f"{part}-{first}.json", f"{9 - part}-{first}-copy.json"):
            hidden = folder / f".{name}"
            hidden.write_text("".join(json.dumps(row) + "\n" for row in landed))
            hidden.rename(folder / name)
        return landed
