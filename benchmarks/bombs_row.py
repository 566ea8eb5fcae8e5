"""Bombs: files of a few bytes that expand to gigabytes, read with the default options.

Each in a process of its own, without Spark. `tests/reader/files/io/bombs.py` makes them, and the
tests next to it read them in small.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark_sluice.tests.reader.files.io import bombs

from .bench import Bench, Result

_ROWS = 40_000
"""Of 50,000 bytes each: 2 GB."""

_WHOLE = {"multi_line": True}

_GZIP = partial(bombs.without_end, codec="gz")
_BOMBS: dict[str, tuple[str, Mapping[str, Any], Callable[[Path], object]]] = {
    "JSON: a record without an end in gzip, 160 MB": ("json", {}, partial(_GZIP, size=160_000_000)),
    "JSON: a record without an end in gzip, 1.2 GB": (
        "json",
        {},
        partial(_GZIP, size=1_200_000_000),
    ),
    "JSON: a document of 315 MB": ("json", _WHOLE, partial(bombs.without_end, size=315_000_000)),
    "CSV: an open quote for 315 MB": (
        "csv",
        _WHOLE,
        partial(bombs.without_end, size=315_000_000, before=b'"'),
    ),
    "XML: an element without an end, 315 MB": (
        "xml",
        {"row_tag": "r"},
        partial(bombs.without_end, size=315_000_000, before=b"<r><a>"),
    ),
    "Parquet: a dictionary": ("parquet", {}, partial(bombs.parquet_dictionary, rows=_ROWS)),
    "Parquet: pages that widen in zstd": ("parquet", {}, partial(bombs.parquet_pages, rows=_ROWS)),
    "Parquet: delta encoding": ("parquet", {}, partial(bombs.parquet_deltas, rows=_ROWS)),
    "Arrow: a dictionary": ("arrow", {}, partial(bombs.arrow_dictionary, rows=_ROWS)),
    "Arrow: views": ("arrow", {}, partial(bombs.arrow_views, rows=_ROWS)),
    "Arrow: a batch in zstd": ("arrow", {}, partial(bombs.arrow_compressed, rows=_ROWS)),
    "Arrow: a batch that is not compressed, 1 GB": (
        "arrow",
        {},
        partial(bombs.arrow_plain, rows=_ROWS),
    ),
    "ORC: a dictionary": ("orc", {}, partial(bombs.orc_dictionary, rows=_ROWS)),
    "Avro: a block in deflate": ("avro", {}, partial(bombs.avro_block, rows=_ROWS)),
    "Avro: 30 M nulls": ("avro", {}, bombs.avro_nulls),
}


def of_bombs(bench: Bench) -> Iterator[Result]:
    """Files of a few bytes that expand to gigabytes: peak memory and time of their readers."""
    del bench
    for name, (file_format, options, write) in _BOMBS.items():
        suffix = ".gz" if "gzip" in name else ""
        with tempfile.TemporaryDirectory(prefix="sluice-bomb-") as folder:
            given = {"file_format": file_format, **options}
            found = bombs.outcome(Path(folder), write, given, suffix)
            size = (Path(folder) / f"bomb{suffix}").stat().st_size
        became = f"refused: {found.error.partition(':')[0]}" if found.error else "read"
        note = f"{size:,} bytes; {found.seconds:.1f} s; {became}"
        yield Result(name, found.peak / 2**20, None, "MiB", "", note)
