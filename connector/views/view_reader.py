"""`spark.read.format("sluice").option("view", ...)`: Spark's side of a view.

Not here: what is in a view (`catalog.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..session.processes import plain_errors
from ..source.state_location import open_state
from .catalog import batches_of, table_of, view_named
from .view_options import view_options, wanted_view

if TYPE_CHECKING:
    import pyarrow as pa


def columns_of(given: Mapping[str, str]) -> StructType:
    """Columns of the view that the options ask for.

    Raises:
        OptionError: there is no such view, or the options do not fit.
    """
    view_options(given)
    return from_arrow_schema(view_named(wanted_view(given) or "").schema)


class ViewReader(DataSourceReader):
    """Reads a whole view in one task: it is as of one moment."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = dict(options)
        self._schema = schema

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """One, with the options checked."""
        from ...errors import OptionError

        made = columns_of(self._options)
        if self._schema != made:
            raise OptionError(
                "view: its columns are given",
                "",
                f".schema({self._schema.simpleString()})",
                "no .schema(...)",
                ("Leave the schema out, and .select(...) the columns that you need."),
            )
        # Several tasks would each see the state of another moment.
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """On an executor, which reaches the state as the query's do."""
        with plain_errors():
            store = open_state(view_options(self._options))
            yield from batches_of(table_of(store, wanted_view(self._options) or ""))
