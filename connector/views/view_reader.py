"""`spark.read.format("sluice").option("view", ...)`: Spark's side of a view, and its options.

Every query imports this module to learn whether its options ask for a view, so what reads one is
imported only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...errors import OptionError
from ..options.model import SluiceOptions
from ..options.validation import listed, near_name, problem_of
from ..session.processes import plain_errors

if TYPE_CHECKING:
    import pyarrow as pa

VIEW: Final = "view"

_ROWS: Final = 65_536
"""Rows of one batch of a view."""

_KNOWN: Final = ("checkpointLocation", "stateLocation", "sourceName", "storageOptions")


def wanted_view(texts: Mapping[str, str]) -> str | None:
    """The name of the view that the options ask for; None if they ask for rows."""
    return next((value for name, value in texts.items() if name.lower() == VIEW), None)


def refuse_as_stream(texts: Mapping[str, str]) -> None:
    """Raise if the options of a stream ask for a view.

    Raises:
        OptionError: names the way out.
    """
    if wanted_view(texts) is not None:
        raise OptionError(
            "view: a view cannot be read as a stream",
            "",
            f"view={wanted_view(texts)} with readStream",
            'spark.read.format("sluice").option("view", ...)',
        )


def view_options(texts: Mapping[str, str]) -> SluiceOptions:
    """Return where the state is, of the options of `read` that go with `view`.

    Raises:
        OptionError: lists every problem, each with its option.
    """
    # Spark passes the names of options in lower case.
    spellings = {name.lower(): name for name in _KNOWN}
    values, problems = {}, []
    for name, value in texts.items():
        if name.lower() in spellings:
            values[spellings[name.lower()]] = value
        elif name.lower() != VIEW:
            problems.append(f"{name}: unknown option of a view{near_name(name, spellings)}")
    if not (values.get("checkpointLocation") or values.get("stateLocation")):
        problems.append(
            "checkpointLocation: found nothing; expected that of the query, or its stateLocation"
        )
    try:
        options = SluiceOptions.model_validate(values)
    except ValidationError as error:
        problems += map(problem_of, error.errors())
    if problems:
        raise OptionError(listed(problems, "the view has invalid options"))
    return options


def columns_of(texts: Mapping[str, str]) -> StructType:
    """Columns of the view that the options ask for.

    Raises:
        OptionError: there is no such view, or the options do not fit.
    """
    from .catalog import view_named

    view_options(texts)
    return from_arrow_schema(view_named(wanted_view(texts) or "").schema)


class ViewReader(DataSourceReader):
    """Reads a whole view in one task: it is as of one moment."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = dict(options)
        self._schema = schema

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """One, with the options checked."""
        columns = columns_of(self._options)
        if self._schema != columns:
            raise OptionError(
                "view: its columns are given",
                "",
                f".schema({self._schema.simpleString()})",
                "no .schema(...)",
                "Leave the schema out, and .select(...) the columns that you need.",
            )
        # Several tasks would each see the state of another moment.
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """On an executor, which reaches the state as the query's do."""
        from ..source.state_location import open_state
        from .catalog import table_of

        with plain_errors():
            store = open_state(view_options(self._options))
            table = table_of(store, wanted_view(self._options) or "")
            # A view consists of many small tables, and each batch is a message to Spark.
            yield from table.combine_chunks().to_batches(max_chunksize=_ROWS)
