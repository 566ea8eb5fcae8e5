"""What a source is: the driver's half and the executors' half, tied together.

A third party subclasses `Source` and names it with `.option("source", "package.module:Class")`;
the file source goes through the same door.

Not here: the contracts of the halves (`enumerator/api.py`, `reader/api.py`), and how a source is
found by its name (`loading.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

import pyarrow as pa

from ...enumerator.api import EnumeratorSource, SplitT, StateT
from ...reader.api import ReaderContext, SplitReader
from ..options.model import SluiceOptions


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
