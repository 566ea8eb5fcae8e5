"""Counts the rows of input files with another reader: DuckDB, which shares no code with ours."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import is_local, local_name
from ...errors import OptionError, is_installed, not_installed

_LINES: Final = (
    "read_csv($1, columns = {{'line': 'VARCHAR'}}, delim = '', quote = '', escape = '', "
    "header = false, null_padding = false)"
)
_READERS: Final = {
    "json": f"{_LINES} WHERE trim(line) <> ''",
    "csv": "read_csv($1, all_varchar = true, {})",
    "text": _LINES,
    "parquet": "read_parquet($1)",
}
_OF_CSV: Final = {"header": "header", "sep": "delim", "delimiter": "delim", "quote": "quote"}


class Recount:
    """Rows of files, one after the other."""

    def __init__(self, options: Mapping[str, str], storage_options: Mapping[str, Any]) -> None:
        """`options` are those of the query.

        Raises:
            OptionError: DuckDB is not installed, or does not read the format.
        """
        if not is_installed("duckdb"):
            raise not_installed("--recount needs a second reader", "", "duckdb", "recount")
        file_format = options["fileFormat"]
        if file_format not in _READERS or options.get("multiLine", "").lower() == "true":
            raise OptionError(
                "--recount cannot count rows of this format",
                "",
                f"fileFormat={file_format}",
                f"{', '.join(_READERS)}, a record a line",
                "Pass the rows of each file in a list, with --expect.",
            )
        import duckdb

        self._storage_options = storage_options
        self._connection = duckdb.connect()
        csv = [f"{_OF_CSV[k]} = {_literal(v)}" for k, v in options.items() if k in _OF_CSV]
        if not any(each.startswith("header") for each in csv):
            csv.append("header = false")
        source = _READERS[file_format].format(", ".join(csv))
        self._sql = f"SELECT count(*) FROM {source}"  # noqa: S608 - options as literals

    def rows(self, path: str) -> int:
        """The rows of one file.

        Raises:
            ValueError: DuckDB does not read it; says why.
            OSError: it cannot be opened.
        """
        import duckdb

        storage, name = open_storage(path, self._storage_options)
        try:
            if is_local(path):
                return self._count(local_name(path))
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, Path(name).name)
                with copy.open("wb") as file:
                    file.writelines(storage.parts(name))
                return self._count(str(copy))
        except duckdb.Error as error:
            raise ValueError(str(error).partition("\n")[0]) from error

    def _count(self, path: str) -> int:
        # It takes these for signs of a pattern.
        name = re.sub(r"[*?\[]", r"[\g<0>]", path)
        row: Sequence[int] | None = self._connection.execute(self._sql, [name]).fetchone()
        assert row is not None
        return row[0]


def _literal(text: str) -> str:
    quoted = text.replace("\\t", "\t").replace("'", "''")
    return quoted if quoted in ("true", "false") else f"'{quoted}'"
