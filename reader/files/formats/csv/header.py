"""The header of a CSV file: where it ends, and which columns the fields of the file are.

Not here: how it is cut into names (`tokens.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from .....checkpoint_meta.splits import FileVersion
from ...options import ParseMode, ReaderOptions
from .refusals import header_misfit
from .scan import Token


class Header:
    """Makes a header's fields into the names of columns, by the options."""

    def __init__(self, columns: Sequence[str], options: ReaderOptions) -> None:
        self.columns = list(columns)
        self._options = options

    def names(self, tokens: Sequence[Token], file: FileVersion) -> list[str]:
        """For each field of the file its column; a name of no column for one that is unknown.

        Raises:
            SchemaMismatchError: header and schema do not belong together.
        """
        names = [(token or "").strip() for token in tokens]
        expected, options = self.columns, self._options
        folded, wanted = [n.lower() for n in names], [n.lower() for n in expected]
        if not options.enforce_schema:
            if missing := [n for n in expected if n.lower() not in folded]:
                raise header_misfit(file, names, expected, f"it lacks {', '.join(missing)}")
            given = {n.lower(): n for n in expected}
            return [given.get(n.lower(), n) for n in names]
        if options.mode is ParseMode.FAILFAST and not options.rescued_data_column:
            if len(names) != len(expected):
                raise header_misfit(file, names, expected, "the number of columns differs")
            if folded != wanted and sorted(folded) == sorted(wanted):
                raise header_misfit(file, names, expected, "the order differs")
        return list(expected)
