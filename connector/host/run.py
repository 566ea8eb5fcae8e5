"""`pyspark_sluice.run`: a query without Spark, as a function; and its first batch as a dry run."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...checkpoint_meta.storage.storage_errors import patiently
from ...checkpoint_meta.storage.urls import hadoop_path
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError, SluiceError, TableError
from ...reader.files.options.values import json_or_none
from ...tables import delta, iceberg, manifest
from ...tables.manifests import MANIFESTS
from ..options.call import checked, direct_write
from ..options.model import parse_options
from ..query.driver import StreamDriver
from ..query.start_check import StartTerms
from ..source.rehearsal import Rehearsal, checked_schema
from ..source.schemas import canonical
from ..source.state_location import open_state
from .batch_log import BatchLog, BatchLoop
from .embedded_query import EmbeddedRun, RunReport, Sink, SinkTarget, sizes_of
from .wording import as_options
from .worker_pool import WorkerPool

_CATALOGS: Final = ("uc", "unity", "glue", "hive")


def run(  # noqa: PLR0913 - those of `stream` and those of a run, by name
    path: str | Mapping[str, object],
    *,
    checkpoint: str = "",
    format: str = "",  # noqa: A002 - as in `stream`
    to: str | Sink,
    schema: str | None = None,
    once: bool = True,
    every: float = 60.0,
    workers: int | None = None,
    wait: float | None = 0.0,
    task_timeout: float | None = None,
    **options: object,
) -> RunReport:
    """Read new files into a table without Spark, each row exactly once; return what was read.

    Uses the same checkpoint as a Spark query with `writeTo` and the same options. Either can
    continue it, so stop one and start the other.

        >>> report = run(landing, checkpoint=checkpoint, format="json", to=f"delta:{table}")
        >>> report.rows
        2

    Args:
        path: the directory, file or URL to ingest; or all options of a query of Spark, with the
            names that they have there, to continue that query or to be continued by it.
        checkpoint: the `checkpointLocation` of the query: a directory of its own.
        format: the `fileFormat`.
        to: `delta:URL`, `iceberg:CATALOG.TABLE`, `parquet:URL`, or a sink of `tables`, or a
            function that gets a `FileBatch` and the batch number. A sink or a function needs the
            option `writeTo`. A function must accept a batch that it already has.
        schema: columns of the rows, such as `id long, name string`. Without it, the columns and
            their types are inferred, and the schema evolves.
        once: return when everything is read that was there at the start. Otherwise look for new
            files until the process ends.
        every: seconds between two looks, without `once`.
        workers: processes that read. By default there is one for each core, and small batches are
            read in this process.
        wait: seconds to wait for another run on this checkpoint to end. None takes over from it: it
            ends with `FencedError`.
        task_timeout: seconds after which a process is ended that has not finished its task. The
            task is tried again, four times at most. By default there is no bound, and a warning
            after a minute. With a bound every task is read in a process.
        options: other options of the source.

    Raises:
        QueryRunningError: another run on this checkpoint is at work. Nothing was read.
        SluiceError: the options are wrong, or the query failed. Nothing is lost; call it again.
    """
    call: Mapping[str, object]
    if isinstance(path, Mapping):
        call = {**path, **({"writeSchema": schema} if schema else {}), **options}
    else:
        named = {"checkpoint": checkpoint, "format": format}
        call = direct_write(path, **named, schema=schema, options=options)
    terms = StartTerms(wait or 0.0, take_over=wait is None)
    with WorkerPool(workers) as pool:
        run = EmbeddedRun(
            *checked_with_target(call, to),
            pool,
            every=None if once else every,
            terms=terms,
            task_timeout=task_timeout,
        )
        try:
            batches = list(run.batches())
        except SluiceError as error:
            raise error.reworded(*map(as_options, error.args)) from error.__cause__
    assert run.summary is not None
    return RunReport(batches, run.summary)


def checked_with_target(
    options: Mapping[str, object], to: str | Sink
) -> tuple[dict[str, str], SinkTarget]:
    """The options as Spark would pass them, with `writeTo`, and the target.

    Raises:
        OptionError: one of them is wrong.
    """
    target = target_of(to, _storage_options(options))
    names = {name.lower().replace("_", "") for name in options}
    if target.write_to and "writeto" not in names:
        options = {**options, "writeTo": target.write_to}
    return checked(options), target


def _storage_options(options: Mapping[str, object]) -> Mapping[str, Any]:
    # Before the other options, whose checks need the place of the table.
    of_storage = (v for n, v in options.items() if n.lower().replace("_", "") == "storageoptions")
    value = next(of_storage, {})
    return json_or_none(value) or {} if isinstance(value, str) else dict(value)  # type: ignore[call-overload]


def target_of(to: str | Sink, storage_options: Mapping[str, Any]) -> SinkTarget:
    """The target that `--to` or `to` names.

    Raises:
        OptionError: it names no kind of target, or a table that cannot be opened.
    """
    if not isinstance(to, str):
        return SinkTarget(to)
    place = check_target_name(to)
    if to.startswith("delta:"):
        return SinkTarget(delta(place, storage_options=storage_options), place)
    if to.startswith("parquet:"):
        directory = f"{place.rstrip('/')}/{MANIFESTS}"
        return SinkTarget(manifest(directory, storage_options=storage_options), place)
    catalog, _, name = to.removeprefix("iceberg:").partition(".")
    return _iceberg(catalog, name, storage_options)


def check_target_name(to: str) -> str:
    """The place of data files; empty where only a catalog knows it.

    Raises:
        OptionError: it names no kind of target.
    """
    kind, _, place = to.partition(":")
    if kind == "delta" and place.partition("://")[0] in _CATALOGS:
        raise OptionError(
            "to: names of catalogs are not known for Delta tables",
            "",
            to,
            "the URL of the table's directory, such as delta:s3://bucket/table",
            "The catalog says where the table is (DESCRIBE DETAIL); it must not be catalogManaged.",
        )
    if place and kind in ("delta", "parquet"):
        return place
    if kind == "iceberg" and place.partition(".")[2]:
        return ""
    raise OptionError("to: not a table", "", to, "delta:URL, iceberg:CATALOG.TABLE or parquet:URL")


def _iceberg(catalog: str, name: str, storage_options: Mapping[str, Any]) -> SinkTarget:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import (
        ServerError,
        ServiceUnavailableError,
        TooManyRequestsError,
    )

    def load() -> Any:
        try:
            return load_catalog(catalog).load_table(name)
        except (ServerError, ServiceUnavailableError, TooManyRequestsError) as error:
            raise OSError(errno.EAGAIN, f"{type(error).__name__}: {error}") from error

    try:
        table = patiently(load)
    except OSError as error:
        raise TableError(
            "to: the catalog does not respond",
            f"{catalog}.{name}",
            str(error),
            "a catalog that responds",
            "Wait until the catalog responds, then start again: nothing was begun.",
        ) from error
    except Exception as error:  # each catalog has errors of its own
        found = f"{type(error).__name__}: {error}"
        expected = "a catalog that pyiceberg is configured for, and a table in it"
        raise OptionError(
            "to: cannot open the table", f"{catalog}.{name}", found, expected
        ) from error
    sink = iceberg(table, storage_options=storage_options)
    return SinkTarget(sink, f"{table.location().rstrip('/')}/data")


@dataclass(frozen=True)
class PlannedBatch:
    """The batch that comes next."""

    number: int
    splits: int
    bytes: int
    is_repeated: bool
    """True if a host has begun it and has not finished it."""


def planned_batch(texts: Mapping[str, str], target: SinkTarget) -> PlannedBatch | None:
    """The batch that a run with these options would begin with; None if nothing is new.

    A query that runs on the checkpoint is not disturbed.

    Raises:
        SluiceError: the options, the log or the state are not usable, or the table refuses rows.
    """
    options = parse_options(texts, streaming=True, names_format=True)
    place = open_store(hadoop_path(options.checkpoint_location or ""), options.storage_options)
    log = BatchLog(Rehearsal(place))
    state = Rehearsal(open_state(options))
    try:
        schema, inferred = checked_schema(options, target.sink, state)
    except OptionError as error:
        if error.lacks_input:
            return None
        raise
    driver = StreamDriver(texts, canonical(schema), inferred=inferred, rehearsal=state)
    try:
        loop = BatchLoop(log, driver)
        driver.coordinator.prepare_available_now()
        is_repeated = loop.is_repeating
        partitions = loop.begin()
        if partitions is None:
            return None
        sizes = [size for partition in partitions for size in sizes_of(partition)]
        splits, total_bytes = sum(count for count, _ in sizes), sum(size or 0 for _, size in sizes)
        return PlannedBatch(log.newest, splits, total_bytes, is_repeated)
    finally:
        driver.coordinator.close()
