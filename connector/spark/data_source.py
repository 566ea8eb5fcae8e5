"""The data source that Spark finds by itself: `format("sluice")`.

Imports nothing heavy: Spark imports it in every Python process that looks up any source.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from ..session.processes import plain_errors

if TYPE_CHECKING:
    import pyarrow as pa


class SluiceDataSource(DataSource):
    """Ingests files from growing directories and buckets, each row exactly once.

    Spark registers it as `format("sluice")` and creates it; programs do not. With `readStream` it
    is a streaming source, with `read` it reads all files at once, and with the option `view` it
    reads the state of a query as a table:

        >>> reader = spark.read.format("sluice").option("fileFormat", "json")
        >>> rows = reader.schema("id long, name string").load(landing)
        >>> rows.count()
        2
    """

    _inferred = False
    """True if the schema did not come from `.schema(...)`."""

    _written_schema: pa.Schema | None = None
    """Schema of the rows that go into data files; the stream's own is another one."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "sluice"

    @plain_errors()
    def schema(self) -> StructType | str:
        """The schema where the user gave none: fixed, stored, or inferred from a sample.

        Raises:
            OptionError: everything that is wrong with the options, or that a schema is needed.
        """
        from ...reader.written_files import SCHEMA
        from ..options.model import parse_options
        from ..source.schemas import schema_of_rows
        from ..views.view_reader import columns_of, wanted_view
        from .types import spark_schema

        texts = dict(self.options)
        if wanted_view(texts) is not None:
            return columns_of(texts)
        # Whether this is a stream is not known here; a missing checkpointLocation comes later.
        options = parse_options(texts, streaming=False, names_format=True)
        # Spark pickles this object afterwards: the readers learn of it.
        schema, self._inferred = schema_of_rows(options)
        if options.write_to:
            self._written_schema = schema
            schema = SCHEMA
        return spark_schema(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For readStream. Cheap and pure: Spark calls it in two processes."""
        # Chosen by what this Spark offers: 4.2 brought admission control for Python sources.
        reader_class: Callable[..., DataSourceStreamReader]
        if find_spec("pyspark.sql.streaming.datasource") is None:
            from .stream_reader import StartTrackingReader

            reader_class = StartTrackingReader
        else:
            from .limited_reader import LimitedReader

            reader_class = LimitedReader
        # What Spark passes then describes the rows about files, which is the stream's own schema.
        described = schema if self._written_schema is None else self._written_schema
        return reader_class(
            dict(self.options),
            described,
            inferred=self._inferred,
            writes_files=self._written_schema is not None,
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch read, of rows or of a view of a query's state."""
        from ..views.view_reader import ViewReader, wanted_view

        # Views and rows share one format name, since Spark finds a single source in a package.
        if wanted_view(dict(self.options)) is not None:
            return ViewReader(dict(self.options), schema)
        from .batch_reader import SluiceBatchReader

        return SluiceBatchReader(dict(self.options), schema, inferred=self._inferred)
