"""What an error says of one option: our words for what pydantic found, and near names.

Not here: what has to fit together (the modules of validation next to this one).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

# A wrong hint is worse than none: a name is near if it is the other one, mistyped.
_ALIKE, _CHARACTERS = 0.85, 2


def near_name(name: str, names: Mapping[str, str]) -> str:
    """A question after the option that was probably meant, to be appended; empty if none is near.

    Args:
        name: what the user wrote.
        names: lower-case spelling -> spelling.
    """
    bare = name.lower().removeprefix("cloudfiles.").replace("_", "")
    alike = [other for other in names if abs(len(other) - len(bare)) <= _CHARACTERS]
    near = [bare] if bare in names else difflib.get_close_matches(bare, alike, 1, _ALIKE)
    return f"; did you mean {names[near[0]]}?" if near else ""


def problem_of(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors about an option, in this package's words.

    This package's validators say in their `ValueError` what they expect; one of the whole model
    says all.
    """
    if not error["loc"]:
        return _expected(error)
    name = str(error["loc"][0])
    shown = "(hidden)" if name == "storageOptions" else repr(error["input"])
    return f"{name}: found {shown}; expected: {_expected(error)}"


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string_pattern": "letters, digits and . _ -, beginning with a letter or a digit",
    "string": "text",
}
"""Beginning of pydantic's name of an error -> what it expects."""

_BOUNDS = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
}


def _expected(error: Mapping[str, Any]) -> str:
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("enum", "literal_error"):
        # pydantic writes 'a', 'b' or 'c'.
        return "one of " + str(context["expected"]).replace("'", "").replace(" or ", ", ")
    if kind in _BOUNDS:
        return f"{_BOUNDS[kind]} {next(iter(context.values()))}"
    found = (meant for beginning, meant in _KINDS.items() if kind.startswith(f"{beginning}_"))
    return next(found, "a value as docs/options.md describes it")
