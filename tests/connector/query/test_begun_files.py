"""Options that change while a file is read in part: continued rightly, or refused."""

from __future__ import annotations

import json

import pytest

import pyspark_sluice
from pyspark_sluice.errors import OptionError

LINES = "".join(f'{{"id": "{n}"}}\n' for n in range(6))
CSV = "id\n" + "".join(f"{n}\n" for n in range(6))
XML = "<r>" + "".join(f"<row><id>{n}</id></row>" for n in range(6)) + "</r>"
COMMENTS = "id\n0\n1\n2\n3\n#\n4\n5\n"
BAD = "id\n0\nx,y\n1\nx,y\n2\n3\n4\n5\n"
ROWS = [str(n) for n in range(6)]


class Stopped(Exception):
    """The sink fails after its first batch."""


class Run:
    """Runs over one file, whose sink may stop after the first batch."""

    def __init__(self, root, kind, text):
        (root / "in").mkdir()
        (root / "in" / f"1.{kind}").write_text(text)
        self.root, self.kind, self.batches = root, kind, {}

    def __call__(self, stops=False, **options):
        def sink(batch, number):
            if stops and number:
                raise Stopped
            self.batches[number] = batch.reader().read_all().column("id").to_pylist()

        pyspark_sluice.run(
            str(self.root / "in"),
            checkpoint=str(self.root / "ck"),
            to=sink,
            writeTo=str(self.root / "files"),
            **{"format": self.kind, "schema": "id string", "maxRowsPerTrigger": 2, **options},
        )

    def rows(self):
        return [row for number in sorted(self.batches) for row in self.batches[number]]


HEADER, MULTI = {"header": "true"}, {"header": "true", "multiLine": "true"}


@pytest.mark.parametrize(
    ("kind", "text", "first", "then", "named"),
    [
        ("csv", CSV, HEADER, MULTI, "multiLine"),
        ("csv", CSV, MULTI, HEADER, "multiLine"),
        ("csv", CSV, MULTI, {"multiLine": "true"}, "header"),
        ("csv", BAD, {**MULTI, "mode": "DROPMALFORMED"}, {**MULTI, "mode": "PERMISSIVE"}, "mode"),
        ("csv", COMMENTS, {**MULTI, "comment": "#"}, MULTI, "comment"),
        ("json", LINES, {}, {"multiLine": "true"}, "multiLine"),
        ("json", json.dumps([{"id": n} for n in ROWS]), {"multiLine": "true"}, {}, "multiLine"),
        ("xml", XML, {"rowTag": "row"}, {"rowTag": "r"}, "rowTag"),
    ],
)
def test_a_file_that_was_begun_is_not_continued_at_another_place(
    tmp_path, kind, text, first, then, named
):
    run = Run(tmp_path, kind, text)
    with pytest.raises(Stopped):
        run(stops=True, **first)
    with pytest.raises(OptionError, match=rf"(?s){named}: a file that was read in part.*1\.{kind}"):
        run(**then)
    run(**first)
    assert run.rows() == ROWS
    run(**then)  # Nothing is begun any more.


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (HEADER, {**HEADER, "mode": "PERMISSIVE"}),
        (MULTI, {**MULTI, "mode": "DROPMALFORMED"}),
        (MULTI, {**MULTI, "badRecordsPath": "bad"}),
        (HEADER, {"header": "false"}),
        (MULTI, {**MULTI, "filter": "id IS NOT NULL"}),
    ],
)
def test_what_leaves_positions_alone_may_change_in_the_middle_of_a_file(tmp_path, first, then):
    run = Run(tmp_path, "csv", CSV)
    with pytest.raises(Stopped):
        run(stops=True, **first)
    if "badRecordsPath" in then:
        then = {**then, "badRecordsPath": str(tmp_path / "bad")}
    run(**then)
    assert run.rows() == ROWS


def test_parts_that_were_cut_are_not_read_as_whole_files(tmp_path):
    run = Run(tmp_path, "json", LINES)
    cut = {"maxRowsPerTrigger": 1000, "maxBytesPerTrigger": 26}
    with pytest.raises(Stopped):
        run(stops=True, **cut)
    run.batches.clear()
    with pytest.raises(OptionError, match="multiLine: a file that was "):
        run(multiLine="true")
    run(**cut)
    assert run.rows() == ROWS[3:]
