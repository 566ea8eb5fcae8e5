"""XML by the rules of Spark's reader: an element named `rowTag` is a record at any depth.

A file is cut where a record begins. Where that is takes a look from the file's beginning
(`record_scanner.py`), which the driver does once for a file that has to be cut. Records are read
together (`plain_records.py`), or each by itself (`elements.py`) if some are not plain. Columns are
inferred from the records at the beginning of files, of which those that are not well-formed say
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any

import pyarrow as pa
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit, FileVersion
from .....errors import OptionError, not_installed
from ...evolution.new_columns import NewColumnsSeen
from ...options import ReaderOptions
from ...values.rows import Row, batch_of, gc_paused
from ...values.text_types import TextTypes
from ..api import (
    NO_CONTEXT,
    Block,
    Decoded,
    FileFormat,
    FormatContext,
    Parsed,
    Splittability,
    contiguous,
)
from ..records.driver import TextRecord, exactly, joined
from ..records.outcome import Partial, RecordOutcome, RecordRows, json_text
from ..records.record_format import BLOCK_BYTES, Origin, asks_row_index, data_schema, rows_before
from .element_values import Extra, record_reader
from .elements import XmlNames, parsed
from .plain_records import PlainRecords
from .record_scanner import beginning, is_read_in_place, records, starts
from .xml_types import Shape, common_type, temporal_of

BLOCK_STEP = 16 * 1024
"""How far apart files are cut, at least."""


_FEW = 128
"""Records that are not tried again in two parts."""


class XmlFormat(FileFormat):
    """Elements of one name, taken apart together, or parsed one by one."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        try:
            data = data_schema(schema, options)
            self._rows = XmlRows(schema, data, options, context.columns)
        except TypeError as err:
            raise OptionError("the schema cannot be read from XML", found=str(err)) from err
        plain = PlainRecords(data, options, temporal_of(options))
        self._plain = plain if plain.is_possible else None
        self._block_bytes = min(BLOCK_BYTES, options.batch_bytes)

    @classmethod
    @override
    def columns_of(cls, file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
        shape, names = new_shape(options), XmlNames(options)
        for record in beginning(file, options, limit):
            try:
                shape.add(names.fields(parsed(record)))
            except ValueError:
                continue
        return shape.type()

    @classmethod
    @override
    def new_columns_of(
        cls, file: FileVersion, options: ReaderOptions, limit: int, schema: pa.Schema
    ) -> pa.DataType:
        shape, rows = new_shape(options), XmlRows(schema, data_schema(schema, options), options)
        for record in beginning(file, options, limit):
            shape.add(rows.unknown_part(record))
        return shape.type()

    @classmethod
    @override
    def common_columns(
        cls, one: pa.DataType, other: pa.DataType, file: FileVersion, options: ReaderOptions
    ) -> pa.DataType:
        return common_type(one, other, options.value_tag)

    def splittability(self, file: FileVersion) -> Splittability:
        """Return where records begin, unless the content is compressed or in another encoding."""
        # Numbering rows would take reading all that is before a split.
        may_cut = is_read_in_place(file, self.options) and not asks_row_index(self.schema)
        return Splittability.BLOCKS if may_cut else Splittability.WHOLE

    @override
    def blocks(self, file: FileVersion) -> Sequence[Block]:
        """Stretches of whole records; reads all of the file, once."""
        places = starts(file, self.options, BLOCK_STEP)
        return contiguous([(place, -1) for place in places], file.size)

    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        """Yield the records that begin in `split`; see `FileFormat.decode`."""
        with closing(records(split, self.options)) as lists:
            cut = chain.from_iterable(lists)
            while texts := list(self._next(cut)):
                yield self._decoded(split, texts)

    @override
    def first_row(self, split: FileSplit) -> int:
        return super().first_row(split) + rows_before(self, split)

    def _next(self, cut: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Yield the records of the next batch: as many as the reader still accepts, in a block."""
        most, size = self.context.records_left(), 0
        for record in islice(cut, most):
            yield record
            size += len(record[1])
            if size >= self._block_bytes:
                return

    def _decoded(self, split: FileSplit, texts: Sequence[tuple[int, bytes]]) -> Decoded:
        source, end = Origin((split.file,), (0,)), texts[-1][0] + len(texts[-1][1])
        # Not around a `yield`, during which other code runs.
        with gc_paused():
            piece: Decoded = joined([*self._parts(texts, source)])
        piece.span = texts[0][0] - split.start, end - split.start
        if is_read_in_place(split.file, self.options):
            piece.read_bytes = min(end, split.end) - split.start
        if half := len(texts) // 2:
            piece.parts = lambda: (
                self._decoded(split, part) for part in (texts[:half], texts[half:])
            )
        return piece

    def _parts(self, texts: Sequence[tuple[int, bytes]], source: Origin) -> Iterator[Parsed]:
        """Yield the rows of all records, in parts: those around one that is not plain are few."""
        batch = self._plain_batch(texts)
        if batch is not None:
            yield Parsed(batch)
            return
        halves = texts[: len(texts) // 2], texts[len(texts) // 2 :]
        if len(texts) > _FEW:
            batches = [*map(self._plain_batch, halves)]
            if any(batches):
                for half, plain in zip(halves, batches, strict=True):
                    yield from self._parts(half, source) if plain is None else [Parsed(plain)]
                return
        each = (TextRecord(at, at + len(text), text) for at, text in texts)
        yield exactly(each, self._outcome, self._rows, source, self.options).parsed

    def _plain_batch(self, texts: Sequence[tuple[int, bytes]]) -> pa.RecordBatch | None:
        if self._plain is None:
            return None
        columns = self._plain.columns([text for _, text in texts])
        return None if columns is None else batch_of(self._rows.out_schema, len(texts), columns)

    def _outcome(self, record: TextRecord, where: Callable[[], str]) -> RecordOutcome:
        return self._rows.of_record(record.text, where)


def new_shape(options: ReaderOptions) -> Shape:
    """Nothing found yet, for columns that are inferred as the options say."""
    types = TextTypes(temporal_of(options)) if options.infer_column_types else None
    return Shape(options.value_tag, types)


class XmlRows(RecordRows):
    """Makes rows of records under the reader's mode."""

    def __init__(
        self,
        schema: pa.Schema,
        data: pa.Schema,
        options: ReaderOptions,
        query_columns: frozenset[str] = frozenset(),
    ) -> None:
        """`query_columns` are columns that are not new, though they are not in `data`.

        Raises TypeError for columns that XML cannot be read into.
        """
        super().__init__(schema, data, options)
        self.expected = f"a well-formed element {options.row_tag} that fits the schema"
        self._values = record_reader(data, options, temporal_of(options))
        path = options.row_validation_xsd_path
        self._require_valid = xsd_check(path) if path else None
        self._made_here = query_columns - set(data.names)

    def of_record(self, record: bytes, where: Callable[[], str]) -> RecordOutcome:
        """Parse one record.

        Raises:
            MalformedDataError: it is not well-formed, not valid or does not fit, under `FAILFAST`.
            NewColumnsSeen: it has fields that the schema does not have, if that stops the query.
        """
        extra = Extra()
        try:
            row = self._read(record, extra, where)
        except Partial as err:
            row = err.value
            if not self._rescued:
                return self.refuse((row,), record, str(err), where)
        except ValueError as err:
            return self.refuse(({},), record, str(err), where)
        return RecordOutcome((self.rescue(row, extra.lost, json_text) if self._rescued else row,))

    def unknown_part(self, record: bytes) -> dict[str, Any]:
        """Return what a record has and the schema does not; nothing if it is not well-formed."""
        extra = Extra()
        try:
            self._values(parsed(record), extra)
        except Partial:
            pass
        except ValueError:
            return {}
        return self._new_part(extra)

    def _read(self, record: bytes, extra: Extra, where: Callable[[], str]) -> Row:
        root = parsed(record)
        # After expat, which limits the levels: with `huge_tree` lxml does not.
        if self._require_valid is not None:
            self._require_valid(record)
        try:
            return self._values(root, extra)
        finally:
            # In `finally`: a record with a value that does not fit may have a new field as well.
            stops = extra.unknown and self._options.mode_of_evolution.stops
            if new := self._new_part(extra) if stops else {}:
                shape = new_shape(self._options)
                shape.add(new)
                raise NewColumnsSeen(where(), shape.type())

    def _new_part(self, extra: Extra) -> dict[str, Any]:
        return {name: v for name, v in extra.unknown.items() if name not in self._made_here}


def xsd_check(path: str) -> Callable[[bytes], None]:
    """Return what raises ValueError for a record that is not valid by the XML schema at `path`.

    Raises:
        OptionError: lxml is missing, or there is no XML schema there.
    """
    try:
        from lxml import etree
    except ImportError as err:
        what = "rowValidationXSDPath needs the package lxml"
        raise not_installed(what, path, "lxml", "xml") from err
    # A record has no DOCTYPE, so there is nothing to expand; its size and levels are limited.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        schema = etree.XMLSchema(etree.parse(path, parser))
    except (OSError, etree.LxmlError) as err:
        raise OptionError(
            "rowValidationXSDPath: the XML schema cannot be read",
            path,
            str(err),
            "a local path to an XML schema, the same on the driver and on the executors",
        ) from err

    def require(record: bytes) -> None:
        try:
            schema.assertValid(etree.fromstring(record, parser))
        except etree.LxmlError as err:
            raise ValueError(f"not valid by rowValidationXSDPath: {err}") from err

    return require
