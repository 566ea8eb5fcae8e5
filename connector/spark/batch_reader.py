"""`spark.read.format("sluice")`: a bounded read of what is there now, without any state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..session.processes import plain_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from ...checkpoint_meta.files.file_split import FileVersion
    from ...reader.files.path_columns import FilePruning
    from ..query.partitions import ReaderPartition
    from ..source.file_source import FileSource


class SluiceBatchReader(DataSourceReader):
    """Lists, cuts and spreads on the driver; reads on the executors.

    It has no `pushFilters`: PySpark 4.3 keeps what comes of it with the relation, so that a query
    which uses one loaded frame twice, under two conditions, reads both by the later of them.
    """

    def __init__(
        self, options: Mapping[str, str], schema: StructType, *, inferred: bool = False
    ) -> None:
        self._options = dict(options)
        self._schema = schema
        self._inferred = inferred

    @plain_errors()
    def partitions(self) -> Sequence[InputPartition]:
        """One partition for each reader; none where there is nothing to read."""
        from ...checkpoint_meta.documents.checkpoint_ref import NO_IDENTITY
        from ...enumerator.files.cutting import wanted_split_bytes
        from ...enumerator.files.discovery.tree_discovery import all_files
        from ...reader.files.io.cut_places import MemoryCutPlaces
        from ...reader.files.path_columns import FilePruning
        from ..options.validation import refuse_streaming_options
        from ..query.partitions import ReaderPartition, ReaderShare, packed
        from ..source.discovery import make_listing
        from ..source.file_source import driver_cores
        from .types import SluicePartition

        cut_places = MemoryCutPlaces()
        source = self._source()
        refuse_streaming_options(source.options)
        pruning = FilePruning(source.schema, source.options)
        listed = all_files(make_listing(source.options))
        files = [file for file in listed if _may_match(pruning, file)]
        # No limit of a batch applies, so files are cut such that all cores have work.
        wanted = wanted_split_bytes(sum(file.size for file in files), driver_cores())
        splits = source.cutter(cut_places).cut_all(files, wanted)
        spreader = source.spreader()
        # A batch read keeps no readers over time, so their number may follow from what there is.
        readers = source.options.parallelism or spreader.readers_wanted(splits)
        serializer, version = source.split_serializer, source.split_serializer.version
        return [
            SluicePartition(
                ReaderPartition(
                    reader,
                    [ReaderShare(NO_IDENTITY, version, packed(serializer.serialize_all(share)))],
                    cut_places=cut_places.of(share),
                )
            )
            for reader, share in spreader.spread(splits, readers).items()
        ]

    def _source(self) -> FileSource:
        from ...errors import OptionError
        from ..options.model import parse_options
        from ..query.partitions import with_session_time_zone
        from ..source.direct_write import refuse_direct_write
        from ..source.file_source import FileSource, load_source
        from ..source.schemas import resolved
        from .types import arrow_schema

        # Data files are named by reader commits, and a batch read has none.
        refuse_direct_write(self._options, "spark.read hands rows to Spark")
        options = with_session_time_zone(
            parse_options(self._options, streaming=False, names_format=True)
        )
        options = resolved(options, self._schema.names, inferred=self._inferred)
        schema = arrow_schema(self._schema)
        # Other sources assign by an enumerator, for which a batch read has no state.
        source: object = load_source(options, schema, schema_is_inferred=self._inferred)
        if not isinstance(source, FileSource):
            raise OptionError(
                "source: only files can be read as a batch",
                "",
                options.source,
                "files",
                "Use readStream with trigger(availableNow=True).",
            )
        return source

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """On an executor: the rows of one partition."""
        from .types import SluicePartition

        if not isinstance(partition, SluicePartition):
            return  # Spark's placeholder for "no partitions".
        with plain_errors():
            yield from self._rows(partition.value)

    def _rows(self, partition: ReaderPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from ...reader.api import ReaderContext
        from ...reader.files.io.cut_places import MemoryCutPlaces

        source = self._source()
        serializer = source.split_serializer
        cut_places = MemoryCutPlaces(partition.cut_places)
        reader = source.reader(ReaderContext(0, partition.reader, 0), cut_places)
        # Closed after an error as well, and where Spark reads no further (a LIMIT).
        with closing(reader):
            for part in partition.parts:
                rows = part.splits()
                splits = [s for batch in rows for s in serializer.read(part.version, batch)]
                for item in reader.read(splits):
                    if isinstance(item, pa.RecordBatch):
                        yield item


def _may_match(pruning: FilePruning, file: FileVersion) -> bool:
    from ...errors import SluiceError

    try:
        return pruning.may_match(file)
    except SluiceError:
        return True  # Its reader says what is wrong with its place.
