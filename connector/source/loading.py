"""Finds the source that the options name: the file source, a class, or an entry point."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa

from ...errors import OptionError
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
        found = _find(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_source(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Source)):
        raise _no_source(name, repr(found))
    return found(options, schema)


def _find(name: str) -> object:
    # A module path has a colon before its class; a name without one is an entry point's.
    if ":" not in name:
        from importlib.metadata import entry_points

        for entry in entry_points(group=ENTRY_POINTS, name=name):
            return entry.load()
        message = f"no entry point {name!r} in the group {ENTRY_POINTS!r}"
        raise ValueError(message)
    return attribute_of(name)


def attribute_of(name: str) -> Any:
    """What `package.module:attribute` names.

    Raises:
        ImportError, AttributeError, ValueError: it cannot be had.
    """
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _no_source(name: str, found: str) -> OptionError:
    return OptionError(
        "source: cannot load it",
        name,
        found,
        "files, package.module:Class of a connector.source.Source, or an entry point",
        "The module has to be importable on the driver and on the executors.",
    )
