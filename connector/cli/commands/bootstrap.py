"""The commands that prepare a state for a new query, and their arguments.

Not here: what they do (`bootstrap/fork.py`, `bootstrap/file_log_import.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..arguments import ContinueQuery, Json, New, SourceName, State, StorageOptions, Yes
from ..output import plainly, print_json, print_pairs, print_table
from ..state_argument import find_state, parsed_storage_options

if TYPE_CHECKING:
    from ..bootstrap.continued_query import ContinuedQuery
    from ..bootstrap.file_log_import import OtherLog


def add_commands(app: typer.Typer) -> None:
    """Register them."""
    app.command()(fork)
    app.command()(import_spark)
    app.command()(import_auto_loader)


Path = Annotated[str, typer.Argument(metavar="PATH", help="The path that the new query will load.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help=(
            "NAME=VALUE: an option of the new query that selects files, such as "
            "pathGlobFilter=*.json. May be repeated."
        ),
    ),
]
Rewrites = Annotated[
    list[str] | None,
    typer.Option(
        "--rewrite",
        help=("OLD=NEW: paths that began with OLD now begin with NEW. May be repeated."),
    ),
]
ReadChanged = Annotated[
    bool,
    typer.Option("--read-changed", help="Read files again that have changed since they were read."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Continue although none of the files that were read is at PATH."),
]


def fork(  # noqa: PLR0913, PLR0917
    state: State,
    new: New,
    at: Annotated[str, typer.Option("--at", help="A checkpoint: 42, or 42-3 of epoch 3.")] = "",
    at_time: Annotated[
        str,
        typer.Option(
            "--at-time",
            help=(
                "The newest checkpoint that was cut by then: ISO 8601, in UTC if it names no zone."
            ),
        ),
    ] = "",
    matching: Annotated[
        str,
        typer.Option(
            "--matching",
            help=(
                "Read only files whose paths match a pattern with * ? []; other files that the "
                "state knows count as seen."
            ),
        ),
    ] = "",
    continue_query: ContinueQuery = False,
    source_name: SourceName = "source",
    storage_options: StorageOptions = "{}",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Create the state of a new query that starts after a checkpoint of this one."""
    with plainly():
        from ...views.state_view import consistent
        from ..bootstrap.fork import chosen_fork, fork_lines
        from ..bootstrap.new_state import target_at
        from ..spark_offset_log import check_same, checkpoint_of, continued_at

        store = find_state(state, source_name, storage_options)
        options = parsed_storage_options(storage_options)
        continued = continued_at(store, options) if continue_query else None
        target = target_at(new, source_name, options, continued)
        if continued is not None and not (at or at_time):
            at = checkpoint_of(continued).name
        found = consistent(lambda: chosen_fork(store, at, at_time, matching))
        if continued is not None:
            check_same(found.ref, continued)
        told = found.write(target) if yes else consistent(found.planned)
        if as_json:
            print_json({**told, **_of_new(target.location, continued)})
            return
        print_pairs([*fork_lines(told, target.location), *_continued_lines(continued)])
        if told["pending"]:
            print_table(told["pending"], ("path", "start", "end"), "pending, the first of them")
        _say_what_is_next(target.location, written=told["written"])


def import_spark(  # noqa: PLR0913, PLR0917
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="The checkpointLocation of a query with Spark's own file source.",
        ),
    ],
    path: Path,
    new: New,
    source: Annotated[
        str, typer.Option("--source", help="Which of the query's sources: a folder in sources/.")
    ] = "",
    option: Options = None,
    rewrite: Rewrites = None,
    read_changed: ReadChanged = False,
    force: Force = False,
    continue_query: ContinueQuery = False,
    source_name: SourceName = "source",
    storage_options: StorageOptions = "{}",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Create the state of a new query that resumes where Spark's own file source stopped."""
    with plainly():
        from ..bootstrap.continued_query import continued_query
        from ..bootstrap.spark_file_log import spark_file_log

        options = parsed_storage_options(storage_options)
        # Before the log: if the query has gone on since, writing finds out.
        continued = continued_query(checkpoint, options) if continue_query else None
        asked = _Import(
            path, new, option or (), rewrite or (), source_name, storage_options, continued
        )
        log = spark_file_log(checkpoint, source, options)
        told = asked.run("import-spark", log, read_changed=read_changed, force=force, yes=yes)
        asked.tell(told, as_json=as_json)


def import_auto_loader(  # noqa: PLR0913, PLR0917
    export: Annotated[
        str,
        typer.Argument(
            metavar="EXPORT",
            help="Rows of cloud_files_state as CSV with a header, JSON lines or Parquet: a file, "
            "or a directory of such files.",
        ),
    ],
    path: Path,
    new: New,
    source_id: Annotated[
        str, typer.Option("--source-id", help="Only rows with this source_id.")
    ] = "",
    all_processed: Annotated[
        bool,
        typer.Option(
            "--all-processed",
            help="Every row counts as read, for exports without commit times.",
        ),
    ] = False,
    quoted_paths: Annotated[
        bool,
        typer.Option(
            "--quoted-paths", help="Paths of the export are quoted as in URLs: %20 for a blank."
        ),
    ] = False,
    option: Options = None,
    rewrite: Rewrites = None,
    read_changed: ReadChanged = False,
    force: Force = False,
    source_name: SourceName = "source",
    storage_options: StorageOptions = "{}",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Create the state of a new query that resumes where an Auto Loader stream stopped."""
    with plainly():
        from ..bootstrap.auto_loader_export import auto_loader_log

        asked = _Import(path, new, option or (), rewrite or (), source_name, storage_options)
        options = parsed_storage_options(storage_options)
        log = auto_loader_log(
            export, options, source_id, all_processed=all_processed, quoted_paths=quoted_paths
        )
        told = asked.run("import-auto-loader", log, read_changed=read_changed, force=force, yes=yes)
        asked.tell(told, as_json=as_json)


@dataclass(frozen=True)
class _Import:
    """What both imports are asked for."""

    path: str
    new: str
    option: Sequence[str]
    rewrite: Sequence[str]
    source_name: str
    storage_options: str
    continued: ContinuedQuery | None = None

    def run(
        self, purpose: str, log: OtherLog, *, read_changed: bool, force: bool, yes: bool
    ) -> dict[str, Any]:
        """Hold the list against what is there, and write what comes of it."""
        from ..bootstrap.file_log_import import imported, options_of, rewrites_of
        from ..bootstrap.new_state import target_at

        rewrites = rewrites_of(self.rewrite)
        options = options_of(self.path, self.option, self.storage_options)
        known = parsed_storage_options(self.storage_options)
        target = target_at(self.new, self.source_name, known, self.continued)
        renamed = log.renamed(rewrites) if rewrites else log
        found = imported(renamed, options, read_changed=read_changed, anyway=force)
        told = found.write(target, purpose) if yes else found.told(written=False)
        return {**told, **_of_new(target.location, self.continued)}

    def tell(self, told: dict[str, Any], *, as_json: bool) -> None:
        """Print it."""
        from ..bootstrap.file_log_import import import_lines

        if as_json:
            print_json(told)
            return
        print_pairs([*import_lines(told, told["new"]), *_continued_lines(self.continued)])
        for name in ("unfinished", "changed", "not_listed"):
            if told[name]:
                title = f"{name.replace('_', ' ')}, the first of them"
                print_table([{"path": path} for path in told[name]], ("path",), title)
        _say_what_is_next(told["new"], written=told["written"])


def _of_new(location: str, continued: ContinuedQuery | None) -> dict[str, Any]:
    return {"new": location, **({"continues": continued.told} if continued else {})}


def _continued_lines(continued: ContinuedQuery | None) -> list[tuple[str, str]]:
    if continued is None:
        return []
    return [("continues", f"query {continued.query_id} after its batch {continued.batch}")]


def _say_what_is_next(location: str, *, written: bool) -> None:
    if written:
        typer.echo(f"written: start the new query with checkpointLocation={location}")
    else:
        typer.echo("nothing was written: add --yes to do it")
