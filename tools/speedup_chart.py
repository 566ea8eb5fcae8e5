"""Draws the README's chart out of the tables of measurements in the documentation.

`python tools/speedup_chart.py` writes docs/pictures/speedup.svg; a test compares. Nothing is
measured here: `make bench` is.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "speedup.svg"

SHAPES = {
    "CSV, rides": "CSV, rides, 14 columns",
    "CSV, flat, quoted": "CSV, 5 columns, strings quoted",
    "CSV, 60 columns": "CSV, 60 columns",
    "CSV, 300 columns": "CSV, 300 columns",
    "CSV, text with quotes and line breaks": "CSV, text with quotes and line breaks",
    "JSON, flat": "JSON, 5 columns",
    "JSON, events": "JSON, events with structs, arrays and a map",
    "JSON, 60 columns": "JSON, 60 columns",
    "JSON, 300 columns": "JSON, 300 columns",
    "JSON, 10 events a file": "JSON, 2,000 files of 10 events",
    "Parquet, flat": "Parquet, 5 columns",
    "Parquet, rides": "Parquet, rides",
    "Parquet, events": "Parquet, events",
    "Parquet, 60 columns": "Parquet, 60 columns",
    "Parquet, 300 columns": "Parquet, 300 columns",
    "Parquet, 10 rides a file": "Parquet, 2,000 files of 10 rides",
    "ORC, rides": "ORC, rides",
}
"""A shape's name in the table of landed rows -> its name in the table of rows."""

LEFT, TOP, ROW, WIDTH = 250, 62, 26, 560
LOW, HIGH = 0.25, 32.0

HEAD = "Speedup over Spark's file source (higher is better, 1 is equal)"
STYLE = """
  text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .panel { fill: #ffffff; } .table { fill: #2b6cb0; } .rows { fill: #d18616; }
  .grid { stroke: #d0d7de; } .one { stroke: #57606a; stroke-width: 1.5; }
  .title { font-size: 14px; font-weight: 600; }
  .end { text-anchor: end; } .mid { text-anchor: middle; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .panel { fill: #14181e; } .table { fill: #6cb0f5; }
    .rows { fill: #e3a94f; } .grid { stroke: #30363d; } .one { stroke: #aab4be; }
  }
"""


def speedups() -> list[tuple[str, float, float]]:
    """Shape, speedup into a Delta table, speedup as rows: as published."""
    landed = _table("tables.md", "| shape | into Parquet |")
    rows = _table("benchmarks.md", "| shape | input | Sluice |")
    return [
        (shape, float(landed[shape][4].split(", ")[1]), float(rows[other][4]))
        for shape, other in SHAPES.items()
    ]


def _table(page: str, head: str) -> dict[str, list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(re.escape(head) + r".*\n\|[-|]+\n((?:\|.*\n)+)", text)
    if found is None:
        raise SystemExit(f"docs/{page} has no table that begins with {head!r}")
    lines = [line.strip("| ").split(" | ") for line in found[1].splitlines()]
    return {cells[0].strip(): [cell.strip() for cell in cells] for cells in lines}


def chart(bars: list[tuple[str, float, float]]) -> str:
    """Two bars a shape, from 1 to its speedup, on a logarithmic axis."""
    height = TOP + ROW * len(bars) + 34
    bottom = TOP + ROW * len(bars)
    width = LEFT + WIDTH + 40
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t">',
        '<title id="t">Speedup over Spark\'s file source for each shape of data</title>',
        f"<style>{STYLE}</style>",
        f'<rect class="panel" width="{width}" height="{height}" rx="8"/>',
        f'<text class="title" x="20" y="26">{HEAD}</text>',
        '<rect class="table" x="20" y="38" width="12" height="10"/>',
        '<text x="38" y="47">into a Delta table</text>',
        '<rect class="rows" x="160" y="38" width="12" height="10"/>',
        '<text x="178" y="47">as rows</text>',
    ]
    for value in (0.25, 0.5, 1, 2, 4, 8, 16, 32):
        kind, x = "one" if value == 1 else "grid", _x(value)
        parts += [
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom}"/>',
            f'<text class="mid" x="{x}" y="{bottom + 18}">{value:g}</text>',
        ]
    for number, (shape, table, rows) in enumerate(bars):
        y = TOP + ROW * number
        parts += [
            f'<text class="end" x="{LEFT - 10}" y="{y + 14}">{shape}</text>',
            _bar("table", y, table),
            _bar("rows", y + 10, rows),
        ]
    return "\n".join([*parts, "</svg>", ""])


def _bar(kind: str, y: int, value: float) -> str:
    left, right = sorted((_x(1), _x(value)))
    return (
        f'<rect class="{kind}" x="{left}" y="{y}" width="{round(right - left, 1)}" height="9">'
        f"<title>{value:g} times</title></rect>"
    )


def _x(value: float) -> float:
    share = math.log(value / LOW) / math.log(HIGH / LOW)
    return round(LEFT + WIDTH * share, 1)


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(chart(speedups()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
