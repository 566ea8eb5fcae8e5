"""The name of a format: one that is built in, or one of the user's own.

Not here: loading the class (`../formats/registry.py`).
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

from pydantic import BeforeValidator

from .values import FileFormatName

ENTRY_POINTS = "pyspark_sluice.formats"
"""Group in which an installed package announces its formats by name."""


def is_built_in(name: str) -> bool:
    """True if the format comes with this package."""
    return name in FileFormatName.__members__.values()


def _format_name(value: object) -> str:
    text = str(value)
    try:
        return FileFormatName(text).value
    except ValueError:
        if ":" in text or entry_points(group=ENTRY_POINTS, name=text):
            return text
    names = ", ".join(FileFormatName)
    message = (
        f"one of {names}; or a format of your own (docs/adding-a-format.md): package.module:Class, "
        f"or the name of an entry point in the group {ENTRY_POINTS}"
    )
    raise ValueError(message)


FormatName = Annotated[str, BeforeValidator(_format_name)]
