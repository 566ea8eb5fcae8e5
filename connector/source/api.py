"""What a source is: the enumerator on the driver and the readers on the executors.

Subclass `Source` and select it with `.option("source", "package.module:Class")`; the file source
uses the same interface.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic

import pyarrow as pa

from ...enumerator.api import SplitT, StateT
from ...enumerator.source_api import EnumeratorSource
from ...reader.api import ReaderContext, SplitReader
from ..options.model import SluiceOptions


class Source(EnumeratorSource[SplitT, StateT], Generic[SplitT, StateT]):
    """FLIP-27's Source: creates enumerators on the driver and readers on the executors.

    Every process creates its own from the options and the schema, so the constructor must be fast.
    """

    def __init__(self, options: SluiceOptions, schema: pa.Schema) -> None:
        """`schema` is the exact Arrow schema of the batches that readers must yield."""
        self.options = options
        self.schema = schema

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SplitReader[SplitT]:
        """Create a reader for one attempt of one task. Called on executors."""
