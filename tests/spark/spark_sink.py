"""Reads what Spark's Parquet sink has committed, without a session of Spark."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa
from pyarrow import parquet


def rows_of_sink(sink: Path) -> pa.Table:
    """Return the rows of the files in the sink's log, which leaves out those of dead attempts."""
    lines = [
        line
        for part in (sink / "_spark_metadata").iterdir()
        if part.name.partition(".")[0].isdecimal()
        for line in part.read_text().splitlines()[1:]
    ]
    files = {url2pathname(urlsplit(json.loads(line)["path"]).path) for line in lines}
    return pa.concat_tables(parquet.read_table(file) for file in files)
