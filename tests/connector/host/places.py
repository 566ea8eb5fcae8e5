"""The places of the product that make an error with a remedy, by module and sentence."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache

from pyspark_sluice import errors
from pyspark_sluice.tests.repository import ROOT

_PACKAGES = ("errors.py", "connector", "enumerator", "reader", "checkpoint_meta", "tables")
_CLASSES = {name for name in errors.__all__ if name.endswith(("Error", "Unavailable"))}


@cache
def places() -> Counter[str]:
    """`module.py: sentence` -> how often; a blank of the sentence is `{}`."""
    found = Counter[str]()
    for path in ROOT.rglob("*.py"):
        module = path.relative_to(ROOT)
        if module.parts[0] in _PACKAGES:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _CLASSES:
                    found[f"{module.as_posix()}: {_sentence(node)}"] += 1
    return found


def _sentence(call: ast.Call) -> str:
    if not call.args or isinstance(call.args[0], ast.Starred):
        return "{}"
    what = call.args[0]
    if isinstance(what, ast.IfExp):
        what = what.body
    if isinstance(what, ast.BinOp):
        what = what.left
    if isinstance(what, ast.Constant):
        return str(what.value)
    if isinstance(what, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in what.values)
        return "".join(map(str, parts))
    return "{}"


def named(text: str) -> str:
    """The one place whose name contains this text.

    Raises:
        AssertionError: it has none, or several.
    """
    matches = [place for place in places() if text in place]
    assert len(matches) == 1, f"{text!r} is in {len(matches)} places: {matches[:5]}"
    return matches[0]


def pattern(place: str) -> str:
    """A regular expression for the sentence of a place."""
    return re.escape(place.partition(": ")[2]).replace(r"\{\}", "(?s:.*)")
