"""A new column in rows that go into data files: reading goes on behind the rows before it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint import PartBudget
from pyspark_sluice.checkpoint_meta.documents.query_records import SchemaHistory
from pyspark_sluice.checkpoint_meta.files.file_split import SCHEMA, FileSplit
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.schema_json import arrow_schema_of
from pyspark_sluice.connector.source.schemas import resolved
from pyspark_sluice.errors import SchemaEvolvedError
from pyspark_sluice.reader.api import (
    LeftOut,
    PartEnded,
    ReaderEvent,
    ReceivedEvent,
    RemainingBudget,
    SplitFinished,
    SplitUnfinished,
)
from pyspark_sluice.reader.files.testing import CONTEXT, cut, whole
from pyspark_sluice.tests.reader.files.formats.packers import PACKERS

pytestmark = pytest.mark.slow

START = pa.schema([("id", pa.int64())])
ROWS = 12_000


class Growing:
    """Reads files of one directory part after part, as readers with a budget do."""

    def __init__(self, root: Path, **options: str) -> None:
        self.root = root / "in"
        self.root.mkdir()
        usual = {"path": str(self.root), "writeTo": str(root / "out"), "inferColumnTypes": "true"}
        usual["stateLocation"] = str(root / "state")
        parsed = parse_options({**usual, **options}, streaming=True)
        self.options = resolved(parsed, START.names, inferred=True)
        self.store = MemoryStateStore("state")
        self.rows: list[dict[str, Any]] = []
        self.left_out = 0
        self.stops = 0

    def write(self, name: str, *records: dict[str, Any]) -> Path:
        path = self.root / name
        if name.endswith(".parquet"):
            pq.write_table(pa.Table.from_pylist(list(records)), path)
        elif name.endswith(".csv"):
            lines = [",".join(records[0]), *(",".join(map(str, r.values())) for r in records)]
            path.write_text("".join(f"{line}\n" for line in lines))
        elif name.endswith(".xml"):
            texts = ("".join(f"<{k}>{v}</{k}>" for k, v in r.items()) for r in records)
            path.write_text("<rows>" + "".join(f"<row>{t}</row>" for t in texts) + "</rows>")
        else:
            path.write_text("".join(json.dumps(r) + "\n" for r in records))
        return path

    def part(self, splits: list[FileSplit], rows: int | None, version: int) -> list[FileSplit]:
        """One part of a checkpoint; what is left of it."""
        budget = RemainingBudget(None if rows is None else PartBudget(rows=rows))
        events = [ReceivedEvent({SCHEMA: version}, 0)] if version else []
        context = replace(CONTEXT, checkpoint_id=1, store=self.store, budget=budget, events=events)
        source = FileSource(self.options, START, schema_is_inferred=True)
        reader = source.create_reader(context)
        left, reported, yielded = list(splits), 0, 0
        rest: list[FileSplit] = []
        self.versions = []
        for item in reader.read(splits):
            match item:
                case pa.RecordBatch():
                    self.rows += item.to_pylist()
                    yielded += item.num_rows
                case LeftOut():
                    self.left_out += item.batch.num_rows
                case SplitFinished() | SplitUnfinished():
                    assert item.split_id == left.pop(0).split_id
                    reported += item.rows
                    rest += [item.remainder] if isinstance(item, SplitUnfinished) else []
                case PartEnded():
                    assert item.split_id == left[0].split_id
                    rest, left = rest + left, []
                case ReaderEvent(type="schema"):
                    self.versions.append(item.value)
        reader.close()
        assert not left, "a report on every split"
        assert reported == yielded
        assert rows is None or yielded <= rows
        return rest

    def read(self, splits: list[FileSplit], rows: int | None = None, *, tell: bool = True) -> int:
        """All parts; returns how many."""
        version = parts = 0
        while splits:
            splits = self.part(splits, rows, version if tell else 0)
            version = max([version, *self.versions])
            parts += 1
        return parts


def records(*more: str) -> list[dict[str, Any]]:
    """Rows of which the later ones have one column more after the other."""
    step = ROWS // (len(more) + 1)
    return [
        {"id": n, **{name: n for at, name in enumerate(more, 1) if n >= at * step}}
        for n in range(ROWS)
    ]


@pytest.mark.sample("a.json", why="the same in XML")
@pytest.mark.parametrize("rows", [None, 5_000])
@pytest.mark.parametrize("tell", [True, False])
@pytest.mark.parametrize("name", ["a.json", "a.xml"])
def test_a_column_in_the_middle_of_a_file_is_read_on_from_there(tmp_path, name, rows, tell):
    row_tag = {"rowTag": "row"} if name == "a.xml" else {}
    query = Growing(
        tmp_path, fileFormat=name[2:], batchBytes="65536", inferSampleBytes="1024", **row_tag
    )
    wanted = records("a", "b")
    path = query.write(name, *wanted)
    parts = query.read(cut(path, ()), rows, tell=tell)
    assert [{k: v for k, v in row.items() if v is not None} for row in query.rows] == wanted
    assert parts == (1 if rows is None else -(-ROWS // rows))


@pytest.mark.parametrize("rows", [None, 5])
@pytest.mark.parametrize("suffix", ["", ".zip", ".tar.gz"])
@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
@pytest.mark.sample("json", "parquet--None", why="the columns of records are found in one way")
def test_each_of_many_files_or_of_members_of_an_archive_may_bring_a_column(
    tmp_path, ending, suffix, rows
):
    header = {"header": "true"} if ending == "csv" else {}
    query = Growing(tmp_path, fileFormat=ending, inferSampleFiles="1", **header)
    paths = [
        query.write(f"{n}.{ending}", {"id": 2 * n, f"c{n}": n}, {"id": 2 * n + 1, f"c{n}": n})
        for n in range(20)
    ]
    splits = [split for path in paths for split in cut(path, ())]
    if suffix:
        archive = tmp_path / f"a{suffix}"
        archive.write_bytes(PACKERS[suffix]({path.name: path.read_bytes() for path in paths}))
        splits = [whole(archive)]
    query.read(splits, rows)
    assert Counter(row["id"] for row in query.rows) == Counter(range(40))
    assert all(row[f"c{row['id'] // 2}"] == row["id"] // 2 for row in query.rows)
    stored = SchemaHistory(query.store).latest()
    assert set(arrow_schema_of(stored.struct).names) == {"id", *(f"c{n}" for n in range(20))}


def test_bad_records_before_the_column_are_recorded_once(tmp_path):
    query = Growing(
        tmp_path,
        fileFormat="json",
        batchBytes="65536",
        mode="DROPMALFORMED",
        badRecordsPath=str(tmp_path / "bad"),
    )
    path = query.write("a.json", *records("a"))
    lines = path.read_text().splitlines()
    path.write_text(
        "".join(f"{line}\n" + "{bad\n" * (n % 100 == 0) for n, line in enumerate(lines))
    )
    query.read(cut(path, ()))
    assert Counter(row["id"] for row in query.rows) == Counter(range(ROWS))
    assert query.left_out == ROWS // 100


WIDENED = {"schemaEvolutionMode": "addNewColumnsWithTypeWidening", "writeTo": ""}


@pytest.mark.parametrize(
    ("options", "record", "problem"),
    [
        ({"writeTo": ""}, {"id": 1, "a": 2}, "the data has new columns, and.*found a int64;"),
        ({"writeCopy": "never"}, {"id": 1, "a": 2}, "found a int64;"),
        (WIDENED, {"id": 1.5}, "the data has wider types, and.*found id double;"),
        (WIDENED, {"id": 1.5, "a": 2}, "new columns and wider types, and.*id double, a int64;"),
    ],
)
def test_rows_that_go_elsewhere_end_the_task_with_the_schema_stored(
    tmp_path, options, record, problem
):
    kind = "parquet" if "writeCopy" in options else "json"
    query = Growing(tmp_path, fileFormat=kind, **options)
    with pytest.raises(SchemaEvolvedError, match=problem):
        query.read(cut(query.write(f"a.{kind}", record), ()))
    assert len(SchemaHistory(query.store).all()) == 1
