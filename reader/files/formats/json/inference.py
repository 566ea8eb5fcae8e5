"""The columns of JSON files, from the records at their beginning.

A record that does not parse says nothing here; what it does to the query is the reader's business.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from .....checkpoint_meta.documents.file_split import FileVersion
from ...io.lines import whole_content
from ...options import ReaderOptions
from ..record_format import beginning
from .json_types import type_of_json
from .unknown_fields import tree_of_record


def json_columns(file: FileVersion, options: ReaderOptions, limit: int) -> pa.DataType:
    """The struct of the records in the first `limit` bytes; null if there are none."""
    exact = options.infer_column_types and not options.primitives_as_string
    records = (r for text in json_texts(file, options, limit) for r in _records(text, options))
    return type_of_json(records, exact=exact)


def json_texts(file: FileVersion, options: ReaderOptions, limit: int) -> Iterator[bytes]:
    """The text of each record in the first `limit` bytes."""
    if options.multi_line:
        yield whole_content(file, options)
        return
    separator = options.line_sep.encode()
    for data in beginning(file, options, limit):
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
