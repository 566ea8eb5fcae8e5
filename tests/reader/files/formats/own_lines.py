"""A line format of one's own, as short as it can be: lines of a number, a tab and a text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from typing_extensions import override

from pyspark_sluice.errors import MalformedDataError
from pyspark_sluice.formats import METADATA, Origin, Parsed, RecordFormat


class TabbedLines(RecordFormat):
    """Columns `id` and `text`."""

    @override
    def parse(self, data: bytes, source: Origin) -> Parsed:
        lines = data.split(b"\n")
        offsets = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
        if not lines[-1]:
            lines, offsets = lines[:-1], offsets[:-1]
        try:
            pairs = [line.decode().split("\t") for line in lines]
            texts = {
                "id": [int(number) for number, _ in pairs],
                "text": [text for _, text in pairs],
            }
        except ValueError as err:
            where = source.locate(0)[1]
            expected = "a number, a tab and a text"
            raise MalformedDataError("malformed line", where, str(err), expected, "") from err
        fields = [field for field in self.schema if field.name != METADATA]
        columns = [pa.array(texts[field.name], field.type) for field in fields]
        batch = pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields])
        rows_of = source.by_file(offsets, len(data)) if len(source.files) > 1 else None
        return Parsed(batch, rows_of=rows_of)
