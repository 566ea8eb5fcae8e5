"""The columns of JSON and CSV files, from the records at their beginning.

A record that does not parse says nothing here; what it does to the query is the reader's business.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from ....checkpoint_meta.splits import FileSplit, FileVersion
from ..evolution.types import merged
from ..formats.csv.tokens import CsvTokens
from ..formats.csv.types import TextTypes, text_leaf
from ..formats.json.news import tree_of_record
from ..formats.json.types import json_leaf, type_of_json
from ..formats.times.temporal import Temporal
from ..lines import line_blocks, whole_content
from ..options import ReaderOptions

_STEP = 256 * 1024


def json_columns(file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
    """The struct of the records in the first `limit` bytes; null if there are none."""
    exact = options.infer_column_types and not options.primitives_as_string
    kind: pa.DataType = pa.null()
    for text in _json_texts(file, options, limit):
        for record in _records(text, options):
            kind = merged(kind, type_of_json(record, exact=exact), json_leaf)
    return kind


def _json_texts(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    if options.multi_line:
        yield whole_content(file, options)
        return
    separator = options.line_sep.encode()
    for data in _beginning(file, options, limit):
        yield from data.split(separator) if separator else data.splitlines()


def _records(text: bytes, options: ReaderOptions) -> Iterator[dict[str, object]]:
    if not text or text.isspace():
        return
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = tree_of_record(text, options)
    for record in value if isinstance(value, list) else [value]:
        if isinstance(record, dict):
            yield record


def csv_columns(file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
    """The struct of the records in the first `limit` bytes; null if there are none."""
    tokens = CsvTokens(options)
    types = TextTypes(Temporal(options))
    names: list[str] = []
    kinds: list[pa.DataType] = []
    for record in _csv_records(file, options, tokens, limit):
        if not names and options.header:
            names = [(name or "").strip() for name in record]
            kinds = [pa.null()] * len(names)
            continue
        for index, text in enumerate(record):
            if index == len(kinds) and not options.header:
                kinds.append(pa.null())
            if index < len(kinds) and text is not None and text != options.null_value:
                kind = types.of(text) if options.infer_column_types else pa.string()
                kinds[index] = merged(kinds[index], kind, text_leaf)
    names = names or [f"_c{index}" for index in range(len(kinds))]
    named = [
        (name or f"_c{i}", kind) for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]
    return pa.struct(named) if named else pa.null()


def header_names(file: FileVersion, options: ReaderOptions) -> list[str]:
    """The names in the first record of a CSV file; none if it has no record."""
    record = next(_csv_records(file, options, CsvTokens(options), 1), [])
    return [(name or "").strip() or f"_c{index}" for index, name in enumerate(record)]


def _csv_records(
    file: FileVersion, options: ReaderOptions, tokens: CsvTokens, limit: int
) -> Iterator[list[str | None]]:
    separator = options.line_sep
    for data in _beginning(file, options, limit):
        text = data.decode("utf-8", "replace")
        if options.multi_line:
            lines = text.replace("\r\n", "\n").replace("\r", "\n")
            for record in tokens.records(lines, "\n", is_end=True):
                yield list(record.tokens)
            continue
        for line in text.split(separator) if separator else text.splitlines():
            found = tokens.line(line)
            if found is not None:
                yield found


def _beginning(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """Blocks of whole records up to `limit` bytes, at least one."""
    taken = 0
    step = min(_STEP, max(1024, limit))
    for block in line_blocks(FileSplit(file, 0, file.size), options, step):
        yield block.data
        taken += len(block.data)
        if taken >= limit:
            return
