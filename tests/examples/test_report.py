"""The report: what is on the page, and that it is self-contained."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pyspark_sluice.connector.views.catalog import table_of
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.examples.demo.report import charts
from pyspark_sluice.examples.demo.report.__main__ import main
from pyspark_sluice.examples.demo.report.figures import figures_of
from pyspark_sluice.tests.connector.queries import Query

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """Elements, their attributes, and the text of the tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.cells: list[str] = []
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._cell = tag == "td"
        if self._cell:
            self.cells.append("")
        urls = [v for k, v in attrs if k in ("src", "href", "xlink:href", "data") and v]
        self.fetched += [url for url in urls if not url.startswith("#")]

    def handle_endtag(self, tag):
        self._cell = self._cell and tag != "td"

    def handle_data(self, data):
        if self._cell:
            self.cells[-1] += data


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Six batches of four files; one of them is torn, and more land than are read."""
    root = tmp_path_factory.mktemp("report") / "landing <b>"
    query = Query(
        root,
        mode="FAILFAST",
        onSplitError="return",
        settings={"limits": BatchLimits(files=4), "parallelism": 3, "max_split_attempts": 1},
    )
    landed = 0
    for number in range(6):
        for _ in range(4 + number % 3):
            torn = "{ torn <script>alert(1)</script>\n" if landed == 6 else None
            query.land(f".{landed}", rows=20 + 300 * (landed % 5), text=torn)
            (query.data / f".{landed}").rename(query.data / f"{landed:05}.json")
            landed += 1
        ref = query.plan()
        query.read(ref, readers=(0, 1, 2))
        query.done = ref
    query.plan()
    query.coordinator.close()
    return query.store


def test_the_figures_are_those_of_what_was_ingested(state):
    figures = figures_of(state)
    assert [batch.checkpoint for batch in figures.batches] == list(range(1, 8))
    done = figures.batches[:6]
    table = table_of(state, "files").to_pylist()
    lines = [len(Path(f["path"]).read_text().splitlines()) for f in table if f["state"] == "read"]
    assert sum(batch.rows for batch in done) == sum(lines) > 5_000
    assert all(batch.seconds is not None and batch.seconds >= 0 for batch in done)
    assert all(batch.slowest >= batch.mean for batch in done)
    # On a busy machine a batch may consist of the torn file alone.
    assert all((batch.mean > 0) == (batch.rows > 0) for batch in done)
    assert figures.batches[6].seconds is None
    counts = {name: count for name, (count, _) in figures.files.items()}
    assert (counts["quarantined"], counts["read"]) == (1, len(lines))
    # After the last cut everything is known, and what is pending is the backlog.
    assert figures.batches[6].backlog_files == counts.get("pending", 0)
    # What landed with it may have filled the batch before.
    assert [row["checkpoint"] for row in figures.quarantine] in ([2], [3])


def test_the_page_needs_nothing_else_and_shows_its_input_as_text(state, tmp_path, capsys):
    target = tmp_path / "out.html"
    assert main([state.location, str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    page = Page(text)
    assert page.tags.count("figure") == page.tags.count("svg") == 5
    assert "script" not in page.tags
    assert page.fetched == []
    assert "@import" not in text
    assert re.findall(r"url\((?!['\"]?#)", text) == []
    assert any("malformed record" in cell for cell in page.cells)
    assert any("landing <b>/data/00006.json" in cell for cell in page.cells)
    assert "prefers-color-scheme: dark" in text
    assert len(text) < 400_000
    figures = figures_of(state)
    rows = sum(batch.rows for batch in figures.batches)
    assert "<dt>query id</dt><dd>query</dd>" in text
    assert f"<dt>rows read</dt><dd>{rows:,}</dd>" in text
    assert "<dt>checkpoints retained</dt><dd>1 to 7</dd>" in text
    assert text.count("Throughput") == 2, "one title and one label: rows per second"
    # Which reader holds what, for each checkpoint.
    newest = figures.in_flight[-1]
    assert newest["checkpoint"] == 7
    cells = Page(text.partition("<h2>In flight</h2>")[2].partition("</table>")[0]).cells
    at = 5 * sum(len(link["readers"]) for link in figures.in_flight[:-1])
    assert cells[at : at + 2] == ["7", str(newest["readers"][0]["reader"])]
    assert cells[at + 3] == "no"
    assert len(cells) == 5 * sum(len(link["readers"]) for link in figures.in_flight)
    assert main([str(tmp_path / "nothing"), str(target)]) == 1
    assert "no state of a sluice source" in capsys.readouterr().err


def test_large_figures_are_written_out():
    assert [charts._padded(of).strip() for of in (1_500_000, 1234.5, 0.0625)] == [
        "1,500,000", "1,234", "0.0625"
    ]  # fmt: skip


def test_drawing_leaves_python_s_imports_as_they_are():
    assert "<svg" in charts._bars({"done": 1})
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
