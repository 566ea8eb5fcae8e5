"""The columns of CSV files, from the records at their beginning.

A record that does not parse says nothing here; what it does to the query is the reader's business.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .....checkpoint_meta.documents.file_split import FileVersion
from ...evolution.type_growth import merged
from ...options import ReaderOptions
from ...values.text_types import TextTypes, text_leaf
from ...values.times.temporal import Temporal
from ..fast_then_exact import records_of
from ..record_format import beginning
from .header import field_names
from .record_splitter import CsvTokens, Token, break_of


def csv_columns(file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
    """The struct of the records in the first `limit` bytes; null if there are none.

    Raises:
        SchemaMismatchError: the header names a column twice.
    """
    tokens = CsvTokens(options)
    types = TextTypes(Temporal(options))
    names: list[str] = []
    kinds: list[pa.DataType] = []
    for record in _csv_records(file, options, tokens, limit):
        if not names and options.header:
            names = field_names(record, file)
            kinds = [pa.null()] * len(names)
            continue
        for index, text in enumerate(record):
            if index == len(kinds) and not options.header:
                kinds.append(pa.null())
            if index < len(kinds) and text is not None and text != options.null_value:
                kind = types.of(text) if options.infer_column_types else pa.string()
                kinds[index] = merged(kinds[index], kind, text_leaf)
    names = names or [f"_c{index}" for index in range(len(kinds))]
    return pa.struct(list(zip(names, kinds, strict=True))) if names else pa.null()


def _csv_records(
    file: FileVersion, options: ReaderOptions, tokens: CsvTokens, limit: int
) -> Iterator[list[Token]]:
    blocks = beginning(file, options, limit)
    if options.multi_line:
        data = b"".join(blocks)
        text = data.decode("utf-8", "replace")
        line_break = options.line_sep or break_of(text)
        for record in tokens.records(text, line_break, is_end=len(data) < limit):
            yield record.tokens
        return
    for block in blocks:
        for _, line in records_of(block, options.line_sep.encode()):
            found = tokens.line(line.decode("utf-8", "replace"))
            if found is not None:
                yield found
