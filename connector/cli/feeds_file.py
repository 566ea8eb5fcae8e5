"""The configuration file of `sluice run`: any number of feeds, and what they have in common.

    [defaults]
    format = "json"

    [feed.orders]
    path = "landing/orders"
    to = "delta:orders"
    checkpoint = "checkpoints/orders"

    [feed.orders.options]
    maxFilesPerTrigger = 1000

The command line wins over variables of the environment (`SLUICE_FEED__ORDERS__TO`), these win over
the file, and in the file a feed wins over the defaults. Secrets of options are references:
`{ env = "NAME" }` or `{ file = "PATH" }`.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from typing_extensions import TypeAliasType

from ...errors import OptionError
from ...masking import hide
from ..host.feeds import Feed
from ..host.run import check_target_name
from ..options.call import checked
from ..options.model import SluiceOptions
from .run_arguments import NEEDED, RIVALS, Call, RunArguments, feed_of, flags

Place = tuple[str, ...]
"""A key with the tables around it."""


def call_of_file(arguments: RunArguments) -> Call:
    """The feeds that the command line and its configuration file describe.

    Raises:
        OptionError: lists all that is wrong, with the keys and their lines.
    """
    return _File(arguments).call()


class _File:
    """A configuration file, and all that is wrong with it."""

    def __init__(self, arguments: RunArguments) -> None:
        self._arguments, self._path = arguments, Path(arguments.config)
        self._problems: list[str] = []
        self._left_out: set[Place] = set()
        """Keys that are wrong by themselves: the rest is looked at without them."""
        try:
            self._text = self._path.read_text(encoding="utf-8")
            self._data = _in_kebab(tomllib.loads(self._text))
        except (OSError, UnicodeDecodeError) as error:
            found = getattr(error, "strerror", None) or str(error)
            raise OptionError(
                "the configuration file cannot be read", arguments.config, found, "a text in UTF-8"
            ) from error
        except tomllib.TOMLDecodeError as error:
            raise OptionError(
                "the configuration file is not TOML", arguments.config, str(error)
            ) from error

    def call(self) -> Call:
        """See `call_of_file`."""
        self._check(self._data, strict=True, told=self._told)
        variables = _aligned(_in_kebab(_variables()), self._data)
        if self._check(variables, strict=False, told=_variable):
            self._raise()
        data = _merged(
            self._data,
            _model().model_validate(variables).model_dump(by_alias=True, exclude_unset=True),
        )
        defaults, feeds = data.get("defaults", {}), data.get("feed", {})
        chosen = self._chosen(feeds)
        places, calls, checkpoints = {}, dict[str, Feed](), dict[str, str]()
        process = self._arguments_of(defaults)
        for name in chosen:
            keys = _merged(_without_rivals(defaults, feeds[name]), feeds[name])
            arguments = places[name] = self._arguments_of(keys)
            for key in NEEDED:
                if not getattr(arguments, key) and ("feed", name, key) not in self._left_out:
                    self._add(self._told(("feed", name)), f"the key {key} is missing")
            first_with = checkpoints.setdefault(arguments.checkpoint, name)
            if arguments.checkpoint and first_with != name:
                told = self._told(("feed", name, "checkpoint"))
                self._add(told, f"feed.{first_with} has the same one")
            feed = self._feed(name, arguments, keys.get("options", {}))
            if feed is not None:
                calls[name] = feed
        self._raise()
        return Call(process, calls, places)

    def _chosen(self, feeds: Mapping[str, Any]) -> Sequence[str]:
        only = self._arguments.only or list(feeds)
        if unknown := [name for name in only if name not in feeds]:
            where, expected = self._arguments.config, ", ".join(feeds) or "[feed.NAME] in the file"
            raise OptionError("--only: the file has no such feed", where, unknown[0], expected)
        if not feeds and not self._problems:
            self._add(self._arguments.config, "there is no feed; expected a table [feed.NAME]")
        return list(dict.fromkeys(only))

    def _arguments_of(self, keys: Mapping[str, Any]) -> RunArguments:
        """The arguments of a feed: the command line's own win."""
        given = {
            each.name: value
            for each in fields(RunArguments)
            if (value := getattr(self._arguments, each.name)) != each.default
        }
        if own := [name for name in (*NEEDED, "schema", "option") if name in given]:
            found = f"{NEEDED.get(own[0], f'--{own[0]}')} and --config"
            expected = "what one feed is about in the file, or a call without --config"
            raise OptionError("the call names one feed, and a file of feeds", "", found, expected)
        named = {flags()[key].field: value for key, value in keys.items() if key != "options"}
        for name in set(given) & set(RIVALS):
            named.pop(RIVALS[name], None)
        return RunArguments(**{**named, **given})

    def _feed(self, name: str, arguments: RunArguments, options: Mapping[str, Any]) -> Feed | None:
        """The feed, if nothing is wrong with it that can be known before anything is looked at."""
        place: Place = ("feed", name, "options")
        try:
            values = {key: self._resolved((*place, key), value) for key, value in options.items()}
            feed = feed_of(arguments, values)
            if arguments.to:
                place_of_files = check_target_name(arguments.to)
                # A catalog says later where its table is.
                checked({"writeTo": place_of_files or "/table", **feed.options})
        except OptionError as error:
            lines = [line.strip(" -") for line in error.what.splitlines()[1:]] or [str(error)]
            for line in lines:
                key, _, problem = line.partition(": ")
                if key in options:
                    self._add(self._told((*place, key)), problem)
                else:
                    self._add(self._told(("feed", name)), line)
            return None
        return feed

    def _resolved(self, place: Place, value: Any) -> Any:
        """A value with its secrets, none of which is printed from now on."""
        if isinstance(value, list):
            return [self._resolved(place, item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and isinstance(secret := value.get("env") or value.get("file"), str):
            return self._secret(place, "env" in value, secret)
        return {key: self._resolved((*place, key), item) for key, item in value.items()}

    def _secret(self, place: Place, is_variable: bool, name: str) -> str:
        secret = ""
        if is_variable:
            secret = os.environ.get(name, "")
            if not secret:
                self._add(self._told(place), f"the variable {name} of the environment is not set")
        else:
            try:
                secret = Path(name).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not a text in UTF-8"
                self._add(self._told(place), f"the file {name} cannot be read: {reason}")
        hide({"secret": secret})
        return secret

    def _check(self, data: Any, *, strict: bool, told: Callable[[Place], str]) -> bool:
        """True if keys are wrong; they are noted, and left out of the data."""
        try:
            _model().model_validate(data, strict=strict)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                # Of a dictionary's key pydantic says so.
                place = tuple(str(part) for part in problem["loc"] if part != "[key]")
                self._add(told(place), _words(problem, place))
                self._left_out.add(place)
                _leave_out(data, place)
            return True
        return False

    def _add(self, where: str, problem: str) -> None:
        self._problems.append(f"{where}: {problem}")

    def _raise(self) -> None:
        if self._problems:
            lines = "".join(f"\n  - {problem}" for problem in self._problems)
            raise OptionError(f"the configuration is wrong, and no feed was read:{lines}")

    def _told(self, place: Place) -> str:
        """A key of the file for people, with its line or that of the table it belongs to."""
        lines = (self._line(place[:depth]) for depth in range(len(place), 0, -1))
        line = next(filter(None, lines), 0)
        return f"{self._arguments.config}{f', line {line}' if line else ''}: {'.'.join(place)}"

    def _line(self, place: Place) -> int:
        """The first line with which the text before it has a key; 0 without one."""
        lines = self._text.splitlines()
        for number in range(1, len(lines) + 1):
            # In the middle of a value that has several lines.
            with suppress(tomllib.TOMLDecodeError):
                value: Any = _in_kebab(tomllib.loads("\n".join(lines[:number])))
                for part in place:
                    value = value.get(part) if isinstance(value, dict) else None
                if value is not None:
                    return number
        return 0


def _leave_out(data: Any, place: Place) -> None:
    *tables, key = place
    for table in tables:
        data = data.get(table) if isinstance(data, dict) else None
    if isinstance(data, dict):
        data.pop(key, None)


def schema() -> dict[str, Any]:
    """The JSON schema of a configuration file, by which editors complete and check it."""
    written: dict[str, Any] = _model().model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}


def _unset(written: dict[str, Any]) -> None:
    # A key that is not there is not null, which TOML does not have; a title repeats the key.
    for name in ("default", "title"):
        written.pop(name, None)


def _options_schema(written: dict[str, Any]) -> None:
    written["properties"] = {
        str(option.alias): {"description": option.description}
        for option in SluiceOptions.model_fields.values()
        if option.description
    }


Options = TypeAliasType(
    "Options",
    Annotated[
        dict[str, Any],
        Field(
            description="Options of the source. A secret is a reference: { env = 'NAME' } or "
            "{ file = 'PATH' }.",
            json_schema_extra=_options_schema,
        ),
    ],
)


@cache
def _model() -> type[BaseModel]:
    """The model of a file."""
    about = "The feeds that one call of `sluice run --config` reads."
    config = ConfigDict(extra="forbid", title="sluice.toml")
    return create_model("SluiceFile", __config__=config, __doc__=about, **_tables())


@cache
def _tables() -> dict[str, Any]:
    """The tables of a file, and of the environment: every flag is a key."""

    def keys(name: str, about: str, *, of_process: bool) -> type[BaseModel]:
        written: dict[str, Any] = {
            # Some words are names of pydantic's own.
            f"of_{flag.field}": (
                flag.kind if flag.kind != int | None else int,
                Field(
                    None,
                    alias=flag.key,
                    description=flag.help,
                    json_schema_extra=_unset,
                    ge=flag.least,
                    le=flag.most,
                ),
            )
            for flag in flags().values()
            if of_process or not flag.is_of_process
        }
        options = Field(None, json_schema_extra=_unset)
        config = ConfigDict(extra="forbid", title=about)
        written["options"] = (Options, options)
        return create_model(name, __config__=config, **written)

    defaults = keys("Defaults", "What the process and all feeds have in common", of_process=True)
    feed = keys("Feed", "One query: what it reads, and into which table", of_process=False)

    return {
        "defaults": (defaults, Field(default_factory=dict, json_schema_extra=_unset)),
        "feed": (dict[str, feed], Field(default_factory=dict)),  # type: ignore[valid-type]
    }


_PREFIX: Final = "SLUICE_"


def _variables() -> Any:
    # Mostly there are none, and what reads them takes longer to import than a feed to run.
    if not any(name.upper().startswith(_PREFIX) for name in os.environ):
        return {}
    from pydantic_settings import BaseSettings, EnvSettingsSource

    model = create_model("Variables", __base__=BaseSettings, **_tables())
    return EnvSettingsSource(model, env_prefix=_PREFIX, env_nested_delimiter="__")()


def _variable(place: Place) -> str:
    return f"{_PREFIX}{'__'.join(place).replace('-', '_').upper()}"


def _in_kebab(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same data, with keys as flags are written; those of options and feeds are the user's."""

    def keys(table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        return {key.replace("_", "-"): value for key, value in table.items()}

    spelled = {**data}
    if "defaults" in spelled:
        spelled["defaults"] = keys(spelled["defaults"])
    if isinstance(spelled.get("feed"), dict):
        spelled["feed"] = {name: keys(feed) for name, feed in spelled["feed"].items()}
    return spelled


def _aligned(variables: Any, data: Any) -> Any:
    """Variables with the spelling of the file, since they have neither cases nor dashes."""
    if not isinstance(variables, dict) or not isinstance(data, dict):
        return variables
    spelled = {_plain(key): key for key in data}
    return {
        (name := spelled.get(_plain(key), key)): _aligned(value, data.get(name))
        for key, value in variables.items()
    }


def _plain(key: str) -> str:
    return key.lower().replace("-", "_")


def _merged(below: Any, above: Any) -> Any:
    """Two tables; what is in both is `above`. Options have no cases."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    spelled = {key.lower(): key for key in below}
    merged = dict(below)
    for key, value in above.items():
        known = spelled.get(key.lower(), key)
        merged[known] = _merged(below.get(known), value)
    return merged


def _without_rivals(defaults: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    rivals = {RIVALS[key.replace("-", "_")] for key in keys if key.replace("-", "_") in RIVALS}
    return {key: value for key, value in defaults.items() if key.replace("-", "_") not in rivals}


_EXPECTED: Final = {
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "dict": "a table",
    "model": "a table",
}


def _words(problem: Any, place: Place) -> str:
    """Say what is wrong with a key."""
    kind, found = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"unknown key{_meant(place)}"
    if kind == "greater_than_equal":
        return f"found {found}; expected {problem['ctx']['ge']} or more"
    if kind == "less_than_equal":
        return f"found {found}; expected {problem['ctx']['le']} or less"
    expected = _EXPECTED.get(kind.partition("_")[0], problem["msg"])
    # Of a table only that it is one: it may hold a secret.
    shown = f"a {type(found).__name__}" if isinstance(found, dict | list) else repr(found)
    return f"found {shown}; expected {expected}"


def _meant(place: Place) -> str:
    """Say what was probably meant by an unknown key, or where it belongs."""
    if len(place) == 1:
        return "; expected [defaults] or [feed.NAME]"
    known = flags()
    if (flag := known.get(place[-1])) is not None and flag.is_of_process:
        return ", which belongs to [defaults]: all feeds are of one process"
    if place[-1] in {str(option.alias) for option in SluiceOptions.model_fields.values()}:
        return f"; an option of the source belongs to [{'.'.join((*place[:-1], 'options'))}]"
    near = difflib.get_close_matches(place[-1], [*known, "options"], 1)
    return f"; did you mean {near[0]}?" if near else ""
