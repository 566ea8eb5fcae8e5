"""All options as one frozen model, and the one error that lists everything wrong with a call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from typing_extensions import override

from ...checkpoint_meta.storage.urls import joined, loaded_paths
from ...checkpoint_meta.storage.written_values import LowerCase, Milliseconds, glob_pattern
from ...enumerator.files.file_options import CleaningOptions, EnumeratorOptions
from ...errors import OptionError
from ...reader.direct_write.write_options import WriteOptions
from ...reader.files.formats.registry import format_class, refused
from ...reader.files.options import FileFormatName, ParseMode, ReaderOptions
from ...reader.files.options.values import expected_formats, json_object, json_or_none
from .aliases import in_our_names
from .rules import broken_rules
from .validation import (
    cleaning_problems,
    event_time_problems,
    instant,
    listed,
    near_name,
    place_problems,
    problem_of,
    queue_problems,
)

_LOCAL_INTERVAL = 250
"""Milliseconds between two listings of local paths, unless the user says otherwise."""


def _json_object(value: object) -> dict[str, Any]:
    return json_object(value, '{"key": "value"}')


def _json_list(value: object) -> object:
    if isinstance(value, str):
        value = json_or_none(value)
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        message = 'a JSON list of paths such as ["/in/a", "/in/b"]'
        raise ValueError(message)
    return value


def _savepoint(value: str) -> str:
    # A path may have an @ of its own, so the last one counts.
    url, _, identifier = value.rpartition("@")
    if value and not (url and identifier.isascii() and identifier.isdigit()):
        message = "a state directory, an @ and a checkpoint id: /old/sluice/source@42"
        raise ValueError(message)
    return value


# Spark's options are text, so objects arrive as JSON; `options(...)` writes the same JSON.
_JsonObject = Annotated[dict[str, Any], BeforeValidator(_json_object)]


class SluiceOptions(EnumeratorOptions, CleaningOptions, WriteOptions, ReaderOptions):
    """Every option of `format("sluice")`; Spark hands them over in lower case."""

    model_config = ConfigDict(
        # Building the validator of so many fields takes a while, and many processes only import
        # this.
        frozen=True,
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=False,
    )

    path: str = Field(
        "",
        description="Directory, file or URL to ingest; the argument of `.load(path)`. Separate "
        "several paths by commas; names can have wildcards as in Hadoop (* ? [a-c] {one,two}), "
        "and a \\ before a literal one of these characters.",
    )
    paths: Annotated[list[str], BeforeValidator(_json_list)] = Field(
        default_factory=list,
        description="JSON list of paths, which may contain commas; the argument of "
        "`.load([...])`, which Spark permits for `read` only.",
        json_schema_extra={"hidden": True},
    )
    checkpoint_location: str | None = Field(
        None,
        description="The same path as on writeStream; Spark does not tell a source its checkpoint.",
        json_schema_extra={"common": True},
    )
    state_location: str | None = Field(
        None,
        description="Where the state is kept, if not below checkpointLocation; must be reachable "
        "from driver and executors.",
    )
    source_name: str = Field(
        "source",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="Distinguishes several sluice sources of one query.",
    )
    source: str = Field(
        "files",
        description="The source: files, package.module:Class of your own source, or the name of "
        "an entry point in the group pyspark_sluice.sources.",
    )
    source_options: _JsonObject = Field(
        default_factory=dict, description="JSON object for your own source; names keep their case."
    )
    starting_state: Annotated[str, AfterValidator(_savepoint)] | None = Field(
        None,
        description="For a new query: state directory and checkpoint id of another query to start "
        "from, such as /checkpoints/old/sluice/source@42; needed until the new query's first "
        "batch.",
    )
    available_now: bool = Field(
        False,
        description="Only for Spark 4.0 and 4.1, which do not tell a source its trigger: the query "
        "runs with trigger(availableNow=True). Its one batch then contains everything.",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], LowerCase] = Field(
        "warning",
        description="Which lines of the logger pyspark_sluice the driver writes to stderr if "
        "logging is not configured: info reports each checkpoint, listing and base.",
    )
    allow_unread_batches: bool = Field(
        False,
        description="Allow batches in which no reader runs, for queries that should read nothing. "
        "Otherwise that is an error: the sink already has that batch number and skipped it.",
    )
    checkpoints_ahead: int = Field(
        1,
        ge=0,
        le=8,
        description="How many checkpoints can be planned and stored in advance while a batch "
        "runs, so that a slow store costs no time between batches. 0 plans each one when Spark "
        "asks for it. With freshShare at most one.",
    )
    retain_checkpoints_for: Milliseconds = Field(
        0,
        ge=0,
        description="Keep checkpoints that are younger than this (such as 7d), so that another "
        "query can start from them; the newest 100 are kept in any case.",
        json_schema_extra={"unit": "milliseconds"},
    )
    keep_file_rows: bool = Field(
        False,
        description="Keep how many rows of each file were read, at most 8 bytes a file, so that "
        "`sluice audit` can compare each file. Decided at the start of a state.",
    )

    @property
    @override
    def loaded_path(self) -> str:
        return self.path


def parse_options(
    texts: Mapping[str, str],
    *,
    streaming: bool,
    path_follows: bool = False,
    names_format: bool = False,
) -> SluiceOptions:
    """The model for the options of a call.

    Args:
        texts: name in any case -> text, as Spark hands them over.
        streaming: True for readStream, which needs a place for its state.
        path_follows: True if there may be no path yet.
        names_format: True for a query, which must name the format of its files: read as JSON,
            every record of other files would be malformed.

    Raises:
        OptionError: lists every problem with its option, what was found and what was expected.
    """
    names = option_names()
    of_sluice: dict[str, Any] = {}
    of_format: dict[str, str] = {}
    # A format of the user's own may have an option that is called as one of Spark's or Auto
    # Loader's: then it is the format's.
    own = _own_options(texts)
    texts, problems = in_our_names(texts, {*names, *own})
    for name, value in texts.items():
        if name.lower() in names:
            of_sluice[names[name.lower()]] = value
        elif name.lower() in own:
            of_format[own[name.lower()]] = value
        else:
            hint = near_name(name, {**names, **own})
            problems.append(f"{name}: unknown option{hint}")
    if of_format:
        with contextlib.suppress(ValueError):  # The model will say what is wrong with it.
            of_format = {**_json_object(of_sluice.get("formatOptions", "")), **of_format}
            of_sluice["formatOptions"] = of_format
    options = None
    try:
        options = SluiceOptions.model_validate(of_sluice)
    except ValidationError as error:
        problems.extend(map(problem_of, error.errors()))
    if options is not None:
        options = _with_one_path(options)
        problems.extend(broken_rules(options, options.source))
        problems.extend(place_problems(options))
    # A source of the user's own decides itself what a path is, and which options it heeds.
    if options is not None and options.source == "files":
        problems.extend(_file_problems(options, path_follows=path_follows))
        # A path that cannot be parsed is among the problems; it would raise there.
        options = _with_interval(options) if not problems else options
    # By what was given, since there is no model if a value did not parse.
    problems.extend(_missing(of_sluice, streaming=streaming, names_format=names_format))
    if problems or options is None:
        raise OptionError(listed(problems))
    # Malformed records that are recorded are not in the rows.
    update = {"mode": ParseMode.DROPMALFORMED} if options.bad_records_path else {}
    return options.model_copy(update=update)


def _missing(values: Mapping[str, Any], *, streaming: bool, names_format: bool) -> Iterator[str]:
    if names_format and values.get("source", "files") == "files" and "fileFormat" not in values:
        yield f"fileFormat: found nothing; expected {expected_formats()}"
    if streaming and not values.get("checkpointLocation") and not values.get("stateLocation"):
        yield (
            "checkpointLocation: found nothing; expected the same path as in "
            'writeStream.option("checkpointLocation", ...): Spark does not tell a Python '
            "source where its checkpoint is, and the state of this source belongs to it"
        )


def _with_one_path(options: SluiceOptions) -> SluiceOptions:
    """All paths in one text, which is all that the rest has to know."""
    # Spark gives the paths of `.load([...])` as a list of its own, next to `path`.
    path = ",".join(filter(None, [options.path, joined(options.paths)]))
    return options.model_copy(update={"path": path, "paths": []} if options.paths else {})


def _own_options(texts: Mapping[str, str]) -> dict[str, str]:
    """Lower-case spelling -> spelling of what a format of the user's own declares."""
    name = next((value for key, value in texts.items() if key.lower() == "fileformat"), "json")
    with contextlib.suppress(ValueError):
        FileFormatName(name)
        return {}
    # The model says of the name what is wrong with it, or `_file_problems` of the class.
    with contextlib.suppress(OptionError):
        return {option.lower(): option for option in format_class(name).own_options}
    return {}


def _with_interval(options: SluiceOptions) -> SluiceOptions:
    # A local listing in which nothing has changed takes milliseconds, and costs nothing.
    local = all(path.base.is_local for path in loaded_paths(options.path))
    if not local or "discovery_interval" in options.model_fields_set:
        return options
    return options.model_copy(update={"discovery_interval": _LOCAL_INTERVAL})


def _file_problems(options: SluiceOptions, *, path_follows: bool) -> Iterator[str]:
    if not options.path and not path_follows:
        yield "path: found nothing; expected the path to ingest, as in .load(path)"
    try:
        for path in loaded_paths(options.path):
            for wildcard in path.wildcards:
                glob_pattern(wildcard)
    except ValueError as error:
        yield f"path: {error}"
    for name in ("modified_after", "modified_before"):
        try:
            instant(getattr(options, name), options.time_zone)
        except ValueError as error:
            yield f"{to_camel(name)}: {error}"
    try:
        yield from _format_problems(options)
    except OptionError as error:
        # There is no such format of the user's own.
        yield str(error)
        return
    yield from _time_problems(options)
    yield from event_time_problems(options, options.time_zone)
    yield from queue_problems(options, options.path, options.storage_options)
    yield from cleaning_problems(options, options.path)


def _format_problems(options: SluiceOptions) -> Iterator[str]:
    yield from refused(options)
    # Every charset can encode ASCII, so nothing can be wrong with it.
    if not options.line_sep or options.line_sep.isascii():
        return
    from ...reader.files.io.lines import separator_of

    try:
        separator_of(options)
    except OptionError as error:
        yield str(error)


def _time_problems(options: SluiceOptions) -> Iterator[str]:
    formats = (options.date_format, options.timestamp_format, options.timestamp_ntz_format)
    # Most calls name neither, and parsing times takes long to import.
    if not (options.time_zone or any(formats)):
        return
    from ...reader.files.values.times.temporal import Temporal

    try:
        Temporal(options)
    except OptionError as error:
        yield str(error)


@cache
def option_names() -> Mapping[str, str]:
    """Lower-case spelling -> the spelling the model knows, aliases included."""
    names = {}
    for name, field in SluiceOptions.model_fields.items():
        for spelling in spellings(name, field):
            names[spelling.lower()] = spelling
    return names


def spellings(name: str, field: FieldInfo) -> list[str]:
    """The names of an option, the one of the reference first."""
    if isinstance(field.validation_alias, AliasChoices):
        return [str(choice) for choice in field.validation_alias.choices]
    return [field.alias or to_camel(name)]
