"""The flags of `sluice run`, each of which is a key of a configuration file as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_type_hints

import typer

from ...errors import OptionError
from ..options.call import direct_write
from .arguments import Json, argument, flag, parsed, parsed_options, setting

if TYPE_CHECKING:
    from ..host.feeds import Feed


@dataclass(frozen=True, kw_only=True)
class ProcessArguments:
    """The arguments of the process, for all of its feeds."""

    config: Annotated[
        str,
        setting(
            "FILE",
            "Read the feeds of this configuration file. A call that names no feed takes "
            "sluice.toml, if it is there.",
        ),
    ] = ""
    only: Annotated[
        list[str] | None, setting("NAME", "Run only the feed with this name. Repeat it.")
    ] = None
    workers: Annotated[
        int | None,
        setting(
            "NUMBER",
            "Use this many processes. By default one for each core, and none for a small batch.",
            least=1,
        ),
    ] = None
    dry_run: Annotated[
        bool, flag("--dry-run", "Show the first batch, and read and change nothing.")
    ] = False
    spark: Annotated[
        str, setting("MASTER", "Run as a Spark query with this master, such as local[4].")
    ] = ""
    as_json: Json = False
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(
            help="Write lines of the log, and errors, as text or as a JSON document each."
        ),
    ] = "text"
    metrics_port: Annotated[
        int | None,
        setting("PORT", "Serve metrics for Prometheus at this port.", least=0, most=65535),
    ] = None
    metrics_address: Annotated[
        str, setting("ADDRESS", "Serve them at this address of the machine.")
    ] = "127.0.0.1"
    metrics_file: Annotated[
        str,
        setting("FILE", "Write metrics into this file, such as for the node exporter: NAME.prom."),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class RunArguments(ProcessArguments):
    """The arguments of the command: those of one feed, and those of the process."""

    path: Annotated[str, argument("PATH", "Read the files below this directory or URL.")] = ""
    to: Annotated[
        str,
        setting("TABLE", "Write to delta:URL, iceberg:CATALOG.TABLE, or parquet:URL (manifests)."),
    ] = ""
    checkpoint: Annotated[
        str,
        setting("CHECKPOINT", "Use this checkpointLocation, which a Spark query may have begun."),
    ] = ""
    file_format: Annotated[
        str, setting("FORMAT", "Read files of this format (fileFormat).", "--format")
    ] = "json"
    schema: Annotated[
        str,
        setting(
            "COLUMNS",
            "Read these columns, such as 'id long, name string'. Without it, the schema is "
            "inferred and evolves.",
        ),
    ] = ""
    once: Annotated[bool, flag("--once", "Stop when all existing files are read: the default.")] = (
        False
    )
    every: Annotated[
        str, setting("DURATION", "Check for new files at this interval, such as 60s.")
    ] = ""
    option: Annotated[
        list[str] | None,
        setting("NAME=VALUE", "Give any option of the source, as name=value. Repeat it."),
    ] = None
    wait: Annotated[
        str,
        setting(
            "DURATION", "Wait this long, such as 10m, for another run on this checkpoint to end."
        ),
    ] = ""
    take_over: Annotated[
        bool,
        flag("--take-over", "Start although another run is at work, which ends with an error."),
    ] = False
    new_input: Annotated[
        bool, flag("--new-input", "Read another input than before, from its beginning.")
    ] = False
    new_table: Annotated[
        bool,
        flag("--new-table", "Write to another table than before, which gets the new rows only."),
    ] = False
    append: Annotated[
        bool, flag("--append", "Read an input again that the table has from another query.")
    ] = False
    task_timeout: Annotated[
        str,
        setting(
            "DURATION",
            "Stop a process that has not finished its task after this time, such as 30m, and "
            "try the task again.",
        ),
    ] = ""


@dataclass(frozen=True)
class Flag:
    """A flag, as the command line and a configuration file know it."""

    field: str
    key: str
    """In the file, and after two dashes."""

    kind: Any
    help: str
    is_of_process: bool
    least: int | None = None
    most: int | None = None


_OF_THE_CALL: Final = ("config", "only", "option")
"""No keys: which file, which of its feeds; and options have a table of their own there."""


@cache
def flags() -> Mapping[str, Flag]:
    """All that a file may set, by key."""
    hints = get_type_hints(RunArguments, include_extras=True)
    by_key: dict[str, Flag] = {}
    shared = {each.name for each in fields(ProcessArguments)}
    for each in fields(RunArguments):
        if each.name in _OF_THE_CALL:
            continue
        kind, parameter = get_args(hints[each.name])[:2]
        # typer takes the first of the names for the default.
        names = (parameter.default, *(parameter.param_decls or ()))
        key = next((n for n in names if str(n).startswith("--")), each.name)
        key = key.removeprefix("--").replace("_", "-")
        bounds = parameter.min, parameter.max
        by_key[key] = Flag(each.name, key, kind, parameter.help, each.name in shared, *bounds)
    return by_key


DEFAULT_FILE: Final = "sluice.toml"

NEEDED: Final = {"path": "PATH", "to": "--to", "checkpoint": "--checkpoint"}
"""Fields that every feed has, as the command line shows them."""

_RIVALS: Final = (("once", "every"), ("wait", "take_over"))
"""Pairs of fields of which a feed sets one."""

RIVALS: Final = {**dict(_RIVALS), **{second: first for first, second in _RIVALS}}


@dataclass(frozen=True)
class Call:
    """The feeds of a call, and the arguments of the process."""

    process: ProcessArguments
    feeds: Mapping[str, Feed]
    arguments: Mapping[str, RunArguments]
    """The arguments of each feed."""


def feed_of(arguments: RunArguments, options: Mapping[str, object] | None = None) -> Feed:
    """Return the feed of these arguments, and of options that are more than text.

    Raises:
        OptionError: they do not parse, or contradict each other.
    """
    from ..host.feeds import Feed
    from ..query.start_check import StartTerms

    for first, second in _RIVALS:
        if getattr(arguments, first) and getattr(arguments, second):
            names = [f"--{name.replace('_', '-')}" for name in (first, second)]
            raise OptionError(
                f"{' and '.join(names)} exclude each other", "", "both", "one of them"
            )
    meant = arguments.new_input, arguments.new_table, arguments.append
    patience = _duration("--wait", arguments.wait) or 0.0
    return Feed(
        direct_write(
            arguments.path,
            checkpoint=arguments.checkpoint,
            format=arguments.file_format,
            schema=arguments.schema,
            options={**parsed_options(arguments.option or ()), **(options or {})},
        ),
        arguments.to,
        _duration("--every", arguments.every),
        StartTerms(patience, arguments.take_over, *meant),
        _duration("--task-timeout", arguments.task_timeout),
    )


def _duration(option: str, text: str) -> float | None:
    from ...checkpoint_meta.storage.written_values import parse_milliseconds

    if not text:
        return None
    # A plain number is of seconds here.
    text = f"{text}s" if text.isdecimal() else text
    milliseconds: int = parsed(option, text, parse_milliseconds)
    return milliseconds / 1000
