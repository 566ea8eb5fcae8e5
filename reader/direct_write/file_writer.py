"""Batches of rows into Parquet files: row groups of bounded size, one file after the other.

The first `_MOST_OPEN` partitions have a file that is open; rows of further ones wait in one
temporary file. So memory is bounded by what is buffered, 64 MiB in all, and by what the writer of
each open file holds, for any number of partitions.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...checkpoint_meta.documents.written_file import FileName, WrittenFile
from ...checkpoint_meta.storage.contract import Draft
from ...errors import OptionError
from ..files.io.memory_bounds import Spill
from .field_ids import finds_by_id, with_field_ids
from .partitioning import Values, paths_of
from .place import Place
from .statistics import Path, column_at, float_arrays, leaves, statistics_of
from .table_fit import (
    check_not_null,
    check_not_null_within,
    check_values,
    fields_within,
    partitioning_of,
    required,
    without_voids,
)
from .write_options import WriteOptions

_BUFFERED: Final = 64 * 1024 * 1024
"""Bytes in Arrow's form that wait for their row group, of all partitions together."""

_TOGETHER: Final = 8 * 1024 * 1024
"""Bytes of rows that are put together: each column of each batch costs by itself, of 300 columns a
fifth of the time of writing."""

_MOST_OPEN: Final = 8
_AT_ONCE: Final = 8
"""Files that are made durable at the same time, at the end."""
_ROW_GROUP: Final = 1024 * 1024
"""Rows of a row group at most, as delta-rs and Arrow have it."""

_SAMPLE: Final = 10_000
"""Rows from which is seen whether the values of a column repeat."""

_FEW: Final = Random(0).sample(range(_SAMPLE), _SAMPLE // 10)  # noqa: S311 - no secret
"""Some of them, anywhere, because values may repeat in turn."""

_HARDLY_REPEAT: Final = 0.98
"""Share of different values among the few; 0.95 where each value of the sample comes twice."""

Transform = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass
class _Partition:
    """The rows with certain partition values."""

    values: Values
    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0
    together: int = 0
    """How many of the batches are put together already."""

    apart: int = 0
    """Bytes of those behind them."""

    spilled: list[int] = field(default_factory=list)
    """Where its rows are in the temporary file."""

    file: _DataFile | None = None

    def add(self, rows: pa.RecordBatch, size: int) -> None:
        """Take rows of so many bytes."""
        # Before they are there: a large batch costs little by itself, and is not copied.
        if self.apart + size > _TOGETHER:
            self._put_together()
        self.batches.append(rows)
        self.size += size
        self.apart += size

    def take(self, schema: pa.Schema) -> pa.Table:
        """Hand out the rows that wait."""
        self._put_together()
        table = pa.Table.from_batches(self.batches, schema)
        self.batches, self.size, self.together = [], 0, 0
        return table

    def _put_together(self) -> None:
        apart = self.batches[self.together :]
        if len(apart) > 1:
            self.batches[self.together :] = [pa.concat_batches(apart)]
        self.together, self.apart = len(self.batches), 0


class DataFileWriter:
    """Writes the rows of one assignment; used once."""

    def __init__(
        self,
        place: Place,
        name: FileName,
        schema: pa.Schema,
        options: WriteOptions,
        transform: Transform | None = None,
        columns: pa.Schema | None = None,
    ) -> None:
        """`schema` is that of the rows as they are written, partition columns included.

        Without `transform` later rows may have more columns; they begin new files. With `columns`
        of an Iceberg table the files have field ids, and each has the rows of one partition.

        Raises:
            OptionError: rows of this schema cannot be parted or sorted as the options say.
            TableError: they cannot be parted as the table says.
        """
        self._place = place
        self._name = name
        self._options = options
        self._transform = transform
        self._columns = columns
        self._files: list[WrittenFile] = []
        self._not_a_number: set[str] = set()
        # A name has six digits for it.
        self._numbers = iter(range(10**6))
        self._begin(schema)

    def _begin(self, schema: pa.Schema) -> None:
        """Prepare for rows of this schema, before the first and after the last of another one."""
        columns = self._columns
        self.schema = schema
        self._written_schema = without_voids(schema)
        self._partitioning = partitioning_of(self._written_schema, self._options, columns)
        # Where the rows promise it themselves, their parser has checked it.
        nullable = {path for path, field in paths_of(schema) if field.nullable}
        self._required = [path for path in required(columns or pa.schema([])) if path in nullable]
        self._required_within = fields_within(columns or pa.schema([]))
        schema = self._partitioning.schema
        has_ids = columns is not None and finds_by_id(columns)
        self._file_schema = with_field_ids(schema, columns) if has_ids else schema
        self._partitions: dict[Values, _Partition] = {}
        self._buffered = 0
        self._spill = Spill(schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take some rows.

        Raises:
            OptionError: writeTransform does not return what writeTransformSchema says.
            TableError: the table does not take a row: a null where it allows none.
            OSError: a file cannot be written.
        """
        if self._transform is not None:
            batch = _checked(self._transform(batch), self.schema)
        elif not batch.schema.equals(self.schema):
            self._end()
            self._begin(batch.schema)
        if self._columns is not None:
            check_not_null(batch, self._required, self._columns)
            check_not_null_within(batch, self._required_within, self._columns)
        if self._written_schema is not self.schema:
            batch = batch.select(self._written_schema.names).cast(self._written_schema)
        group_bytes = min(_BUFFERED, self._options.write_file_bytes)
        for values, rows in self._partitioning.split(batch):
            # Python takes 0.0 and -0.0 for one key, and each NaN for another one.
            key = tuple(repr(v) if isinstance(v, float) else v for v in values)
            partition = self._partitions.get(key)
            if partition is None:
                if self._columns is not None:
                    check_values(self._partitioning.mapping(values), self._columns)
                partition = self._partitions[key] = _Partition(values)
            size = rows.nbytes
            partition.add(rows, size)
            self._buffered += size
            if partition.size >= group_bytes:
                self._flush(partition)
        # The largest first: that frees most memory for one part of a file.
        while self._buffered >= _BUFFERED:
            self._flush(max(self._partitions.values(), key=lambda p: p.size))

    def finish(self) -> Sequence[WrittenFile]:
        """Everything is written and durable; the files in the order in which they were begun."""
        self._end()
        return sorted(self._files, key=lambda file: file.path.rsplit("/", 1)[-1])

    def _end(self) -> None:
        """Write what waits, and close the files, several at a time: most of that is waiting."""
        closing = deque[tuple[_Partition, Future[WrittenFile]]]()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            try:
                for partition in self._partitions.values():
                    # What was spilled came before what is in memory, and rows keep their order.
                    for table in self._spill.tables(partition.spilled):
                        self._append(partition, table)
                    if partition.batches:
                        self._append(partition, self._taken(partition))
                    if partition.file is not None:
                        described = self._described(partition)
                        file = threads.submit(partition.file.close, *described)
                        closing.append((partition, file))
                    if len(closing) == _AT_ONCE:
                        self._note(*closing.popleft())
                for _, file in closing:
                    file.result()
            finally:
                # If one failed, the others are noted too, to be discarded.
                for partition, file in closing:
                    if file.exception() is None:
                        self._note(partition, file)
        self._spill.close()

    def _note(self, partition: _Partition, file: Future[WrittenFile]) -> None:
        self._files.append(file.result())
        partition.file = None

    def discard(self) -> None:
        """Remove what was written, as far as possible: it will never be referred to."""
        with contextlib.suppress(OSError):  # A full disk does not take what is buffered, either.
            self._spill.close()
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abandon()
        for file in self._files:
            with contextlib.suppress(OSError):
                self._place.delete(file.path)

    def _taken(self, partition: _Partition) -> pa.Table:
        self._buffered -= partition.size
        return partition.take(self._partitioning.schema)

    def _flush(self, partition: _Partition) -> None:
        """Rows that wait become a row group, or go to the temporary file."""
        table = self._taken(partition)
        open_files = sum(each.file is not None for each in self._partitions.values())
        # Rows that were spilled come first in the file, so a partition that has begun to spill
        # keeps spilling, even if another file has been closed meanwhile.
        if partition.file is None and (partition.spilled or open_files >= _MOST_OPEN):
            partition.spilled.append(self._spill.put(table))
        else:
            self._append(partition, table)

    def _append(self, partition: _Partition, table: pa.Table) -> None:
        if self._options.write_sort_by:
            keys = [(name, "ascending") for name in self._options.write_sort_by]
            table = table.take(pc.sort_indices(table, sort_keys=keys))
        floats = _floats(table)
        self._not_a_number.update(name for name, (_, has_nan) in floats.items() if has_nan)
        if partition.file is not None and not partition.file.may_hold(floats):
            self._close(partition)
        if partition.file is None:
            name = str(replace(self._name, number=next(self._numbers)))
            directory = self._partitioning.directory(partition.values)
            draft = self._place.begin(directory + name)
            compression = self._options.write_compression
            partition.file = _DataFile(draft, self._file_schema, compression, self._not_a_number)
        partition.file.write(table, floats)
        # Only what was sorted at once is in order, so each sorted part is a file of its own.
        if self._options.write_sort_by or partition.file.size >= self._options.write_file_bytes:
            self._close(partition)

    def _close(self, partition: _Partition) -> None:
        if partition.file is not None:
            self._files.append(partition.file.close(*self._described(partition)))
            partition.file = None

    def _described(
        self, partition: _Partition
    ) -> tuple[Mapping[str, str | None], Mapping[bytes, str]]:
        values = partition.values
        return self._partitioning.mapping(values), self._partitioning.metadata(values)


@contextlib.contextmanager
def _naming(draft: Draft) -> Iterator[None]:
    """Give errors of the operating system, as of a full disk, the name that Arrow does not know."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = getattr(draft.sink, "name", None)
        raise


class _DataFile:
    """One Parquet file that is being written.

    Arrow leaves NaN out of minimum and maximum, although Spark and DuckDB order it after all other
    numbers. They would skip the row group, so columns with NaN have no statistics in the footer.
    """

    def __init__(
        self,
        draft: Draft,
        schema: pa.Schema,
        compression: str,
        not_a_number: Collection[str],
    ) -> None:
        """`not_a_number` are the columns that may hold NaN."""
        self._draft = draft
        self._schema = schema
        self._compression = compression
        self._footers: list[pq.FileMetaData] = []
        self._nulls = dict.fromkeys(not_a_number, 0)
        self._opened: pq.ParquetWriter | None = None

    @property
    def size(self) -> int:
        return self._draft.sink.tell()

    def may_hold(self, floats: Mapping[str, _Floats]) -> bool:
        """False if a column has NaN, and the footer has bounds of it."""
        return all(name in self._nulls for name, (_, has_nan) in floats.items() if has_nan)

    def write(self, table: pa.Table, floats: Mapping[str, _Floats]) -> None:
        """Add rows as a row group."""
        for name in self._nulls.keys() & floats.keys():
            self._nulls[name] += floats[name].nulls
        if self._opened is None:
            # Opened with the first rows, which show for which columns a dictionary pays.
            self._opened = pq.ParquetWriter(
                self._draft.sink,
                self._schema,
                compression=self._compression,
                use_dictionary=_repeating(table),
                write_statistics=[
                    leaf.name for leaf in leaves(self._schema) if leaf.name not in self._nulls
                ],
                store_schema=False,
                metadata_collector=self._footers,
            )
        with _naming(self._draft):
            self._opened.write_table(table, row_group_size=_ROW_GROUP)

    def close(
        self, mapping: Mapping[str, str | None], metadata: Mapping[bytes, str]
    ) -> WrittenFile:
        """The file is whole, durable and visible."""
        assert self._opened is not None
        self._opened.add_key_value_metadata(metadata)
        with _naming(self._draft):
            self._opened.close()
        # After the footer was written, and before `publish` closes the sink.
        size = self.size
        (footer,) = self._footers
        # Before `publish`: an error must not leave a file under its name.
        statistics = statistics_of(footer, self._schema, self._nulls, self._nulls)
        with _naming(self._draft):
            path = self._draft.publish()
        return WrittenFile(
            path=path, rows=footer.num_rows, bytes=size, partition=mapping, statistics=statistics
        )

    def abandon(self) -> None:
        """Nothing is left of it."""
        # After a failed write the writer closes with another error, or without a footer.
        with contextlib.suppress(OSError, pa.ArrowException, RuntimeError):
            if self._opened is not None:
                self._opened.close()
        self._draft.discard()


def _repeating(table: pa.Table) -> list[str]:
    """The columns of which a dictionary is made: those whose first values repeat.

    It is made of what is in lists and maps, too, which is not looked at.

    Of others a dictionary takes half of the time of writing, and is given up once it is full: 60
    columns of which most are numbers took 0.73 s with it and 0.33 s without, and 41 and 25 MB.
    """
    return [
        leaf.name
        for leaf in leaves(table.schema)
        if leaf.path is None or _repeats(table, leaf.path)
    ]


def _repeats(table: pa.Table, path: Path) -> bool:
    sample = column_at(table.slice(0, _SAMPLE), path)
    if len(sample) == _SAMPLE:
        # Of values that hardly ever repeat, a few say so, in a fifth of the time.
        few = pc.count_distinct(sample.take(pa.array(_FEW, pa.int64()))).as_py()
        if few >= _HARDLY_REPEAT * len(_FEW):
            return False
    return bool(pc.count_distinct(sample).as_py() * 2 <= len(sample))


class _Floats(NamedTuple):
    nulls: int
    has_nan: bool


def _floats(table: pa.Table) -> Mapping[str, _Floats]:
    """Return what the columns of floats hold, by their name in Parquet."""
    floats: dict[str, _Floats] = {}
    for column in table.schema:
        for chunk in table.column(column.name).chunks:
            for name, values in float_arrays(chunk, column.name):
                nulls, has_nan = floats.get(name, _Floats(0, False))
                has_nan = has_nan or pc.any(pc.is_nan(values)).as_py() is True
                floats[name] = _Floats(nulls + values.null_count, has_nan)
    return floats


def _checked(batch: object, schema: pa.Schema) -> pa.RecordBatch:
    if isinstance(batch, pa.RecordBatch) and batch.schema.equals(schema):
        return batch
    problem = batch.schema if isinstance(batch, pa.RecordBatch) else type(batch).__name__
    raise OptionError(
        "writeTransform: the function does not return what writeTransformSchema declares",
        "",
        str(problem),
        f"a pyarrow.RecordBatch with {schema}",
    )
