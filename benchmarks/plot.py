"""Draws curves as SVG, with nothing but the standard library.

Not here: what is measured (`scale.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_CURVES = (
    ("resident, MiB", "first", "resident memory, first listing (MiB)"),
    ("resident after restore, MiB", "later", "resident memory after a restore (MiB)"),
    ("restore, CPU s", "later", "restore (CPU s)"),
    ("checkpoint, CPU ms", "later", "checkpoint with 1,000 new files (CPU ms)"),
    ("look-up of 1,000, ms", "later", "look-up of 1,000 names (CPU ms)"),
    ("checkpoint, bytes", "later", "checkpoint with 1,000 new files (bytes)"),
    ("written, bytes a file", "first", "written to the store for a new file (bytes)"),
    ("idle latestOffset, CPU ms", "later", "idle latestOffset (CPU ms)"),
    ("busy latestOffset with its checkpoint, ms", "later", "latestOffset with a checkpoint (ms)"),
)
"""What is drawn: its name, the step that measures it, and its title."""

_WIDTH, _HEIGHT, _LEFT, _TOP = 260, 150, 60, 40

_STYLE = """<style>
  text { fill: #1f2328; stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
  .panel { fill: #ffffff; } .axis { fill: none; stroke: #57606a; }
  .line { fill: none; stroke: #1f5fa8; stroke-width: 2; } .dot { fill: #1f5fa8; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; stroke: #14181e; } .panel { fill: #14181e; } .axis { stroke: #aab4be; }
    .line { stroke: #6cb0f5; } .dot { fill: #6cb0f5; }
  }
</style>"""
"""The colours of docs/pictures/checkpoint.svg; labels keep lines away from their letters."""


def plot(found: Sequence[Mapping[str, Any]]) -> str:
    """One small drawing for each figure, over the number of files in powers of ten."""
    panels = [
        _panel(index, title, [(of["files"], _sum(of[part][name])) for of in found])
        for index, (name, part, title) in enumerate(_CURVES)
    ]
    width, height = 2 * (_WIDTH + _LEFT + 30), -(-len(panels) // 2) * (_HEIGHT + _TOP + 40)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">'
    )
    back = f'<rect class="panel" width="{width}" height="{height}" rx="8"/>'
    return "\n".join([head, _STYLE, back, *panels, "</svg>", ""])


def _sum(value: Any) -> float:
    return round(float(sum(value.values()) if isinstance(value, dict) else value), 4)


def _label(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _panel(index: int, title: str, points: Sequence[tuple[int, float]]) -> str:
    x0 = _LEFT + (index % 2) * (_WIDTH + _LEFT + 30)
    y0 = _TOP + (index // 2) * (_HEIGHT + _TOP + 40)
    top = max(value for _, value in points) * 1.15 or 1.0
    low, high = (math.log10(points[at][0]) for at in (0, -1))

    def x(files: int) -> float:
        return x0 + _WIDTH * (math.log10(files) - low) / ((high - low) or 1)

    def y(value: float) -> float:
        return y0 + _HEIGHT * (1 - value / top)

    line = " ".join(f"{x(files):.1f},{y(value):.1f}" for files, value in points)
    marks = [
        f'<circle cx="{x(files):.1f}" cy="{y(value):.1f}" r="3" class="dot"/>'
        f'<text x="{x(files):.1f}" y="{y(value) - 7:.1f}" text-anchor="middle">'
        f"{_label(value)}</text>"
        f'<text x="{x(files):.1f}" y="{y0 + _HEIGHT + 15}" text-anchor="middle">{files:,}</text>'
        for files, value in points
    ]
    return "\n".join(
        [
            f'<text x="{x0}" y="{y0 - 12}" font-weight="bold">{escape(title)}</text>',
            f'<path d="M{x0},{y0}V{y0 + _HEIGHT}H{x0 + _WIDTH}" class="axis"/>',
            f'<polyline points="{line}" class="line"/>',
            *marks,
        ]
    )
