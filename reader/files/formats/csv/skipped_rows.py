"""The lines at the beginning of a file that `skipRows` leaves out.

They are lines with any content: quotes, comments and blanks mean nothing in them. Not here: the
header, which is the first record behind them (`header.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ...io.lines import LineBlock
from ...options import ReaderOptions


class SkippedRows:
    """Leaves out the first lines of one file, which is given from its beginning in whole lines."""

    def __init__(self, options: ReaderOptions) -> None:
        self._left = options.skip_rows
        separator = re.escape(options.line_sep.encode())
        self._ends = re.compile(separator or rb"\r\n|\r|\n")

    def without(self, data: bytes) -> bytes:
        """What has to be read of the next bytes of the file."""
        if not self._left:
            return data
        ends = [found.end() for found in islice(self._ends.finditer(data), self._left)]
        self._left -= len(ends)
        return b"" if self._left else data[ends[-1] :]

    def behind(self, blocks: Iterator[LineBlock]) -> Iterator[LineBlock]:
        """The blocks of the file, from its beginning, without those lines."""
        for block in blocks:
            data = self.without(block.data)
            if data:
                position = block.position + len(block.data) - len(data)
                yield replace(block, data=data, position=position)
