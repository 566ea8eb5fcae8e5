"""The suite for sources, passed by the example log, by the file source and by that of tables."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import SourceSuite
from pyspark_sluice.examples.log_source.log_source import LogSource
from pyspark_sluice.examples.table_source import table_source_test
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

pytestmark = pytest.mark.slow


class TestLogSource(SourceSuite):
    def make_source(self, place):
        return LogSource(Logs(place).options(), LINES)

    def land(self, place, part, rows):
        return Logs(place).land(part, rows, archived=0)


class TestFileSource(SourceSuite):
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])

    def make_source(self, place):
        options = parse_options({"path": str(place), "stateLocation": "unused"}, streaming=True)
        return FileSource(options, self.schema)

    def land(self, place, part, rows):
        number = len(list(place.glob("*.json")))
        landed = [{"id": number * 100 + i, "part": part} for i in range(rows)]
        hidden = place / f".{number}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in landed))
        hidden.rename(place / f"{number}.json")
        return landed

    # Each kill meets the log above; the ledger has its own, in test_upkeep.py.
    test_a_kill_at_any_operation_on_the_state = None  # type: ignore[assignment]


class TestTableSource(table_source_test.TestTableSource):
    # Each kill meets the log above, whose state is of the same kind.
    test_a_kill_at_any_operation_on_the_state = None  # type: ignore[assignment]
