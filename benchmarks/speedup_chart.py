"""Draws the README's chart: how many times as fast as Spark's file source, for each shape of data.

Not here: what it shows, which `readme_row.py` measures.
"""

from __future__ import annotations

import math
from typing import NamedTuple
from xml.sax.saxutils import escape


class Bars(NamedTuple):
    """The two bars of a shape."""

    shape: str
    table: float
    """Speedup into a Delta table."""

    rows: float
    """Speedup as rows."""


LEFT, TOP, ROW, WIDTH = 250, 62, 26, 560

HEAD = "Speedup over Spark's file source (higher is better, 1 is equal; logarithmic scale)"
STYLE = """
  text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .panel { fill: #ffffff; } .table { fill: #2b6cb0; } .rows { fill: #d18616; }
  .grid { stroke: #d0d7de; } .one { stroke: #57606a; stroke-width: 1.5; }
  .note { font-size: 11px; }
  .title { font-size: 14px; font-weight: 600; }
  .end { text-anchor: end; } .mid { text-anchor: middle; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .panel { fill: #14181e; } .table { fill: #6cb0f5; }
    .rows { fill: #e3a94f; } .grid { stroke: #30363d; } .one { stroke: #aab4be; }
  }
"""


def chart(bars: list[Bars], measured: str) -> str:
    """Two bars a shape, from 1 to its speedup, on a logarithmic axis between powers of two.

    `measured` is a line below them: when, and on which machine.
    """
    axis = _axis([speedup for bar in bars for speedup in (bar.table, bar.rows)])
    height = TOP + ROW * len(bars) + 56
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
    for power in axis:
        value = 2.0**power
        kind, x = "one" if value == 1 else "grid", _x(value, axis)
        parts += [
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{bottom}"/>',
            f'<text class="mid" x="{x}" y="{bottom + 18}">{value:g}</text>',
        ]
    for number, (shape, table, rows) in enumerate(bars):
        y = TOP + ROW * number
        parts += [
            f'<text class="end" x="{LEFT - 10}" y="{y + 14}">{escape(shape)}</text>',
            _bar("table", y, table, axis),
            _bar("rows", y + 10, rows, axis),
        ]
    note = f'<text class="note" x="20" y="{height - 12}">{escape(measured)}</text>'
    return "\n".join([*parts, note, "</svg>", ""])


def _axis(speedups: list[float]) -> range:
    """Powers of two around all speedups and 1."""
    powers = [0.0, *map(math.log2, speedups)]
    return range(math.floor(min(powers)), math.ceil(max(powers)) + 1)


def _bar(kind: str, y: int, value: float, axis: range) -> str:
    left, right = sorted((_x(1, axis), _x(value, axis)))
    return (
        f'<rect class="{kind}" x="{left}" y="{y}" width="{round(right - left, 1)}" height="9">'
        f"<title>{value:.3g} times</title></rect>"
    )


def _x(value: float, axis: range) -> float:
    share = (math.log2(value) - axis[0]) / max(1, axis[-1] - axis[0])
    return round(LEFT + WIDTH * share, 1)
