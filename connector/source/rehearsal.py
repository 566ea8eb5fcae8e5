"""Whether the table of a query takes its rows, and a store for finding out without a trace."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from typing_extensions import override

from ...checkpoint_meta.storage.urls import loaded_paths
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.testing import MemoryStateStore
from ...enumerator.files.ledger.new_files import OnOverwrite
from ...errors import OptionError
from ...tables.table_sink import TableSink
from ..options.model import SluiceOptions, parse_options
from .direct_write import written_schema
from .schemas import schema_of_rows
from .state_location import open_state


def check_rows(sink: object, options: SluiceOptions, schema: pa.Schema) -> None:
    """Check that a sink takes what becomes of rows that are read with this schema.

    Raises:
        TableError: its table does not.
        OptionError: no data files can be written of such rows.
    """
    written = written_schema(options, schema)
    if removes_rows(options) and not isinstance(sink, TableSink):
        raise OptionError(
            "onOverwrite=replace, onDelete=retract: this sink cannot remove earlier rows",
            "",
            "a function of your own" if callable(sink) else "no table",
            "a Delta or Iceberg table",
            "Write into a table, or set onOverwrite=reprocess, which adds the new rows only, and "
            "leave onDelete out.",
        )
    if isinstance(sink, TableSink):
        if removes_rows(options):
            sink.check_removal(options.write_file_column)
        places = [options.write_to] if options.write_to else []
        if options.write_copy == "never":
            places = [path.base.url for path in loaded_paths(options.path)]
        sink.check_places(places)
        sink.check_fit(written, options)


def removes_rows(options: SluiceOptions) -> bool:
    """True if files that change or are gone take rows of earlier batches along."""
    return options.on_overwrite is OnOverwrite.REPLACE or options.on_delete == "retract"


def checked_schema(
    options: SluiceOptions, sink: object, store: StateStore | None = None
) -> tuple[pa.Schema, bool]:
    """See `schema_of_rows`; a schema that the sink refuses is not stored."""
    return schema_of_rows(options, partial(check_rows, sink, options), store)


def check_sink(texts: Mapping[str, str], sink: object) -> None:
    """Check that a sink takes the rows of a query, for a host that does not ask it.

    Raises:
        SluiceError: it does not, or the options are wrong.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    checked_schema(options, sink, Rehearsal(open_state(options)))


class Rehearsal(MemoryStateStore):
    """A store whose changes stay in memory."""

    def __init__(self, inner: StateStore) -> None:
        super().__init__(inner.location)
        self._inner = inner
        self._deleted: set[str] = set()

    @override
    def publish(self, name: str, data: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.read(name)
            raise FileExistsError(name)
        super().publish(name, data)

    @override
    def read(self, name: str) -> bytes:
        is_changed = name in self.objects or name in self._deleted
        return super().read(name) if is_changed else self._inner.read(name)

    @override
    def list(self, directory: str) -> list[str]:
        names = {*self._inner.list(directory), *super().list(directory)}
        return sorted(name for name in names if f"{directory}/{name}" not in self._deleted)

    @override
    def delete(self, name: str) -> None:
        super().delete(name)
        self._deleted.add(name)
