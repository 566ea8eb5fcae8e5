"""The README's chart: eight shapes into a Delta table and as rows, against Spark's file source.

`make bench BENCH=readme` measures them and draws docs/pictures/speedup.svg. The other shapes are in
`table_rows.py` and `shape_rows.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .bench import Bench, Result
from .machine import describe
from .shape_rows import as_rows, means
from .shapes import SHAPES, Shape
from .speedup_chart import Bars, chart
from .table_rows import into_delta

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "speedup.svg"

CHOSEN = (
    ("csv", "rides"),
    ("csv", "60 columns"),
    ("csv", "text with quotes and line breaks"),
    ("json", "flat"),
    ("json", "events"),
    ("parquet", "rides"),
    ("parquet", "events"),
    ("orc", "rides"),
)
_NAMES = {"csv": "CSV", "json": "JSON", "parquet": "Parquet", "orc": "ORC"}


def readme(bench: Bench) -> Iterator[Result]:
    """The README's chart: measures eight shapes and draws it."""
    bars = []
    for shape in map(_shape, CHOSEN):
        table, rows = into_delta(bench, shape), as_rows(bench, shape)
        yield from (table, rows)
        name = f"{_NAMES[shape.file_format]}, {shape.name}"
        bars.append(Bars(name, *((one.peer or 0.0) / one.sluice for one in (table, rows))))
    yield from means(
        {"into Delta": [bar.table for bar in bars], "as rows": [bar.rows for bar in bars]}
    )
    today = datetime.now(UTC).date().isoformat()
    PICTURE.write_text(chart(bars, f"{today}; {describe(bench.spark)}"), encoding="utf-8")


def _shape(chosen: tuple[str, str]) -> Shape:
    return next(shape for shape in SHAPES if (shape.file_format, shape.name) == chosen)
