"""Arguments that several commands share, groups of them, and what they mean.

A state is named by its directory or by a checkpoint location above it, a checkpoint as `42`, or as
`42-3` where several incarnations have one of that id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from ...checkpoint_meta.documents.checkpoint_ref import CheckpointRef
from ...checkpoint_meta.documents.layout import BASES, CHECKPOINTS, EPOCHS, FORMAT
from ...checkpoint_meta.storage.urls import Location, join
from ...checkpoint_meta.stores.contract import StateStore
from ...checkpoint_meta.stores.open_store import open_store
from ...errors import OptionError, StateMissingError
from ...reader.files.options.values import json_object
from .answer import Exit, ExitWith, Outcome, errors_as_messages, show

if TYPE_CHECKING:
    from ..views.state_view import StateView


T = TypeVar("T")


def parsed_storage_options(text: str) -> Mapping[str, Any]:
    """The value of `--storage-options`."""
    try:
        return json_object(text, '{"anon": true}')
    except ValueError as error:
        # Without the text, which may hold keys.
        raise OptionError("--storage-options do not parse", "", "", str(error)) from None


def parsed_options(texts: Sequence[str]) -> dict[str, str]:
    """The values of `--option`, each NAME=VALUE."""
    pairs = [each.partition("=") for each in texts]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise OptionError("--option does not parse", "", repr(wrong[0]), "NAME=VALUE")
    return {name: value for name, _, value in pairs}


def parsed(option: str, text: str, parse: Callable[[str], T], expected: str = "") -> T:
    """The value of an option by `parse`, whose ValueError says what it expects, or `expected`."""
    try:
        return parse(text)
    except ValueError as error:
        found, expected = repr(text), expected or str(error)
        raise OptionError(f"{option} does not parse", "", found, expected) from error


def parsed_moment(option: str, text: str) -> int:
    """The value of an option that is a time, in microseconds since the epoch."""
    expected = "ISO 8601, such as 2026-11-21T20:15"
    moment = parsed(option, text, datetime.fromisoformat, expected)
    # As all times that the commands print.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000)


def find_state(
    place: str, source_name: str, storage_options: str, may_begin: bool = False
) -> StateStore:
    """The state that is at `place`, or below it where the source of a query has its own.

    Args:
        place: a state directory, a `stateLocation`, or a `checkpointLocation`.
        source_name: of the query, where there may be several.
        storage_options: JSON.
        may_begin: if none is there, that of a new query: the state directory itself, which errors
            name, or below a `checkpointLocation`.
    """
    options = parsed_storage_options(storage_options)
    root = Location.of(place).url
    # A state directory itself, and what the query has below checkpointLocation and stateLocation.
    places = [root, join(root, "sluice", source_name), join(root, source_name)]
    for candidate in places:
        store = open_store(candidate, options)
        if _is_state(store):
            return store
    if may_begin:
        return open_store(places[not root.rstrip("/").endswith(f"/{source_name}")], options)
    others = [
        leaf
        for leaf in open_store(join(root, "sluice"), options).list("")
        if _is_state(open_store(join(root, "sluice", leaf), options))
    ]
    hint = (
        f"Pass --source-name with one of: {', '.join(others)}."
        if others
        else ("Pass the state directory, or the checkpointLocation of the query.")
    )
    raise StateMissingError(
        "no state of a sluice source found", root, "nothing at " + ", ".join(places), "", hint
    )


def _is_state(store: StateStore) -> bool:
    try:
        store.read(FORMAT)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        # A lost FORMAT is restored by the next query, so without it this is a state as well.
        return any(store.list(name) for name in (CHECKPOINTS, BASES, EPOCHS))
    return True


def checkpoint_named(view: StateView, name: str) -> CheckpointRef:
    """The checkpoint; of several of one id that on the chain, else the newest."""
    text, _, epoch = name.partition("-")
    refs = {*view.refs, *view.history.bases()}
    if text.isdecimal() and (epoch.isdecimal() or not epoch):
        matches = sorted(
            ref
            for ref in refs
            if ref.checkpoint == int(text) and (not epoch or ref.epoch == int(epoch))
        )
        if len(matches) > 1:
            # Two incarnations may have cut one of this id each, and Spark has taken up that on the
            # chain.
            chain = {link.ref for link in view.chain()}
            matches = [ref for ref in matches if ref in chain] or matches
        if matches:
            return matches[-1]
    ids = sorted(ref.checkpoint for ref in refs)
    retained = f"an id from {ids[0]} to {ids[-1]}, or id-epoch" if ids else ""
    raise no_checkpoint(view, repr(name), retained or "a state with checkpoints")


def checkpoint_as_of(view: StateView, option: str, text: str) -> CheckpointRef:
    """The newest checkpoint on the chain that was cut by the time that an option names."""
    moment = parsed_moment(option, text)
    # The chain comes with the newest first.
    for link in view.chain():
        if link.checkpoint.header.created <= moment:
            return link.ref
    expected = "a time after the oldest of the retained checkpoints"
    raise no_checkpoint(view, f"no checkpoint cut before {text}", expected)


def no_checkpoint(view: StateView, found: str, expected: str) -> OptionError:
    """The error about a checkpoint that a command cannot use."""
    return OptionError(
        "the checkpoint does not exist",
        view.store.location,
        found,
        expected,
        "To list the checkpoints, run: sluice checkpoints",
    )


def check_is_of_files(view: StateView, verb: str, remedy: str = "") -> None:
    """Raise OptionError unless the state is of files; `verb` says what else cannot be done."""
    source = view.source
    if source != "files":
        raise OptionError(
            f"only a state of files can be {verb} here",
            view.store.location,
            f"the state of the source {source!r}",
            "the state of the source 'files'",
            remedy,
        )


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
