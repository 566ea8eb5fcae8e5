"""Every option of a stream has a test of what it changes.

Options of reading have a test of their own (`reader/files/formats/test_registry.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.repository import ROOT

CASES = [
    Path(__file__).with_name(f"test_{name}.py") for name in ("options_have_effects", "batches")
]
"""Their tests pass options to a stream, and rows tell the effect."""


def test_every_option_is_shown_to_have_an_effect():
    fields = SluiceOptions.model_fields
    missing = {str(fields[name].alias) for name in set(fields) - set(ReaderOptions.model_fields)}
    cases = "".join(path.read_text(encoding="utf-8") for path in CASES)
    missing -= {name for name in missing if f'"{name}"' in cases or f"{name}=" in cases}
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for option in _marked(text) if "effect_of" in text else ():
            assert text.count(option) > 1, f"{path} has nothing about {option} but the marker"
            missing.discard(option)
    assert not missing


def _marked(text: str) -> Iterator[str]:
    """The options that tests say to show, with the marker `effect_of`."""
    for node in ast.walk(ast.parse(text)):
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.effect_of":
                yield from map(ast.literal_eval, mark.args)
