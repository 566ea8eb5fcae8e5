"""Draws the figures of a report, as SVG that is part of the page and takes its colours from it.

pygal, because it draws without a browser, a script or a font of its own, in files of some ten
kilobytes, and takes any CSS colour: so one drawing is readable in light and in dark. (Vega brings
a megabyte of script; Matplotlib writes colours and glyphs into its paths.)
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark_sluice.errors import OptionError

from .figures import Batch, Figures

_SCRIPT: Final = re.compile(r"<script\b.*?</script>", re.DOTALL)
_GAP: Final = 0.05
"""A part of the time that is drawn: a query that is idle for longer than that interrupts a line."""

_LABEL: Final = 9
"""Characters of each label of a vertical axis, so that all plots begin at the same place."""

_NAME: Final = 16
"""The same for states of files, of which the longest is quarantined."""


def charts_of(figures: Figures) -> Mapping[str, str]:
    """Title -> SVG; only where there is anything to draw.

    Raises:
        OptionError: the plotting library is not installed.
    """
    batches = figures.batches
    through = [(batch, batch.seconds) for batch in batches if batch.seconds is not None]
    read = [batch for batch, _ in through]
    lines: dict[str, tuple[Sequence[Batch], dict[str, list[float]]]] = {
        "Throughput: rows per second": (
            read,
            # 0 seconds where the executor's clock is behind the driver's.
            {"rows per second": [batch.rows / max(took, 0.001) for batch, took in through]},
        ),
        "Batch durations: seconds from plan to last reader": (
            read,
            {"seconds": [took for _, took in through]},
        ),
        "Skew: seconds of work of the slowest and the mean reader": (
            read,
            {"slowest": [b.slowest for b in read], "mean": [b.mean for b in read]},
        ),
        "Backlog: files found and in no batch yet": (
            batches,
            {"files": [batch.backlog_files for batch in batches]},
        ),
    }
    drawings = {}
    if batches:
        end = max(b.planned.timestamp() + (b.seconds or 0.0) for b in batches)
        axis = TimeAxis.of(batches[0].planned.timestamp(), end)
        drawings = {name: _line(axis, *line) for name, line in lines.items() if line[0]}
    if figures.files:
        drawings["Files by state"] = _bars({s: count for s, (count, _) in figures.files.items()})
    return drawings


def _line(axis: TimeAxis, batches: Sequence[Batch], series: Mapping[str, Iterable[float]]) -> str:
    chart = _pygal().XY(
        **_looks(),
        show_legend=len(series) > 1,
        include_x_axis=True,
        allow_interruptions=True,
        xrange=(axis.begin, axis.end),
        x_value_formatter=axis.formatted,
        value_formatter=_padded,
        max_scale=5,
        margin_right=50,
    )
    chart.x_labels = axis.ticks
    for name, values in series.items():
        chart.add(name, list(_points(axis, batches, values)))
    return _svg(chart)


def _points(
    axis: TimeAxis, batches: Sequence[Batch], values: Iterable[float]
) -> Iterator[tuple[float, float | None]]:
    """A value at the cut of each batch, and none where the query was idle."""
    idle = _GAP * (axis.end - axis.begin)
    ended: float | None = None
    for batch, value in zip(batches, values, strict=True):
        cut = batch.planned.timestamp()
        if ended is not None and cut - ended > idle:
            # pygal draws a line through every gap that is not marked.
            yield ended, None
        yield cut, round(value, 3)
        ended = cut + (batch.seconds or 0.0)


def _padded(value: float) -> str:
    # No-break spaces: others would be drawn as one.
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
    return text.rjust(_LABEL, "\u00a0")


def _bars(counts: Mapping[str, int]) -> str:
    chart = _pygal().HorizontalBar(**_looks(), show_legend=False, print_values=True)
    chart.x_labels = [name.rjust(_NAME, "\u00a0") for name in counts]
    chart.add("files", list(counts.values()))
    return _svg(chart)


def _svg(chart: Any) -> str:
    text: str = chart.render(is_unicode=True)
    # The settings of its tooltips, which nothing here asks for.
    return _SCRIPT.sub("", text)


def _looks() -> dict[str, Any]:
    style = _pygal().style.Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--faint)",
        guide_stroke_color="var(--faint)",
        major_guide_stroke_color="var(--faint)",
        colors=("var(--first)", "var(--second)"),
        font_family="system-ui, sans-serif",
        label_font_size=13,
        major_label_font_size=13,
        legend_font_size=13,
        value_font_size=13,
        value_colors=("var(--ink)", "var(--ink)"),
    )
    return {
        "style": style,
        # By default pygal's drawings load a script for tooltips from its web site.
        "js": (),
        "width": 900,
        "height": 240,
        # The drawing becomes a part of a page of HTML.
        "disable_xml_declaration": True,
        "truncate_label": -1,
        "dots_size": 3,
        "stroke_style": {"width": 1.5},
        "margin": 10,
        "legend_at_bottom": True,
        "no_data_text": "nothing yet",
    }


def _pygal() -> Any:
    try:
        import pygal
    except ImportError as error:
        raise OptionError(
            "the report cannot be drawn", "", "no package pygal", "pygal", "pip install pygal"
        ) from error
    # It puts a finder of plug-ins, which we do not use, before every import of the process: one of
    # the kind that Python gave up, so that each import that fails comes with a warning.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    return pygal


_MOST_LABELS: Final = 6
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS: Final = (
    *(0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 91, 364)),
)


@dataclass(frozen=True)
class TimeAxis:
    """From `begin` to `end`, seconds since 1970, with a label every `step` seconds."""

    begin: float
    end: float
    step: float

    @classmethod
    def of(cls, begin: float, end: float) -> TimeAxis:
        """The axis for these moments; it is a second long at least."""
        # A single batch would give an axis without a length.
        end = max(end, begin + 1)
        fitting = (step for step in _STEPS if (end - begin) / step < _MOST_LABELS)
        return cls(begin, end, next(fitting, (end - begin) / _MOST_LABELS))

    @property
    def ticks(self) -> Sequence[float]:
        """Return where the labels are."""
        first, last = math.ceil(self.begin / self.step), math.floor(self.end / self.step)
        return [number * self.step for number in range(first, last + 1)]

    def formatted(self, moment: float) -> str:
        """The label of a moment, as short as the others allow."""
        at = datetime.fromtimestamp(moment, UTC)
        if self.step >= _DAY:
            return f"{at:%Y-%m-%d}"
        if self.end - self.begin >= _DAY:
            return f"{at:%m-%d %H:%M}"
        if self.step >= _MINUTE:
            return f"{at:%H:%M}"
        return f"{at:%H:%M:%S}" if self.step >= 1 else f"{at:%H:%M:%S.}{at.microsecond // 100_000}"
