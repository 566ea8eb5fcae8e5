"""The header of a CSV file, which names the columns."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from .....checkpoint_meta.files.file_split import FileVersion
from .....errors import SchemaMismatchError
from ...evolution.column_names import ColumnNames
from ...evolution.new_columns import NewColumnsSeen, refuse_unrelated
from ...options import ParseMode, ReaderOptions
from ..api import FormatContext
from .univocity_scanner import Token


def field_names(tokens: Sequence[Token], file: FileVersion) -> list[str]:
    """Return the names in a header by which columns are found; `_c0`, `_c1` for empty ones.

    Raises:
        SchemaMismatchError: two fields have one name, in any case.
    """
    names = [(token or "").strip() or f"_c{i}" for i, token in enumerate(tokens)]
    if ColumnNames(names).twice:
        # By name, one of the two values would be lost.
        raise SchemaMismatchError(
            "the header names a column twice",
            f"{file.path}, byte 0",
            ", ".join(map(repr, tokens))[:500],
            "names that differ in more than case and blanks",
            "Rename one of the two in the file. To read by position, give .schema(...) and leave "
            "enforceSchema true.",
        )
    return names


class CsvHeader:
    """Makes a header's fields into the names of columns, by the options."""

    def __init__(
        self, columns: Sequence[str], options: ReaderOptions, context: FormatContext
    ) -> None:
        self.columns = list(columns)
        self._options = options
        self._context = context

    def names(self, tokens: Sequence[Token], file: FileVersion) -> list[str]:
        """For each field of the file its column; a name of no column for one that is unknown.

        Raises:
            SchemaMismatchError: header and schema do not belong together.
            NewColumnsSeen: a name is no column of the schema, and that stops the query.
        """
        expected, options = self.columns, self._options
        # Inferred columns come from the headers of several files, which may order them differently.
        # A field that no column takes is rescued under its name, so the header has to be right.
        if self._may_lack or not options.enforce_schema:
            return self._by_name(field_names(tokens, file), file)
        # Positions count here, so that a name may be empty or come twice.
        names = [(token or "").strip() for token in tokens]
        folded, wanted = [n.lower() for n in names], [n.lower() for n in expected]
        # The other modes take a record of another length as malformed.
        if options.mode is ParseMode.FAILFAST and len(names) != len(expected):
            raise header_misfit(file, names, expected, "the number of columns differs")
        # Other names are taken by position: only a column that the header has elsewhere is sure to
        # be a mistake. Spark reads it by position, with a warning in its log.
        elsewhere = set(folded)
        for index, name in enumerate(wanted):
            if name in elsewhere and folded[index : index + 1] != [name]:
                raise header_misfit(file, names, expected, "the order differs")
        return list(expected)

    @property
    def _may_lack(self) -> bool:
        """True if a file may lack columns of the schema, and have others."""
        return self._context.schema_is_inferred or bool(self._options.rescued_data_column)

    def _by_name(self, names: Sequence[str], file: FileVersion) -> list[str]:
        """Return the header's names as the schema spells them."""
        columns = ColumnNames(self.columns)
        if self._may_lack:
            accept = self._options.accept_unrelated_files
            hint = separator_hint(names, self.columns, self._options.sep)
            where = f"{file.path}, byte 0"
            refuse_unrelated(where, names, self.columns, accept=accept, hint=hint)
        else:
            found = ColumnNames(names)
            if missing := [name for name in self.columns if name not in found]:
                raise header_misfit(
                    file, names, self.columns, f"it is missing {', '.join(missing)}"
                )
        if self._may_lack and self._options.mode_of_evolution.stops:
            query_columns = ColumnNames([*self._context.columns, *self.columns])
            if any(name not in query_columns for name in names):
                raise NewColumnsSeen(file.path)
        return [columns.find(name) or name for name in names]


LOG: Final = logging.getLogger("pyspark_sluice.csv")
_SEPARATORS: Final = {",": "','", ";": "';'", "\t": r"'\t'", "|": "'|'"}


def separator_hint(names: Sequence[str], columns: Sequence[str], used: str) -> str:
    """Say with which separator a header has columns of the schema, if with any."""
    wanted, line = ColumnNames(columns), used.join(names)
    for other, shown in _SEPARATORS.items():
        parts = [part.strip().strip('"') for part in line.split(other)]
        if other != used and any(part in wanted for part in parts):
            return (
                f"Its columns fit with sep={shown}, and a query reads one separator: convert the "
                "file, or leave it out with pathGlobFilter and read it by a query of its own"
            )
    return "It may be an error page"


def fitting_separator(text: str, count: int, used: str) -> str:
    """The separator with which a record of one field has `count` of them; empty without such."""
    others = (shown for other, shown in _SEPARATORS.items() if text.count(other) == count - 1)
    return next((shown for shown in others if shown != _SEPARATORS.get(used)), "")


def warn_of_one_column(name: str, file: FileVersion, used: str) -> None:
    """Say that a header of one column looks like one of several."""
    for other, shown in _SEPARATORS.items():
        if other in name and other != used:
            LOG.warning("%s: its header is one column, %r; set sep=%s?", file.path, name, shown)
            return


def header_misfit(
    file: FileVersion, names: Sequence[str], expected: Sequence[str], reason: str
) -> SchemaMismatchError:
    """Return the error for a header and a schema that do not belong together."""
    return SchemaMismatchError(
        f"the header does not fit the schema: {reason}",
        f"{file.path}, byte 0",
        ", ".join(names)[:500],
        ", ".join(expected)[:500],
        "Correct .schema(...), or set enforceSchema to false to match columns by name.",
    )
