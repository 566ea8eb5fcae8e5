"""`sluice audit`: opens the sides, and compares them as of one moment."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...checkpoint_meta.checkpoint_snapshot import forked_from
from ...checkpoint_meta.documents.query_records import QueryEnds, recorded_ends
from ...checkpoint_meta.files.file_columns import Numbers
from ...checkpoint_meta.index.fingerprints import Names, SeenKeys, file_keys, names_in
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import is_local, joined, literal, local_name
from ...checkpoint_meta.stores.contract import StateStore
from ...enumerator.files.ledger.index_merge import release_free_memory
from ...errors import OptionError, is_installed, not_installed
from ...tables.row_counts import RowsOfQuery
from ...tables.table_sink import TableSink
from ..options.model import parse_options
from ..query.file_rows import UNKNOWN
from ..source.discovery import make_listing
from ..views.splits import files_as_of_head
from ..views.state_view import StateView, consistent
from .books import NAMED, Books, Delivery, Difference, Sides, deliveries
from .sides import InBooks, InTable, KnownToState, Listed, Places, no_files, read_with

_LOOKS: Final = 5


@dataclass(frozen=True)
class Audit:
    """What is to be compared."""

    store: StateStore
    sink: TableSink
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    expect: str = ""
    """Where lists of deliveries are; empty without one."""

    is_partial: bool = False
    recount: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the query, for the listing and for a second reader."""

    def run(self) -> Books:
        """Compare, of a query that runs between two batches.

        Raises:
            OptionError: the state does not say what the query reads, or an option is wrong.
            MissingPathError: the input or the list is not there.
        """
        ends = recorded_ends(self.store)
        if not ends.input:
            raise OptionError(
                "the state does not say which input the query reads",
                self.store.location,
                "no record of the input",
                "the state of a query that has read a batch",
            )
        declared = None
        if self.expect:
            declared = deliveries(self.expect, ends.input, self.storage_options)
        for _ in range(_LOOKS):
            refs = StateView(self.store).refs
            books = consistent(lambda: self._books(ends, declared))
            # A batch that was added between two looks would be a difference.
            if StateView(self.store).refs == refs:
                break
        else:
            books.differences.append(
                Difference("the query went on during each look: audit it again", 1, (), True)
            )
        return books

    def _books(self, ends: QueryEnds, declared: Sequence[Delivery] | None) -> Books:
        view, places = StateView(self.store), Places()
        head, chain = files_as_of_head(view), view.chain()
        options = {"fileFormat": "json", **_texts(read_with(chain)), **self.options}
        place = {"checkpointLocation": self.store.location}
        # A commit also has options that a call with this format may not set.
        found_by = {"fileFormat": options["fileFormat"], **self.options, **place}
        found_by["path"] = joined([literal(root) for root in ends.input])
        listing = make_listing(parse_options(found_by, streaming=True, names_format=True))
        # Only a sender's sizes and checksums say anything about a file that the state knows.
        is_claimed = any(one.bytes is not None or one.digests for one in declared or ())

        def seen() -> Iterator[pa.Array]:
            for batch in files_as_of_head(StateView(self.store)).seen("path"):
                yield batch.column("path")

        with ThreadPoolExecutor(2) as pool:
            known = head.keys()
            in_books = no_files if is_claimed else InBooks(places, known.names)
            passing = pool.submit(Listed.of, listing, places, in_books)
            state = KnownToState.of(view, head, known, chain)
            # After the state was read: the table has all that is complete by then.
            own, counting = self._in_table(pool, _lineages(view), ends.file_column)
            # What was read of the state is not needed while the table is read.
            del view, head, chain
            release_free_memory()
            listed = passing.result()
            if not is_claimed and state.is_retracted_in(places):
                # It is there again, and the options may leave it out.
                listed = Listed.of(listing, places, state.in_books(places))
            table = counting.result()
        if declared:
            places.add([one.path for one in declared])
        keys, directory, directories = places.all(state.keys, seen())
        sides = Sides(keys, directory, directories, state, listed, table, declared, self.is_partial)

        def paths() -> Iterator[pa.Array]:
            yield from seen()
            yield pa.array([one.path for one in declared or ()], pa.string())
            yield from (pa.array(found.paths, pa.string()) for found in listing.listing(no_files))

        def path_of(names: Names) -> Sequence[str]:
            return _named(names, paths())

        books = sides.close(self._recounted(options, paths), path_of, self.storage_options)
        # Rows of files that neither the query nor the input nor a list knows, or of no file.
        books.rows["others"] = None if table is None else table.rows_of_others(keys)
        books.rows["data_files"] = None if own.is_inexact else own.rows
        has_column, is_changed = table is not None, state.is_changed
        found = self._totals(books, own, has_column=has_column, is_changed=is_changed)
        books.differences += found
        return books

    def _in_table(
        self, pool: Executor, lineages: Collection[str], column: str
    ) -> tuple[RowsOfQuery, Future[InTable | None]]:
        sink, opened = self.sink, self.sink.opened()
        has_deletes = sink.has_deletes(opened)
        own = RowsOfQuery.of(
            sink.files(opened), lineages, self.storage_options, has_deletes=has_deletes
        )

        def rows() -> InTable | None:
            counts = sink.rows_by(opened, column) if column and not own.missing else None
            return None if counts is None else InTable.of(counts)

        return own, pool.submit(rows)

    def _recounted(
        self, options: Mapping[str, str], paths: Callable[[], Iterator[pa.Array]]
    ) -> Callable[[SeenKeys], Numbers] | None:
        if not self.recount:
            return None
        reader = Recount(options, self.storage_options)

        def rows(keys: SeenKeys) -> Numbers:
            counted = np.full(len(keys), UNKNOWN, np.int64)
            for column in paths():
                at = keys.find(names_in(column))
                for row, path in zip(at.tolist(), column.to_pylist(), strict=True):
                    if row >= 0 and counted[row] == UNKNOWN:
                        # What it does not read, or is gone, is reported as not verified.
                        with suppress(ValueError, OSError):
                            counted[row] = reader.rows(path)
            return counted

        return rows

    def _totals(
        self, books: Books, own: RowsOfQuery, *, has_column: bool, is_changed: bool
    ) -> Iterator[Difference]:
        """What the data files of the query say as a whole, where no column names the file."""
        if own.missing:
            what, count = "data files that the table names are gone", len(own.missing)
            yield Difference(what, count, own.missing[:NAMED])
            return
        if has_column:
            return
        if own.is_inexact or is_changed:
            why = "writeTransform has changed how many there are"
            if own.is_inexact:
                why = "others have written or rewritten data files, and no column names files"
            yield Difference(f"rows of the table: {why}", 1, unverified=True)
            return
        books.rows["table"] = own.rows
        rows = books.rows["read"]
        if rows is None and self.expect and not (self.is_partial or books.files["waiting"]):
            rows = books.rows["declared"]
        if rows is None:
            what = "rows of the table: neither a list nor the state says how many"
            yield Difference(what, 1, unverified=True)
        elif rows != own.rows:
            yield Difference(f"rows of the table: {own.rows:,} instead of {rows:,}", 1)


def _lineages(view: StateView) -> set[str]:
    """Return the lineage of the query, and of the one that it continues."""
    if not view.head.checkpoint:
        return set()
    forked = forked_from(view.store)
    own = view.history.load(view.head).identity.lineage
    return {own} if forked is None else {own, forked.lineage}


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as a reader commit has them, as a call passes them."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in options.items()
        if name not in ("path", "basePath")
    }


def _named(names: Names, columns: Iterator[pa.Array]) -> Sequence[str]:
    """The paths of some files, in order; of one that nobody can name the key in the table."""
    keys = SeenKeys.sort(names)
    found: dict[int, str] = {}
    for column in columns:
        if len(found) == len(keys):
            break
        at = keys.find(names_in(column))
        for row in np.flatnonzero(at >= 0).tolist():
            found.setdefault(int(at[row]), column[row].as_py())
    order = keys.find(names).tolist()
    return sorted(found.get(row, key) for row, key in zip(order, file_keys(names), strict=True))


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
