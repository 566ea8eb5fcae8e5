"""The values that options of reading take: names of formats, modes, codecs, characters, secrets."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BeforeValidator, PlainSerializer
from typing_extensions import override

from ....masking import hide


class NameInAnyCase(StrEnum):
    """One of several names, however it is capitalised."""

    @classmethod
    def other_names(cls) -> Mapping[str, str]:
        """Return what else is understood, in lower case, and the name that it means."""
        return {}

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        # Python's enumerations ask this where no member has exactly that value.
        text = str(value).lower()
        name = cls.other_names().get(text, text)
        return next((member for member in cls if member.value.lower() == name), None)


_ESCAPES = {
    "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\",
}  # fmt: skip
"""What is behind a backslash in `sep` -> what Spark takes both for."""


class FileFormatName(NameInAnyCase):
    """Formats of files that are built in."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    XML = "xml"
    TEXT = "text"
    BINARY_FILE = "binaryFile"
    ARROW = "arrow"

    @classmethod
    @override
    def other_names(cls) -> Mapping[str, str]:
        return {"feather": "arrow", "ipc": "arrow"}


class MissingFiles(NameInAnyCase):
    """The treatment of a file that is gone before it is read."""

    FAIL = "false"
    SKIP = "true"
    SKIP_IF_REPLACED = "replaced"

    @classmethod
    @override
    def other_names(cls) -> Mapping[str, str]:
        return {"yes": "true", "1": "true", "no": "false", "0": "false"}


class ParseMode(NameInAnyCase):
    """The treatment of a record that does not parse."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


class Compression(NameInAnyCase):
    """Codecs; `auto` goes by the file name's suffix."""

    AUTO = "auto"
    NONE = "none"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    ZSTD = "zstd"
    XZ = "xz"
    LZ4 = "lz4"
    SNAPPY = "snappy"
    DEFLATE = "deflate"

    @classmethod
    @override
    def other_names(cls) -> Mapping[str, str]:
        return {"gz": "gzip", "bz2": "bzip2", "zst": "zstd", "uncompressed": "none", "": "auto"}


CODEC_SUFFIXES: Final = {
    ".gz": Compression.GZIP,
    ".gzip": Compression.GZIP,
    ".bz2": Compression.BZIP2,
    ".zst": Compression.ZSTD,
    ".zstd": Compression.ZSTD,
    ".xz": Compression.XZ,
    ".lz4": Compression.LZ4,
    ".snappy": Compression.SNAPPY,
    ".deflate": Compression.DEFLATE,
}


class RebaseMode(NameInAnyCase):
    """The calendar of files that do not say which one they keep."""

    CORRECTED = "CORRECTED"
    LEGACY = "LEGACY"
    EXCEPTION = "EXCEPTION"


class Secret(dict[str, Any]):
    """A dictionary whose values show neither in `repr` nor in any error of this process."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        # No error of this process prints them from here on, whichever library quotes them.
        hide(self)

    def __repr__(self) -> str:
        return repr(dict.fromkeys(self, "***"))

    __str__ = __repr__

    # A dictionary is unpickled without its constructor, which hides the values in the executor,
    # too.
    def __reduce__(self) -> tuple[type[Secret], tuple[dict[str, Any]]]:
        return Secret, (dict(self),)


def json_or_none(text: str) -> Any:
    """Return the parsed JSON; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def json_object(value: Any, example: str) -> dict[str, Any]:
    """Return a JSON object, or the one that a text is; an empty text is an empty one.

    Raises:
        ValueError: says that an object such as `example` is expected.
    """
    if isinstance(value, str):
        value = json_or_none(value or "{}")
    if not isinstance(value, dict):
        # The text is not quoted in the message: it may hold keys.
        raise ValueError(f"a JSON object such as {example}")
    return value


def _text_object(value: Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in json_object(value, '{"key": "value"}').items()}


def _one_character(value: str) -> str:
    if len(value) > 1:
        raise ValueError("one character, or nothing")
    return value


def _known_encoding(value: str) -> str:
    try:
        # Its one canonical name, so that the code can compare encodings. A byte order mark is left
        # out of UTF-8 anyway.
        return codecs.lookup(value).name.removesuffix("-sig")
    except LookupError:
        raise ValueError("the name of a character encoding, such as UTF-8 or ISO-8859-1") from None


def _only(implemented: str, what: str) -> AfterValidator:
    def checked(value: str) -> str:
        if value.lower() != implemented.lower():
            raise ValueError(f"{implemented}, the only {what} that is implemented")
        return value

    return AfterValidator(checked)


def _field_separator(value: str) -> str:
    def meant(escape: re.Match[str]) -> str:
        if escape[1] not in _ESCAPES:
            escapes = " ".join(f"\\{letter}" for letter in _ESCAPES)
            raise ValueError(f"one of the escapes {escapes}, not {escape[0]}")
        return _ESCAPES[escape[1]]

    if not value:
        raise ValueError("one or more characters")
    return re.sub(r"\\(.?)", meant, value, flags=re.DOTALL)


def _written(separator: str) -> str:
    # Options are recorded as JSON and parsed again, which would take a lone backslash for an
    # escape.
    return separator.replace("\\", r"\\")


# Java writes months, AM and PM, and decimals differently in other English locales too.
AmericanEnglish = Annotated[str, _only("en-US", "locale")]
OneCharacter = Annotated[str, AfterValidator(_one_character)]
FieldSeparator = Annotated[
    str, AfterValidator(_field_separator), PlainSerializer(_written, when_used="json")
]
TextObject = Annotated[dict[str, str], BeforeValidator(_text_object)]
SecretObject = Annotated[
    dict[str, Any],
    BeforeValidator(lambda value: json_object(value, '{"anon": true}')),
    AfterValidator(Secret),
]
Encoding = Annotated[str, AfterValidator(_known_encoding)]
StopAtDelimiter = Annotated[str, _only("STOP_AT_DELIMITER", "handling")]


LINE_FORMATS = (FileFormatName.JSON, FileFormatName.CSV, FileFormatName.TEXT)
"""Built-in formats whose classes have `is_lines`, so that options load none of them."""

TEXT_FORMATS = (*LINE_FORMATS, FileFormatName.XML)
"""Those whose files may be compressed as a whole, and have an encoding."""

ENTRY_POINTS = "pyspark_sluice.formats"
"""Group in which an installed package announces its formats by name."""


def is_built_in(name: str) -> bool:
    """Return whether the format comes with this package."""
    return name in FileFormatName.__members__.values()


def _format_name(value: object) -> str:
    text = str(value)
    try:
        return FileFormatName(text).value
    except ValueError:
        from importlib.metadata import entry_points

        if ":" in text or entry_points(group=ENTRY_POINTS, name=text):
            return text
    raise ValueError(expected_formats())


def expected_formats() -> str:
    """Return what the option fileFormat takes, for an error."""
    return (
        f"one of {', '.join(FileFormatName)}; or a format of your own: package.module:Class, "
        f"or the name of an entry point in the group {ENTRY_POINTS}"
    )


FormatName = Annotated[str, BeforeValidator(_format_name)]
