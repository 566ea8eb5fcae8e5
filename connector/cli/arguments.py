"""Arguments and options that several commands share, and groups of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from ...checkpoint_meta.stores.contract import StateStore
from .answer import Outcome, show
from .output import Exit, ExitWith, errors_as_messages
from .state_argument import find_state


def argument(metavar: str, text: str) -> Any:
    """Describe an argument without a name, for typer."""
    return typer.Argument(metavar=metavar, help=text)


def setting(
    metavar: str, text: str, *names: str, least: float | None = None, most: float | None = None
) -> Any:
    """Describe an option with a value; by default its name is that of the parameter."""
    return typer.Option(*names, metavar=metavar, help=text, min=least, max=most)


def flag(name: str, text: str, *more: str) -> Any:
    """Describe an option without a value, which has no opposite."""
    return typer.Option(name, *more, help=text)


Json = Annotated[bool, flag("--json", "Print one JSON document instead of tables.")]

New = Annotated[
    str,
    argument(
        "NEW", "Use this checkpointLocation for the new query; it must be empty or not exist."
    ),
]
ContinueQuery = Annotated[
    bool,
    flag(
        "--continue-query",
        "Keep the id and the batch numbers of the old query, so that the new one can write "
        "into the same table. Stop the old query first, and never start it again.",
    ),
]
Yes = Annotated[
    bool, flag("--yes", "Make the change; without this flag, only print what would change.", "-y")
]
Force = Annotated[
    bool, flag("--force", "Run even if another host owns the state, where a query may be running.")
]
Matching = Annotated[
    str, setting("PATTERN", "Select only paths that match a pattern with * ? [].", "--matching")
]

StorageOptions = Annotated[
    str, setting("JSON", "Use the query's storageOptions: a JSON object.", "--storage-options")
]


@dataclass(frozen=True, kw_only=True)
class SharedArguments:
    """The arguments that every command about a source accepts."""

    source_name: Annotated[str, setting("NAME", "Select the source with this sourceName.")] = (
        "source"
    )
    storage_options: StorageOptions = "{}"


@dataclass(frozen=True, kw_only=True)
class ViewArguments(SharedArguments):
    """A command about a state that exists."""

    state: Annotated[
        str,
        argument(
            "STATE",
            "Use the state in this directory. The checkpointLocation or stateLocation of the "
            "query works too: a local path, or a URL such as s3://bucket/checkpoints/flights.",
        ),
    ]

    def opened(self, may_begin: bool = False) -> StateStore:
        """Find the state directory, in any of the forms in which `state` may name it.

        `may_begin`: it need not be there.
        """
        return find_state(self.state, self.source_name, self.storage_options, may_begin)


@dataclass(frozen=True, kw_only=True)
class EditArguments(ViewArguments):
    """A command that changes a state while no query runs."""

    yes: Yes = False
    force: Force = False


@dataclass(frozen=True, kw_only=True)
class OrderArguments(EditArguments):
    """A command that orders something for the next start of a query."""

    reason: Annotated[str, setting("TEXT", "Store this reason in the permanent record.")] = ""


@dataclass(frozen=True, kw_only=True)
class FileOrderArguments(OrderArguments):
    """An order about files."""

    matching: Matching = ""


@dataclass(frozen=True, kw_only=True)
class EventTimeArguments:
    """A range of times that are in paths."""

    event_time: Annotated[
        str,
        setting(
            "START..END",
            "Select only files whose path names a time in START..END, the end not included: "
            "2026-01-02..2026-01-09. All of them are listed.",
        ),
    ] = ""
    event_time_pattern: Annotated[
        str,
        setting(
            "PATTERN",
            "Find the time in paths by this pattern, such as {yyyy}/{MM}/{dd}/{HH}; without "
            "it, Hive partitions name the time.",
        ),
    ] = ""
    time_zone: Annotated[
        str, setting("ZONE", "Read the times in paths in this zone, UTC by default.")
    ] = ""


def register(app: typer.Typer, function: Callable[..., Outcome], panel: str, example: str) -> None:
    """Add a command: `show` prints its answer, and `errors_as_messages` its errors.

    Of a parameter that is a group above, each field is an argument. All commands have `--json`.
    """
    hints = get_type_hints(function, include_extras=True)
    del hints["return"]
    groups: dict[str, Any] = {n: kind for n, kind in hints.items() if is_dataclass(kind)}
    parameters: list[Parameter] = []
    shared: list[Parameter] = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            for one in _of_group(groups[name]):
                (parameters if one.default is Parameter.empty else shared).append(one)
        else:
            # By name only, so that an argument without a default may follow those that have one.
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))

    # Help shows what is the command's own before what many have.
    parameters += shared
    has_json = any(parameter.name == "as_json" for parameter in parameters)
    if not has_json:
        kind = Parameter.KEYWORD_ONLY
        parameters.append(Parameter("as_json", kind, default=False, annotation=Json))

    @wraps(function)
    def run(**arguments: Any) -> None:
        in_json = not has_json and arguments.pop("as_json")
        for name, group in groups.items():
            arguments[name] = group(**{f.name: arguments.pop(f.name) for f in fields(group)})
        with errors_as_messages():
            code = show(function(**arguments), in_json=in_json)
        if code is not Exit.FINE:
            raise ExitWith(code)

    # typer takes a command's arguments from its signature, and cannot take a dataclass apart.
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(rich_help_panel=panel, epilog=example)(run)


def _of_group(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    # Help shows what a group adds before what it shares with others.
    by_name = {field.name: field for field in fields(group)}
    ordered = [by_name[name] for kind in group.__mro__[:-1] for name in kind.__annotations__]
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in ordered
    ]
