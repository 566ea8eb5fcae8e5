"""Values as users write them: sizes, durations, words, and patterns for names.

Patterns have Hadoop's syntax, or are expressions that no name keeps busy for long.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Protocol, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from ...errors import OptionError

_NUMBER_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-zA-Zµ]*)\s*\Z")
_DURATION = re.compile(r"(\d+)\s*([a-zA-Z]+)")
_BYTE_FACTORS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_MILLISECONDS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000}
_MILLISECONDS |= {"h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_LONG_NAMES = {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}
_LONG_NAMES |= {"week": "w"}


def parse_bytes(value: Any) -> Any:
    """Read `128m`, `1g`, `1 GiB` or a plain number of bytes; powers of 1024 as in Spark."""
    if not isinstance(value, str):
        return value
    match = _NUMBER_AND_UNIT.match(value)
    if match:
        unit = match[2].lower()
        if unit not in _BYTE_FACTORS:
            # `k`, `kb` and `kib` are one unit; `b`, `byte` and `bytes` are single bytes.
            unit = re.sub(r"(?<=.)i?b$|(?<=^b)ytes?$", "", unit)
        if unit in _BYTE_FACTORS:
            return int(match[1]) * 1024 ** _BYTE_FACTORS[unit]
    raise ValueError("a size in bytes: a number, alone or with k, m, g or t, such as 128m")


def parse_milliseconds(value: Any) -> Any:
    """Read `500ms`, `5 minutes`, `interval 1 day 2 hours` or a plain number of milliseconds."""
    if not isinstance(value, str):
        return value
    # Spark and Auto Loader take intervals of SQL, in which numbers may have quotes.
    text = re.sub(r"^\s*interval\b", "", value, flags=re.IGNORECASE).replace("'", " ").strip()
    if text.isascii() and text.isdigit():
        return int(text)
    parts = [(int(number), _unit(name.lower())) for number, name in _DURATION.findall(text)]
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError("a duration: a number with ms, s, min, h, d or w, such as 30s")
    if any(unit in ("month", "quarter", "year") for _, unit in parts):
        raise ValueError("a duration of fixed length, which months and years are not: 30d")
    if any(unit not in _MILLISECONDS for _, unit in parts):
        raise ValueError("a duration: a number with ms, s, min, h, d or w, such as 30s")
    return sum(number * _MILLISECONDS[unit] for number, unit in parts)


def _unit(name: str) -> str:
    # `s` and `ms` are units, and no plurals.
    singular = name.removesuffix("s") if len(name) > 2 else name
    return _LONG_NAMES.get(singular, singular)


LowerCase = BeforeValidator(
    lambda value: value.strip().lower() if isinstance(value, str) else value
)
"""Takes a word in any case, for an option that is one of several."""

ByteSize = Annotated[int, BeforeValidator(parse_bytes)]
"""A number of bytes; text such as `128m` is accepted."""

Milliseconds = Annotated[int, BeforeValidator(parse_milliseconds)]
"""A number of milliseconds; text such as `30s` is accepted."""


PATTERN_SECONDS: Final = 2.0
"""Seconds that matching one name may take: a pattern may backtrack for ever."""

_WILD = {"*": ".*", "?": "."}


class Pattern(Protocol):
    """Python's, or one whose time is bounded."""

    def fullmatch(self, name: str, /) -> object:
        """True, or a match, if all of `name` is as the pattern says."""


def glob_pattern(glob: str) -> Pattern:
    r"""Hadoop's pattern for names: `*`, `?`, `[a-c]`, `[!a-c]`, `{one,other}`, and `\` to escape.

    Raises:
        ValueError: it does not parse; says what is wrong with it.
    """
    parts: list[str] = []
    in_set, groups = False, 0
    characters = iter(range(len(glob)))
    for at in characters:
        character = glob[at]
        if character == "\\":
            parts.append(_escaped(glob, next(characters, None)))
            continue
        if character == "[" and in_set:
            raise ValueError(f"a [ within [...] in {glob!r}")
        if character in "{}," and (groups or character == "{"):
            # Within [...], too: odd, but so does Hadoop.
            groups += {"{": 1, "}": -1, ",": 0}[character]
            parts.append({"{": "(?:", "}": ")", ",": "|"}[character])
        elif character == "!" and in_set and glob[at - 1] == "[":
            parts.append("^")
        else:
            parts.append(_plain(character, in_set))
        in_set = character == "[" or (in_set and character != "]")
    if in_set or groups:
        raise ValueError(f"an open {'[' if in_set else '{'} in {glob!r}")
    expression = "".join(parts)
    if {"(?:", "["}.isdisjoint(parts):
        *pieces, last = "\0".join(parts).replace(_WILD["*"], "\1").replace("\0", "").split("\1")
        expression = without_retries([*pieces, rf"{last}\Z"], _WILD["?"])
    return _compiled(expression, glob)


def without_retries(pieces: Sequence[str], character: str) -> str:
    """The expression of these pieces, with any number of `character` between each two.

    As few as lead to the first match of the next piece, and no others are tried: a name that does
    not match is seen in one pass from each place where the first piece matches. That finds what
    trying all would find, as long as a piece has one length only.
    """
    first, *others = pieces
    return first + "".join(f"(?>{character}*?{piece})" for piece in others)


class BoundedPattern:
    """A regular expression that anybody may have written: no name keeps it busy for long.

    Python's own cannot be stopped, and some try a name in more ways than there is time for, such as
    `(a|aa)+$`. This one is slower for a name, so it is not used where that cannot happen.
    """

    def __init__(self, expression: str) -> None:
        """Raises `ValueError` if it is not a pattern."""
        # Most queries need none, and start without this import.
        import regex

        try:
            self._pattern = regex.compile(expression, regex.DOTALL)
        except regex.error as error:
            raise ValueError(str(error)) from None

    def search(self, name: str) -> bool:
        """True if it is found in `name`.

        Raises:
            OptionError: it takes longer than `PATTERN_SECONDS`.
        """
        return self._tried(self._pattern.search, name)

    def fullmatch(self, name: str) -> bool:
        """True if all of `name` is as it says; raises like `search`."""
        return self._tried(self._pattern.fullmatch, name)

    def _tried(self, match: Callable[..., object], name: str) -> bool:
        try:
            return match(name, timeout=PATTERN_SECONDS) is not None
        except TimeoutError:
            raise OptionError(
                "a name pattern takes too long for one name",
                name,
                f"{self._pattern.pattern} has not finished after {PATTERN_SECONDS:.0f} s",
                "a pattern that matches quickly",
                "Write it without repetitions or alternatives within a repetition, such as (a+)+.",
            ) from None


def _plain(character: str, in_set: bool) -> str:
    if character in _WILD:
        return _WILD[character]
    if character in "[]-" or (in_set and character == "^"):
        return character
    return re.escape(character)


def _escaped(glob: str, at: int | None) -> str:
    if at is None:
        raise ValueError(f"nothing after the last backslash in {glob!r}")
    if glob[at].isalnum():
        # To Hadoop \d is a digit and \b a border: that is never meant, and nothing else may be.
        raise ValueError(
            f"a backslash before {glob[at]!r} in {glob!r}; only special characters can be escaped"
        )
    return "\\" + glob[at]


def _compiled(expression: str, glob: str) -> Pattern:
    try:
        # Only a pattern with several * that is not atomic can try a name in many ways.
        if expression.count(_WILD["*"]) > 1 and re.search(r"\(\?:|\[", expression):
            return BoundedPattern(expression)
        with warnings.catch_warnings():
            # Python keeps -- within [...] for a set operation it may have one day.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(expression, re.DOTALL)
    except (re.error, ValueError) as error:
        raise ValueError(f"{error} in {glob!r}") from None


def _glob(value: str) -> str:
    try:
        glob_pattern(value)
    except ValueError as error:
        # What pydantic puts into its error: it has to say what was expected.
        raise ValueError(f"a pattern such as *.json or part-[0-9]* ({error})") from None
    return value


Glob: TypeAlias = Annotated[str, AfterValidator(_glob)]
"""An option whose value is a pattern in Hadoop's syntax."""
