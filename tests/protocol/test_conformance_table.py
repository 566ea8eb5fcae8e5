"""`CONFORMANCE.md` is whole: its tests exist, and each row has one or a reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_table_of_conformance_names_exists():
    table = (_ROOT / "tests/protocol/CONFORMANCE.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", table)
    assert len(named) > 50
    functions: dict[str, set[str]] = {}
    for path, name in named:
        if path not in functions:
            tree = ast.parse((_ROOT / path).read_text(encoding="utf-8"))
            functions[path] = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert name in functions[path], f"{path} has no {name}"


def test_every_row_of_the_table_says_where_it_passes_or_why_it_does_not_apply():
    table = (_ROOT / "tests/protocol/CONFORMANCE.md").read_text(encoding="utf-8")
    scenarios = 0
    for block in re.split(r"\n(?!\|)", table):
        heading, *rows = [line for line in block.splitlines() if line.startswith("|")] or [""]
        if not heading.startswith("| Flink's scenario"):
            continue
        for row in rows[1:]:
            scenarios += 1
            assert "::test_" in row or "does not apply: " in row, row
    assert scenarios > 50
