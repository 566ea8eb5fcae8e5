"""New rows of a database table, by an id that only grows: a source in 60 lines."""

import contextlib
import sqlite3
from dataclasses import astuple, dataclass

import pyarrow as pa

from pyspark_sluice.sources import (
    JsonSerializer,
    Source,
    SplitEnumerator,
    SplitFinished,
    SplitReader,
)


@dataclass(frozen=True)
class Ids:
    start: int
    end: int
    split_id = property(lambda self: f"{self.start}-{self.end}")


class TableEnumerator(SplitEnumerator):
    def __init__(self, context, newest_id, size, state):
        self.context, self.newest_id, self.size, self.has_looked = context, newest_id, size, False
        *self.pending, self.known = state or [Ids(1, 1)]

    def start(self):
        self.context.call_async(self.newest_id, self.found)

    def found(self, newest, error):
        if error:
            raise error
        while self.known.end <= newest:
            end = min(newest + 1, self.known.end + self.size)
            self.pending.append(Ids(self.known.end, end))
            self.known = Ids(end, end)
        self.has_looked = True
        self.context.request_planning()
        if not self.context.bounded:
            self.context.call_async(self.newest_id, self.found, delay=1.0)

    has_discovered = property(lambda self: self.has_looked)

    def plan_batch(self, budget):
        while self.pending and not budget.is_full:
            ids = self.pending.pop(0)
            self.context.assign_splits({ids.start // self.size % self.context.parallelism: [ids]})
            budget.take(ids.split_id, 0, ids.end - ids.start)

    def add_splits_back(self, splits, reader):
        self.pending += splits

    def snapshot_state(self, checkpoint_id):
        return [*self.pending, self.known]


class TableReader(SplitReader):
    def __init__(self, select, schema):
        self.select, self.schema = select, schema

    def read(self, splits):
        sql = "SELECT id, text FROM events WHERE id >= ? AND id < ? ORDER BY id"
        for ids in splits:
            rows = [{"id": i, "text": t} for i, t in self.select(sql, ids.start, ids.end)]
            yield pa.RecordBatch.from_pylist(rows, self.schema)
            yield SplitFinished(ids.split_id, len(rows))


class TableSource(Source):
    split_serializer = state_serializer = JsonSerializer(1, astuple, lambda _, ids: Ids(*ids))

    def select(self, sql, *values):
        with contextlib.closing(sqlite3.connect(self.options.path)) as database:
            return database.execute(sql, values).fetchall()

    def newest_id(self):
        return self.select("SELECT max(id) FROM events")[0][0] or 0

    def create_enumerator(self, context, state):
        return TableEnumerator(context, self.newest_id, self.options.source_options["rows"], state)

    def create_reader(self, context):
        return TableReader(self.select, self.schema)
