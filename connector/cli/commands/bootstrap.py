"""The commands that prepare a state for a new query, and their arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ....errors import OptionError
from ...query.start_check import as_in_files
from ..answer import Answer
from ..arguments import (
    ContinueQuery,
    New,
    SharedArguments,
    ViewArguments,
    Yes,
    argument,
    flag,
    parsed_storage_options,
    setting,
)
from ..bootstrap.auto_loader_export import auto_loader_log
from ..bootstrap.file_log_import import OtherLog, imported, options_of, rewrites_of, spark_file_log
from ..bootstrap.fork import chosen_fork
from ..bootstrap.new_state import ContinuedQuery, continued_at, continued_query, target_at
from ..offline_edit import Plan, carry_out
from .repair import checkpoint_of_table

Rewrite = Annotated[
    list[str] | None,
    setting(
        "OLD=NEW",
        "Replace the beginning of paths, as OLD=NEW, if files were moved. Repeat it for more.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Import(SharedArguments):
    """The arguments that both imports accept."""

    path: Annotated[str, argument("PATH", "Let the new query load this path.")]
    new: New
    option: Annotated[
        list[str] | None,
        setting(
            "NAME=VALUE",
            "Use this option of the new query that selects files, as NAME=VALUE, such as "
            "pathGlobFilter=*.json. Repeat it for more options.",
        ),
    ] = None
    rewrite: Rewrite = None
    read_changed: Annotated[
        bool, flag("--read-changed", "Read files again that have changed since they were read.")
    ] = False
    force: Annotated[
        bool, flag("--force", "Continue although none of the files that were read is at PATH.")
    ] = False
    yes: Yes = False

    def run(self, purpose: str, log: OtherLog, continued: ContinuedQuery | None = None) -> Answer:
        """Hold the list against what is there, write what comes of it, and print it."""
        rewrites = rewrites_of(self.rewrite or ())
        options = options_of(self.path, self.option or (), self.storage_options)
        storage = parsed_storage_options(self.storage_options)
        target = target_at(self.new, self.source_name, storage, continued)
        # Before the comparison, which goes by paths as they are now.
        renamed = log.renamed(rewrites) if rewrites else log

        def decide() -> Plan:
            read = imported(renamed, options, read_changed=self.read_changed, anyway=self.force)
            return read.plan(target, purpose)

        return carry_out(decide, yes=self.yes)


def fork(  # noqa: PLR0913, PLR0917 - one parameter for each option
    arguments: ViewArguments,
    new: New,
    at: Annotated[str, setting("ID", "Start after this checkpoint: 42, or 42-3 of epoch 3.")] = "",
    at_time: Annotated[
        str,
        setting(
            "TIME",
            "Start after the newest checkpoint that was cut by then: ISO 8601, in UTC if it "
            "names no zone.",
        ),
    ] = "",
    matching: Annotated[
        str,
        setting(
            "PATTERN",
            "Read only files whose paths match a pattern with * ? []; other files that the "
            "state knows count as seen.",
        ),
    ] = "",
    at_table: Annotated[
        str,
        setting(
            "TABLE",
            "Start after the query's newest batch in this table, as --to names it: after the "
            "table was restored.",
        ),
    ] = "",
    rewrite: Rewrite = None,
    continue_query: ContinueQuery = False,
    yes: Yes = False,
) -> Answer:
    """Create the state of a new query from a checkpoint.

    The new query starts after that checkpoint.
    """
    store = arguments.opened()
    options = parsed_storage_options(arguments.storage_options)
    if rewrite and matching:
        raise OptionError("--rewrite and --matching exclude each other", "", "both", "one of them")
    rewrites = [
        (as_in_files(old, options), as_in_files(new, options))
        for old, new in rewrites_of(rewrite or ())
    ]
    if at_table:
        store, at = checkpoint_of_table(store, at_table, options)
    continued = continued_at(store, options) if continue_query else None
    target = target_at(new, arguments.source_name, options, continued)
    if continued is not None and not (at or at_time):
        # A query can be continued only where it has ended.
        at = continued.checkpoint().name

    def decide() -> Plan:
        fork = chosen_fork(
            store,
            at,
            at_time,
            matching,
            rewrites,
            is_in_table=bool(at_table),
            keeps_table=bool(at_table or continued),
        )
        if continued is not None:
            continued.check_ends_at(fork.savepoint.ref)
        return fork.plan(target)

    return carry_out(decide, yes=yes)


def import_spark(
    checkpoint: Annotated[
        str,
        argument(
            "CHECKPOINT", "Read this checkpointLocation of a query with Spark's own file source."
        ),
    ],
    arguments: _Import,
    source: Annotated[
        str, setting("NAME", "Select one of the query's sources: a folder in sources/.")
    ] = "",
    continue_query: ContinueQuery = False,
) -> Answer:
    """Create a state from that of Spark's file source.

    The new query resumes where the query with Spark's own file source stopped.
    """
    options = parsed_storage_options(arguments.storage_options)
    # Before the log: if the query has gone on since, writing finds out.
    continued = continued_query(checkpoint, options) if continue_query else None
    return arguments.run("import-spark", spark_file_log(checkpoint, source, options), continued)


def import_auto_loader(
    export: Annotated[
        str,
        argument(
            "EXPORT",
            "Read rows of cloud_files_state from this file, or from the files in this "
            "directory: CSV with a header, JSON lines or Parquet.",
        ),
    ],
    arguments: _Import,
    source_id: Annotated[str, setting("ID", "Use only rows with this source_id.")] = "",
    all_processed: Annotated[
        bool, flag("--all-processed", "Count every row as read, for exports without commit times.")
    ] = False,
    quoted_paths: Annotated[
        bool, flag("--quoted-paths", "Decode the paths of the export as in URLs: %20 is a space.")
    ] = False,
) -> Answer:
    """Create a state from an export of Auto Loader's.

    The new query resumes where the Auto Loader stream stopped.
    """
    options = parsed_storage_options(arguments.storage_options)
    log = auto_loader_log(
        export, options, source_id, all_processed=all_processed, quoted_paths=quoted_paths
    )
    return arguments.run("import-auto-loader", log)
