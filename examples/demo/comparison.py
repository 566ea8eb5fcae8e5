"""Compares what has landed with what the table holds, row for row, as multisets.

Both are read by pyarrow, not by the code that is being shown. The manifests list the data files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict."""

    landed: int
    ingested: int
    lost: int
    duplicated: int

    @property
    def exact(self) -> bool:
        """True if both hold the same rows, each as often."""
        return self.landed == self.ingested and not self.lost and not self.duplicated

    def __str__(self) -> str:
        return (
            f"rows landed {self.landed}, rows ingested {self.ingested}, "
            f"lost {self.lost}, duplicated {self.duplicated}"
        )


def compare(landing: Path, table: Path, schema: pa.Schema) -> Comparison:
    """Compare the JSON lines files below `landing` with the data files of `table`."""
    landed = [_landed(path, schema) for path in landing.rglob("[!.]*.json")]
    manifests = (table / "_sluice" / "manifests").glob("*.json")
    files = [file["path"] for path in manifests for file in json.loads(path.read_text())["files"]]
    ingested = [pyarrow.parquet.read_table(file, schema=schema) for file in files]
    before = _rows(pa.concat_tables(landed), schema.names)
    after = _rows(pa.concat_tables(ingested), schema.names)
    return Comparison(
        before.total(), after.total(), (before - after).total(), (after - before).total()
    )


def _landed(path: Path, schema: pa.Schema) -> pa.Table:
    options = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return pyarrow.json.read_json(path, parse_options=options)


def _rows(table: pa.Table, names: Sequence[str]) -> Counter[tuple[object, ...]]:
    columns = [table.column(name).to_pylist() for name in names]
    return Counter(zip(*columns, strict=True))
