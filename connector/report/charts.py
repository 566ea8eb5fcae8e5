"""Draws the figures of a report, as SVG that is part of the page and takes its colours from it.

pygal, because it draws without a browser, a script or a font of its own, in files of some ten
kilobytes, and takes any CSS colour: so one drawing is readable in light and in dark. (Vega brings
a megabyte of script; Matplotlib writes colours and glyphs into its paths.)

Not here: the figures (`figures.py`), the page (`writer.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...errors import OptionError
from .figures import Batch, Figures

_MOST_LABELS: Final = 8
_SCRIPT: Final = re.compile(r"<script\b.*?</script>", re.DOTALL)
_MIB: Final = 1024 * 1024


def charts_of(figures: Figures) -> Mapping[str, str]:
    """Title -> SVG; only where there is anything to draw.

    Raises:
        OptionError: the plotting library is not installed.
    """
    batches = figures.batches
    through = [batch for batch in batches if batch.seconds is not None]
    found = {}
    if through:
        rate = [batch.rows / max(batch.seconds or 0.0, 0.001) for batch in through]
        size = [batch.bytes / _MIB / max(batch.seconds or 0.0, 0.001) for batch in through]
        found["Throughput: rows per second"] = _line(through, {"rows per second": rate})
        found["Throughput: MiB per second"] = _line(through, {"MiB per second": size})
        seconds = [batch.seconds or 0.0 for batch in through]
        found["Batch durations: seconds from cut to last reader"] = _line(
            through, {"seconds": seconds}
        )
        found["Skew: seconds of work of the slowest and the mean reader"] = _line(
            through, {"slowest": [b.slowest for b in through], "mean": [b.mean for b in through]}
        )
    if batches:
        files = [float(batch.backlog_files) for batch in batches]
        found["Backlog: files found and in no batch yet"] = _line(batches, {"files": files})
    if figures.files:
        found["Files by state"] = _bars({s: count for s, (count, _) in figures.files.items()})
    return found


def _line(batches: Sequence[Batch], series: Mapping[str, Iterable[float]]) -> str:
    chart = _pygal().Line(**_looks(), show_legend=len(series) > 1, include_x_axis=True)
    chart.x_labels = [f"{batch.planned:%H:%M:%S} ({batch.checkpoint})" for batch in batches]
    step = max(1, -(-len(batches) // _MOST_LABELS))
    chart.x_labels_major = chart.x_labels[::step]
    for name, values in series.items():
        chart.add(name, [round(value, 3) for value in values])
    return _svg(chart)


def _bars(counts: Mapping[str, int]) -> str:
    chart = _pygal().HorizontalBar(**_looks(), show_legend=False, print_values=True)
    chart.x_labels = list(counts)
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
        value_colors=("var(--ink)", "var(--ink)"),
    )
    return {
        "style": style,
        "js": (),
        "width": 900,
        "height": 260,
        "disable_xml_declaration": True,
        "show_minor_x_labels": False,
        "truncate_label": -1,
        "dots_size": 2,
        "margin": 10,
        "legend_at_bottom": True,
        "no_data_text": "nothing yet",
    }


def _pygal() -> Any:
    try:
        import pygal
    except ImportError as error:
        raise OptionError(
            "the report cannot be drawn",
            "",
            "no package pygal",
            "the plotting library",
            "Install it: pip install 'pyspark-sluice[report]'",
        ) from error
    # It puts a finder of plug-ins, which we do not use, before every import of the process: one of
    # the kind that Python gave up, so that each import that fails comes with a warning.
    sys.meta_path[:] = [of for of in sys.meta_path if type(of).__module__ != "pygal"]
    return pygal
