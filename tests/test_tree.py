"""The files of the project as a reader meets them: most of a length to be read, each on its own."""

import ast
import re
import statistics

from pyspark_sluice.tests.repository import ROOT, files

MEDIAN, NINE_OF_TEN = 170, 345
"""Most lines of half of the modules, and of nine tenths: a bound for each would make unrelated
subjects share a module."""


def _modules():
    return [path for path in files("*.py") if "build" not in path.relative_to(ROOT).parts]


def test_most_modules_are_of_a_length_to_be_read():
    lengths = [path.read_text(encoding="utf-8").count("\n") for path in _modules()]
    assert len(lengths) > 500
    assert statistics.median(lengths) <= MEDIAN
    assert statistics.quantiles(lengths, n=10)[-1] <= NINE_OF_TEN


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
