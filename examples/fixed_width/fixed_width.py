"""Fixed-width text: each line holds the columns side by side, filled up with blanks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from pyspark_sluice.errors import MalformedDataError, OptionError
from pyspark_sluice.formats import (
    METADATA,
    NO_CONTEXT,
    FormatContext,
    Origin,
    Parsed,
    ReaderOptions,
    RecordFormat,
)


class FixedWidthFormat(RecordFormat):
    """Columns of so many bytes each: `.option("columns", "id 8, name 20, day 10")`."""

    own_options = frozenset({"columns"})

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        self._places: dict[str, slice] = {}
        self._width = 0
        for part in options.format_options.get("columns", "").split(","):
            name, _, width = part.strip().rpartition(" ")
            if not (name and width.isdecimal() and int(width)):
                expected = "names and widths such as: id 8, name 20, day 10"
                raise OptionError("columns does not say what a line is", "", repr(part), expected)
            self._places[name.strip()] = slice(self._width, self._width + int(width))
            self._width += int(width)

    @override
    def parse(self, data: bytes, source: Origin) -> Parsed:
        data = data if data.endswith(b"\n") else data + b"\n"
        length = self._width + 1
        self._check_lengths(data, source)
        lines = np.frombuffer(data, np.uint8).reshape(-1, length)
        fields = [field for field in self.schema if field.name != METADATA]
        columns = [self._column(lines, field, source) for field in fields]
        batch = pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])
        if len(source.files) == 1:
            return Parsed(batch)
        return Parsed(batch, rows_of=source.by_file(np.arange(len(lines)) * length, len(data)))

    def _check_lengths(self, data: bytes, source: Origin) -> None:
        feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
        expected = np.arange(1, len(feeds) + 1) * (self._width + 1) - 1
        wrong = np.flatnonzero(feeds != expected)
        if len(wrong):
            start = int(feeds[wrong[0] - 1]) + 1 if wrong[0] else 0
            found = f"a line of {int(feeds[wrong[0]]) - start} bytes"
            raise _malformed(source, start, found, f"{self._width} bytes")

    def _column(
        self, lines: np.ndarray, field: pa.Field, source: Origin, first: int = 0
    ) -> pa.Array:
        place = self._places.get(field.name)
        if place is None:
            return pa.nulls(len(lines), field.type)
        raw = pa.py_buffer(lines[:, place].tobytes())
        try:
            width = pa.binary(place.stop - place.start)
            texts = pa.Array.from_buffers(width, len(lines), [None, raw]).cast(pa.string())
            texts = pc.utf8_trim_whitespace(texts)
            return pc.if_else(pc.equal(texts, ""), None, texts).cast(field.type)
        except pa.ArrowInvalid as err:
            for row in range(len(lines) if len(lines) > 1 else 0):
                self._column(lines[row : row + 1], field, source, row)  # The one at fault raises.
            start = first * (self._width + 1)
            raise _malformed(source, start, str(err), f"{field.type} in {field.name}") from err


def _malformed(source: Origin, offset: int, found: str, expected: str) -> MalformedDataError:
    where = source.locate(offset)[1]
    return MalformedDataError("malformed line", where, found, expected, "Repair the line.")
