"""The files of the project as a reader meets them: of a length to be read, and each on its own."""

from __future__ import annotations

import ast
import re

from pyspark_sluice.tests.repository import ROOT, files

LONGEST = 400
"""Lines of a module: one that is longer hides a second decision."""


def _modules():
    return [path for path in files("*.py") if "build" not in path.relative_to(ROOT).parts]


def test_no_module_is_longer_than_four_hundred_lines():
    lengths = {path: path.read_text(encoding="utf-8").count("\n") for path in _modules()}
    assert len(lengths) > 500
    assert {str(path): count for path, count in lengths.items() if count > LONGEST} == {}


def _imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_no_module_imports_anything_of_a_module_of_tests():
    texts = {path: path.read_text(encoding="utf-8") for path in _modules()}
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        # Parsing takes long, and most name no such module.
        if re.search(r"(?<!def )\btest_", text)
        for name in _imported(ast.parse(text))
        if name.rpartition(".")[2].startswith("test_")
    ] == []
