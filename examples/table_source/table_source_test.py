"""The suite for sources, passed by the source of a table."""

import contextlib
import sqlite3

import pyarrow as pa

from pyspark_sluice.examples.table_source.table_source import TableSource
from pyspark_sluice.testing import SourceSuite, parse_options


class TestTableSource(SourceSuite):
    def make_source(self, place):
        options = {"path": f"{place}/db", "source": "table_source:TableSource"}
        options |= {"sourceOptions": '{"rows": 2}', "stateLocation": "unused"}
        schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
        return TableSource(parse_options(options, streaming=True), schema)

    def land(self, place, part, rows):
        with contextlib.closing(sqlite3.connect(f"{place}/db")) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, text)")
            texts = [(f"part {part}, row {number}",) for number in range(rows)]
            before = database.execute("SELECT max(id) FROM events").fetchone()[0] or 0
            database.executemany("INSERT INTO events (text) VALUES (?)", texts)
        return [{"id": before + 1 + n, "text": text} for n, (text,) in enumerate(texts)]
