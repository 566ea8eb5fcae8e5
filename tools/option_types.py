"""Writes `connector/options/option_types.pyi`: the types of all options, as editors see them.

`python tools/options_table.py` calls it; a test compares.
"""

from __future__ import annotations

import sys
import types
import typing
from enum import Enum
from pathlib import Path

from pydantic.fields import FieldInfo

from pyspark_sluice.connector.options.model import SluiceOptions, spellings

TARGET = Path(__file__).resolve().parent.parent / "connector" / "options" / "option_types.pyi"
HEAD = """# The options with their types, for editors and type checkers.
# Generated from the model by `python tools/options_table.py`.

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

class OptionTypes(TypedDict, total=False):
    # All names of options, as in the reference and as in Python.
"""
_WIDTH = 100
_AUTO = ("parallelism",)


def source() -> str:
    """The text of the module."""
    kinds: dict[str, str] = {}
    for name, field in SluiceOptions.model_fields.items():
        for spelling in (*spellings(name, field), name):
            kinds[spelling] = _written(name, field)
    return HEAD + "".join(_line(name, kind) for name, kind in sorted(kinds.items()))


def _line(name: str, kind: str) -> str:
    line = f"    {name}: {kind}\n"
    if len(line) <= _WIDTH + 1:
        return line
    # As the formatter writes it.
    head, _, values = line.removesuffix("]\n").partition("[")
    return f"{head}[\n        " + values.replace(", ", ",\n        ") + ",\n    ]\n"


def _written(name: str, field: FieldInfo) -> str:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind = _kind(field.annotation)
    if extra.get("unit") or name in _AUTO:
        return f"{kind} | str"
    return kind


def _kind(kind: object) -> str:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _kind(parts[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_kind(part) for part in parts if part is not type(None))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(_quoted, parts))}]"
    if origin is list:
        return "Sequence[str] | str"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, dict)):
        return "Mapping[str, object] | str"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"Literal[{', '.join(_quoted(member.value) for member in kind)}]"
    return str(getattr(kind, "__name__", kind))


def _quoted(value: object) -> str:
    return f'"{value}"'


def main() -> int:
    """Rewrite the module."""
    TARGET.write_text(source(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
