"""The data source that Spark finds by itself: `format("sluice")`.

Imports nothing heavy: Spark imports it in every Python process that looks up any source.

Not here: the readers (`stream_reader.py`, `batch_reader.py`).
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from .telling import plainly_told

_FIXED_SCHEMAS = {
    "text": "value string",
    "binaryfile": "path string, modificationTime timestamp, length long, content binary",
}


class SluiceDataSource(DataSource):
    """Ingests ever-growing directories and buckets, each row exactly once."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "sluice"

    @plainly_told()
    def schema(self) -> str:
        """The schema where the user gave none: only formats of one fixed schema have it.

        Raises:
            OptionError: everything that is wrong with the options, or that a schema is needed.
        """
        from ..errors import OptionError
        from .options import parse_options

        # Whether this is a stream is not known here; a missing checkpointLocation comes later.
        options = parse_options(dict(self.options), streaming=False)
        fixed = _FIXED_SCHEMAS.get(options.file_format.value.lower())
        if fixed is None:
            raise OptionError(
                "a schema is needed",
                f'format("sluice") with fileFormat={options.file_format.value}',
                "no .schema(...)",
                '.schema("id long, name string") or a StructType before .load()',
            )
        return fixed

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For readStream. Cheap and pure: Spark calls it in two processes."""
        from .stream_reader import SluiceStreamReader

        return SluiceStreamReader(dict(self.options), schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch read."""
        from .batch_reader import SluiceBatchReader

        return SluiceBatchReader(dict(self.options), schema)
