"""Text: each line is a row with one string column, or each file is, with `wholetext`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from .....checkpoint_meta.files.file_split import FileSplit
from .....errors import OptionError
from ...io.lines import whole_content
from ...options import ReaderOptions
from ...values.rows import batch_of
from ...values.strings import repaired
from ..api import NO_CONTEXT, Decoded, FormatContext, Parsed
from ..records.record_format import METADATA, Origin, RecordFormat, data_schema


class TextFormat(RecordFormat):
    """Lines without their separator. Bytes that are not UTF-8 become U+FFFD, as in Spark."""

    def __init__(
        self, schema: pa.Schema, options: ReaderOptions, context: FormatContext = NO_CONTEXT
    ) -> None:
        super().__init__(schema, options, context)
        data = data_schema(schema, options)
        self._data = data
        strings = [f.name for f in data if pa.types.is_string(f.type)]
        # Partition columns are not known where a file is only cut, or has none in its path.
        self._column = "value" if "value" in strings else next(iter(strings), "")
        if not strings:
            names = ", ".join(f"{f.name} {f.type}" for f in schema if f.name != METADATA)
            raise OptionError(
                "the text format has one string column",
                found=names or "no column",
                expected="a schema such as: value STRING",
            )

    @property
    @override
    def spans_lines(self) -> bool:
        return self.options.wholetext

    @override
    def decode(self, split: FileSplit) -> Iterator[Decoded]:
        if not self.options.wholetext:
            yield from super().decode(split)
            return
        data = whole_content(split.file, self.options)
        # As in Spark a compressed file without content is an empty text, a file without bytes none.
        if split.file.size:
            yield Decoded(self._batch(pa.array([data], pa.binary())))

    @override
    def parse(self, data: bytes, source: Origin) -> Parsed:
        separator = self.options.line_sep
        # Hadoop's line reader ends a line at LF, CR and CR LF, unless a separator is set.
        if not separator and b"\r" in data:
            data, source = _normalised(data, source)
        separator = separator or "\n"
        lines = pc.split_pattern(pa.array([data], pa.binary()), separator).values
        # A separator at the end begins no other line.
        lines = lines[: len(lines) - (not lines[-1].as_buffer().size)]
        batch = self._batch(lines)
        if len(source.files) == 1:
            return Parsed(batch)
        ends = np.cumsum(pc.binary_length(lines).to_numpy() + len(separator.encode()))
        starts = np.concatenate(([0], ends))[: len(lines)]
        return Parsed(batch, rows_of=source.by_file(starts, len(data)))

    def _batch(self, lines: pa.BinaryArray) -> pa.RecordBatch:
        return batch_of(self._data, len(lines), {self._column: repaired(lines)})


def _normalised(data: bytes, source: Origin) -> tuple[bytes, Origin]:
    """CR and CR LF as LF; positions of packed files are moved along."""
    parts = [
        data[begin:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for begin, end in pairwise([*source.starts, len(data)])
    ]
    starts = [0, *accumulate(map(len, parts))][:-1]
    return b"".join(parts), replace(source, starts=starts)
