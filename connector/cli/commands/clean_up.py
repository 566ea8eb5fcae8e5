"""The commands that make a state or a table smaller: `compact`, `compact-table` and `sweep`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Final

from ....checkpoint_meta.documents import layout
from ....checkpoint_meta.documents.cleanup_marks import CleanupMarks
from ....checkpoint_meta.history import CheckpointHistory
from ....checkpoint_meta.storage.written_values import parse_bytes, parse_milliseconds
from ....checkpoint_meta.stores.contract import StateStore, in_parallel
from ....enumerator.coordinator.start_position import COMPACTION
from ....enumerator.files.ledger_source import OfflineFileSource
from ....enumerator.offline.offline_state import Compaction, OfflineClaim
from ....errors import OptionError, StateError, TableError
from ....reader.direct_write.place import Place
from ....reader.direct_write.unreferenced_files import sweep as look
from ....reader.files.io.cut_places import FOLDER
from ....tables.delta_table import DeltaSink
from ....tables.table_files import TableFiles, named_by_tables_of
from ...query.file_rows import RecordedRows
from ...views.state_view import StateView
from ..answer import Answer
from ..arguments import (
    EditArguments,
    StorageOptions,
    ViewArguments,
    Yes,
    argument,
    check_is_of_files,
    parsed,
    parsed_storage_options,
    setting,
)
from ..offline_edit import Plan, edit

_NESTED: Final = (layout.READERS, layout.ABANDONED)
_FLAT: Final = (
    *(layout.EPOCHS, layout.HEARTBEATS, layout.CHECKPOINTS, layout.BASES, layout.INDEX),
    *(layout.CLEANED, layout.ORDERS, layout.REREADS, FOLDER, layout.SCHEMAS, layout.ROWS),
)
_SINGLE: Final = (layout.FORMAT, layout.SEED)
_BASES_LEFT: Final = 2


def compact_plan(store: StateStore, retained: int, retain_for: str = "0") -> Plan:
    """Plan what `sluice compact` does."""
    milliseconds = parsed("--retain-for", retain_for, parse_milliseconds)
    view = StateView(store)
    chain = view.chain()
    # What a reader has acknowledged is in Spark's log, and so is all that it descends from.
    acknowledged = [at for at, link in enumerate(chain) if link.commits or link.abandoned]
    if not acknowledged:
        raise OptionError(
            "there is nothing to compact",
            store.location,
            "no checkpoint that a reader has committed",
            "the state of a query that has read a batch",
        )
    links = chain[acknowledged[0] :]
    newest = links[0].checkpoint.header
    check_is_of_files(view, "compacted", "A query of that source writes bases by itself.")
    # What cleanSource has not come to is needed for it.
    all_marks = CleanupMarks(store, 0).found()
    marks = {mark.ref for mark in all_marks if mark.lineage == newest.lineage}
    if marks:
        behind = [link.ref in marks for link in links]
        retained = max(retained, behind.index(True) if any(behind) else len(links))
    # The newest checkpoint bounds the wall clock, which may be ahead: then more is retained.
    now = min(int(time.time() * 1_000_000), newest.created)
    younger = now - milliseconds * 1000 if milliseconds else None
    report: dict[str, Any] = {
        "state": store.location,
        "checkpoint": newest.checkpoint,
        "epoch": newest.epoch,
        "retain": retained,
        # The newest one is kept in addition to those that are retained.
        "deletes_at_most": max(0, len(links) - retained - 1),
        "before": sizes(store),
    }

    def write() -> dict[str, Any]:
        # A query that has started since the check is fenced by this claim and stops.
        claim = OfflineClaim.take(store, COMPACTION)
        rows = RecordedRows(store)
        commits_go = rows.add if rows.are_kept else list
        Compaction(claim, OfflineFileSource(), commits_go).run(links[0].ref, retained, younger)
        return {"after": sizes(store)}

    # If no checkpoint and no base can go, two new bases would only make the state larger.
    is_small = not report["deletes_at_most"] and report["before"]["bases"] <= _BASES_LEFT
    note = "the state is small already: there is nothing to compact"
    return Plan(report, None if is_small else write, [note] if is_small else ())


def sizes(store: StateStore) -> dict[str, int]:
    """Objects of a state directory, and bytes in them."""
    names = list(_names(store))
    index_sizes = _known_sizes(store)
    unknown = [name for name in names if name not in index_sizes]
    read = sum(in_parallel(lambda name: _size(store, name), unknown))
    return {
        "objects": len(names),
        "bytes": read + sum(index_sizes.get(name, 0) for name in names),
        "checkpoints": sum(name.startswith(f"{layout.CHECKPOINTS}/") for name in names),
        "bases": sum(name.startswith(f"{layout.BASES}/") for name in names),
        "index_objects": sum(name.startswith(f"{layout.INDEX}/") for name in names),
    }


def _known_sizes(store: StateStore) -> dict[str, int]:
    """Sizes of the objects of the index, which may be large, as bases give them."""
    history, sizes_by_name = CheckpointHistory(store), dict[str, int]()
    for ref in history.bases():
        # A damaged base costs some requests here; the compaction itself reports it.
        with suppress(StateError):
            attachments = history.read_base(ref).header.attachments
            sizes_by_name |= {f"{layout.INDEX}/{each.name}": each.bytes for each in attachments}
    return sizes_by_name


def _names(store: StateStore) -> Iterator[str]:
    yield from (name for name in _SINGLE if _size(store, name))
    nested = (f"{directory}/{leaf}" for directory in _NESTED for leaf in store.list(directory))
    for directory in (*_FLAT, *nested):
        yield from (f"{directory}/{leaf}" for leaf in store.list(directory))


def _size(store: StateStore, name: str) -> int:
    try:
        return len(store.read(name))
    except FileNotFoundError:
        return 0


def compact(
    arguments: EditArguments,
    retain: Annotated[
        int,
        # Spark keeps as many batches in its own logs by default (minBatchesToRetain).
        setting("NUMBER", "Keep this many checkpoints.", least=100),
    ] = 100,
    retain_for: Annotated[
        str,
        setting(
            "DURATION",
            "Also keep younger checkpoints than this, the query's retainCheckpointsFor, such "
            "as 7d.",
        ),
    ] = "0",
) -> Answer:
    """Make the state of a stopped query small.

    Writes bases, merges the index, and deletes what no retained checkpoint needs.
    """
    return edit(arguments, lambda store: compact_plan(store, retain, retain_for))


def compact_table(
    table: Annotated[str, argument("TABLE", "Use this table: delta:URL.")],
    target_bytes: Annotated[
        str, setting("SIZE", "Write files of about this size, such as 128m.")
    ] = "128m",
    storage_options: StorageOptions = "{}",
) -> Answer:
    """Rewrite the small files of a Delta table.

    Larger files replace them in one commit. The query may be running. VACUUM deletes the old files.
    """
    kind, _, place = table.partition(":")
    if kind != "delta" or not place:
        raise OptionError(
            "compact-table: not a Delta table",
            "",
            table,
            "delta:URL; pyiceberg cannot rewrite the files of an Iceberg table, so use another "
            "engine for it, such as Spark's procedure rewrite_data_files",
        )
    size = parsed("--target-bytes", target_bytes, parse_bytes)
    return Answer(DeltaSink(place, parsed_storage_options(storage_options)).compact(size))


def sweep(
    arguments: ViewArguments,
    write_to: Annotated[
        str,
        argument("WRITE_TO", "Search this directory: the query's writeTo, or its badRecordsPath."),
    ],
    table: Annotated[
        list[str],
        setting(
            "TABLE",
            "Report committed files that this table does not have: a Delta table (delta:URL, or "
            "the URL alone), the directory of tables.manifest, or an Iceberg *.metadata.json. "
            "Repeat it for more.",
        ),
    ] = [],  # noqa: B006 - typer wants a list
    yes: Yes = False,
) -> Answer:
    """Delete files that losing task attempts left behind.

    Without --yes, they are only listed. The query may be running.
    """
    storage = parsed_storage_options(arguments.storage_options)
    store = arguments.opened()
    place = Place(write_to, storage)
    around = named_by_tables_of(write_to, storage)
    tables = [_opened(one, storage) for one in table]

    def in_table() -> Callable[[str], bool]:
        is_named = around()
        return lambda path: is_named(path) or any(one.has(path) for one in tables)

    files = look(place, store, in_table=in_table, delete=yes)
    # A batch may become part of a table meanwhile.
    tables = [_opened(one, storage) for one in table]
    outside = [path for path in files.named if tables and not any(one.had(path) for one in tables)]
    lost = {
        "superseded": files.superseded,
        "undecided": files.undecided,
        "named": len(files.named),
        "outside": outside if tables else None,
    }
    note = "deleted" if yes else "nothing was deleted: add --yes to do it"
    notes = [note] if files.superseded else []
    shown = {
        "files that commits name": len(files.named),
        "of those in no table": lost["outside"],
        "of attempts that lost": files.superseded or "none",
        "whose reader has no commit": files.undecided or "none",
    }
    return Answer({**lost, "deleted": yes}, [shown, *notes])


def _opened(table: str, storage_options: Mapping[str, Any]) -> TableFiles:
    # As other commands name it.
    files = TableFiles.of(table.removeprefix("delta:"), storage_options)
    if not files.names:
        raise TableError(
            "no table to compare data files with",
            table,
            "neither a Delta table nor manifests, or no data files in it",
            "a Delta table, the directory of tables.manifest, or an Iceberg *.metadata.json",
        )
    return files
