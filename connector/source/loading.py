"""Finds the source that the options name: the file source, a class, or an entry point."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...errors import OptionError
from ...reader.files.formats.registry import load
from ..options.model import SluiceOptions
from .api import Source
from .file_source import FileSource

ENTRY_POINTS = "pyspark_sluice.sources"
"""Group in which an installed package announces its sources by name."""


def load_source(
    options: SluiceOptions, schema: pa.Schema, *, schema_is_inferred: bool = False
) -> Source[Any, Any]:
    """The source that the options name. Only files have a schema that can be inferred.

    Raises:
        OptionError: it cannot be found or is no `Source`.
    """
    name = options.source
    if name == "files":
        return FileSource(options, schema, schema_is_inferred=schema_is_inferred)
    try:
        kind = load(name, ENTRY_POINTS)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_source(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Source)):
        raise _no_source(name, repr(kind))
    return kind(options, schema)


def _no_source(name: str, found: str) -> OptionError:
    return OptionError(
        "source: cannot load it",
        name,
        found,
        "files, package.module:Class of a connector.source.Source, or an entry point",
        "The module has to be importable on the driver and on the executors.",
    )
