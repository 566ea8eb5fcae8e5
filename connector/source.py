"""What a source is: the driver's half and the executors' half, tied together.

A third party subclasses `Source` and names it with `.option("source", "package.module:Class")`;
the file source goes through the same door.

Not here: the contracts of the halves (`enumerator/api.py`, `reader/api.py`).
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from importlib.metadata import entry_points
from typing import Any, Generic

import pyarrow as pa

from ..enumerator.api import EnumeratorSource, SplitT, StateT
from ..errors import OptionError
from ..reader.api import ReaderContext, SplitReader
from .options import SluiceOptions

ENTRY_POINTS = "pyspark_sluice.sources"
"""Group in which an installed package announces its sources by name."""


class Source(EnumeratorSource[SplitT, StateT], Generic[SplitT, StateT]):
    """FLIP-27's Source: makes enumerators on the driver and readers on the executors.

    Built in every process from the options and the schema alone; must be cheap to build.
    """

    def __init__(self, options: SluiceOptions, schema: pa.Schema) -> None:
        """`schema` is the exact Arrow schema of the batches that readers have to yield."""
        self.options = options
        self.schema = schema

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SplitReader[SplitT]:
        """A reader for one attempt of one task. Called on executors."""


def load_source(options: SluiceOptions, schema: pa.Schema) -> Source[Any, Any]:
    """The source that the options name.

    Raises:
        OptionError: it cannot be found or is no `Source`.
    """
    name = options.source
    if name == "files":
        from .file_source import FileSource

        return FileSource(options, schema)
    try:
        found = _find(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise _no_source(name, f"{type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Source)):
        raise _no_source(name, repr(found))
    return found(options, schema)


def _find(name: str) -> object:
    if ":" not in name:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            return entry.load()
        message = f"no entry point {name!r} in the group {ENTRY_POINTS!r}"
        raise ValueError(message)
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
