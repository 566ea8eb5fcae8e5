"""Writes the report of a state directory: one HTML file with its drawings and without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final, Literal

from pyspark_sluice.checkpoint_meta.stores.contract import StateStore
from pyspark_sluice.connector.views.amounts import counted, format_bytes
from pyspark_sluice.masking import masked

from .charts import charts_of
from .figures import Batch, Figures, figures_of


def write_report(state: StateStore, target: str | Path) -> Path:
    """Write one self-contained HTML page about a state; a query that runs on it does not notice.

    Args:
        state: the state directory, see `checkpoint_meta.stores.open_store`.
        target: the local file; what is there is replaced.

    Raises:
        OptionError: the plotting library is not installed, or the source has no files.
        StateError: there is no state, or what is needed of it is damaged.
    """
    figures = figures_of(state)
    path = Path(target)
    path.write_text(page_of(figures, charts_of(figures)), encoding="utf-8")
    return path


_MOST_ROWS: Final = 500
"""Most rows of one table; the view quarantine and `sluice status --json` have all."""

_STYLE: Final = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2430; --faint: #5d6877;
  --line: #d9dee5; --first: #0b63c5; --second: #b8500b; --good: #1a7f37; --watch: #9a6700;
  --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e4e9f0; --faint: #9aa5b4;
  --line: #2c3440; --first: #6cb2ff; --second: #ffab66; --good: #3fb950; --watch: #d29922;
  --bad: #ff7b72; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.5rem; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.verdict { border-left: .4rem solid; padding: .3rem 1rem; font-size: 1.15rem; }
.verdict.good { border-color: var(--good); } .verdict.watch { border-color: var(--watch); }
.verdict.bad { border-color: var(--bad); }
figure { margin: 0; } figure svg { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; vertical-align: top; }
th { white-space: nowrap; overflow-wrap: normal; }
td.number, th.number { text-align: right; white-space: nowrap; }
@media (max-width: 40rem) { body { margin: 1rem auto; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } th, th.number { white-space: normal; } th, td { padding: .3rem; }
  figure svg text { font-size: 21px !important; } }
"""


def page_of(figures: Figures, charts: Mapping[str, str]) -> str:
    """Return the page as one HTML document without external references."""
    drawings = "".join(
        f"<h2>{escape(title)}</h2>\n"
        f'<figure role="img" aria-label="{escape(title)}">{svg}</figure>\n'
        for title, svg in charts.items()
    )
    # A URL may contain a password, and the page is made to be passed on.
    title = f"Sluice: {escape(masked(figures.location))}"
    judged = verdict_of(figures)
    verdict = f'<p class="verdict {judged.level}">{escape(" ".join(judged.sentences))}</p>\n'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{verdict}{_summary(figures)}{drawings}"
        f"{_in_flight(figures)}{_files(figures)}{_quarantine(figures)}</body>\n</html>\n"
    )


def _summary(figures: Figures) -> str:
    batches = figures.batches
    pairs = {
        "query id": figures.query_id or "unknown until Spark has finished a task",
        "owner": masked(str(figures.owner)),
        "report written": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }
    if batches:
        first, last = batches[0], batches[-1]
        when = f"{first.planned:%Y-%m-%d %H:%M:%S} to {last.planned:%Y-%m-%d %H:%M:%S} UTC"
        pairs |= {
            "checkpoints retained": f"{first.checkpoint} to {last.checkpoint}",
            "planned": when,
            "rows read": f"{sum(batch.rows for batch in batches):,}",
            "bytes read": format_bytes(sum(batch.bytes for batch in batches)),
            "backlog": f"{counted(last.backlog_files, 'file')}, {format_bytes(last.backlog_bytes)}",
        }
    pairs["in quarantine"] = counted(len(figures.quarantine), "split")
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs.items()
    )
    return f"<dl>{listed}</dl>\n"


def _in_flight(figures: Figures) -> str:
    heads = ("checkpoint", "reader", "splits", "committed", "held under")
    rows = [
        (
            str(link["checkpoint"]),
            str(reader["reader"]),
            f"{reader['splits']:,}",
            "yes" if reader["committed"] else "no",
            "" if reader["heldUnder"] is None else str(reader["heldUnder"]),
        )
        for link in figures.in_flight
        for reader in link["readers"]
    ]
    if not rows:
        return "<h2>In flight</h2>\n<p>Nothing: every batch has finished.</p>\n"
    return _table("In flight", heads, rows[:_MOST_ROWS], numbers=(0, 1, 2, 4))


def _files(figures: Figures) -> str:
    rows = [(s, f"{count:,}", format_bytes(size)) for s, (count, size) in figures.files.items()]
    return _table("Files", ("state", "files", "size"), rows, numbers=(1, 2))


def _quarantine(figures: Figures) -> str:
    if not figures.quarantine:
        bad = sum(batch.bad_records for batch in figures.batches)
        records = f" {counted(bad, 'bad record')} not read." if bad else ""
        return f"<h2>Quarantine</h2>\n<p>No split was given up on.{records}</p>\n"
    shown = figures.quarantine[:_MOST_ROWS]
    heads = ("path", "reason", "attempts", "checkpoint")
    rows = [[masked(str(row[key])) for key in heads] for row in shown]
    more = len(figures.quarantine) - len(shown)
    rest = f"<p>And {more:,} more: see the view quarantine.</p>\n" if more else ""
    return _table("Quarantine", heads, rows) + rest


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()
) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        kinds = [' class="number"' if at in numbers else "" for at in range(len(texts))]
        # Names of files come from a bucket that others write to, so each text is escaped.
        marked = zip(kinds, texts, strict=True)
        return "".join(f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in marked)

    body = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in rows)
    head = f"<thead><tr>{cells('th', heads)}</tr></thead>"
    table = f"<table>{head}<tbody>\n{body}</tbody></table>"
    return f'<h2>{escape(title)}</h2>\n<div class="scroll">{table}</div>\n'


_RECENT: Final = 10
"""Batches by which a backlog is judged."""

Level = Literal["good", "watch", "bad"]
_WORSE: Final[dict[Level, int]] = {"good": 0, "watch": 1, "bad": 2}


@dataclass(frozen=True)
class Verdict:
    """The worst of all that was found, and a sentence for each."""

    level: Level
    sentences: tuple[str, ...]


def verdict_of(figures: Figures) -> Verdict:
    """Judge a state by its figures."""
    findings = list(_found(figures))
    worst = max((level for level, _ in findings), key=_WORSE.__getitem__)
    return Verdict(worst, tuple(sentence for _, sentence in findings))


def _found(figures: Figures) -> Iterator[tuple[Level, str]]:
    yield _life(figures)
    if figures.batches:
        yield _backlog(figures.batches)
        yield from _bad_records(figures.batches)
    if figures.quarantine:
        yield "bad", f"{counted(len(figures.quarantine), 'split')} in quarantine."
    skipped, _ = figures.files.get("skipped", (0, 0))
    if skipped:
        yield "watch", f"{counted(skipped, 'file')} skipped."


def _life(figures: Figures) -> tuple[Level, str]:
    life = figures.owner.runs
    if life == "running":
        return "good", "The query runs."
    if life == "unknown":
        return "watch", "It is not known whether the query runs."
    # A run that has read everything there was has ended as it should.
    if figures.in_flight and not figures.has_finished:
        return "bad", "No query runs, and a batch is not finished."
    return "watch", "No query runs."


def _bad_records(batches: Sequence[Batch]) -> Iterator[tuple[Level, str]]:
    bad = sum(batch.bad_records for batch in batches)
    if bad:
        whole = sum(batch.bad_records > 0 and not batch.rows for batch in batches)
        share = bad / (bad + sum(batch.rows for batch in batches))
        sentence = f"{counted(bad, 'bad record')}, {share:.1%} of all, not read"
        if whole:
            yield "bad", f"{sentence}; {whole:,} of {counted(len(batches), 'batch')} had no other."
        else:
            yield "watch", f"{sentence}."


def _backlog(batches: Sequence[Batch]) -> tuple[Level, str]:
    recent = batches[-_RECENT:]
    first, last = recent[0].backlog_bytes, recent[-1].backlog_bytes
    if not recent[-1].backlog_files:
        return "good", "There is no backlog."
    backlog = f"The backlog is {counted(recent[-1].backlog_files, 'file')}, {format_bytes(last)}"
    if last > first:
        return "watch", f"{backlog}, and has grown over the last {counted(len(recent), 'batch')}."
    return "good", f"{backlog}, and has not grown over the last {counted(len(recent), 'batch')}."
