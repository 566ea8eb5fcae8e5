"""Writes the tables of options, out of the code that reads them, into the documentation.

`python tools/options_table.py` brings docs/options.md, docs/expert-options.md, the two pages for
those who come from Spark and from Auto Loader, and for editors the types and the schema of
configuration files up to date; tests compare.
"""

from __future__ import annotations

import json
import re
import sys
import types
import typing
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from pydantic import AliasChoices, JsonValue
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pyspark_sluice.connector.cli import feeds_file
from pyspark_sluice.connector.options.aliases import (
    AUTO_LOADER,
    SPARK,
    KnownName,
)
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.enumerator.files.discovery.discovery_options import DiscoveryOptions
from pyspark_sluice.enumerator.files.file_options import (
    CleaningOptions,
    EnumeratorOptions,
    EventTimeOptions,
)
from pyspark_sluice.reader.direct_write.write_options import WriteOptions
from pyspark_sluice.reader.files.formats.registry import formats_of
from pyspark_sluice.reader.files.options import FileFormatName, ReaderOptions
from pyspark_sluice.reader.files.options.schema_options import SchemaOptions
from pyspark_sluice.tools import option_types

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "connector" / "cli" / "sluice.schema.json"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
DECIDED_ELSEWHERE = ("recursive_file_lookup",)
"""Options of discovery that readers have to know, too."""


def table(names: list[str]) -> str:
    """The options of these fields as a Markdown table; each can be linked to by its name."""
    return _rows(names, lambda option: f'<a id="{option.lower()}"></a>`{option}`')


def common_table() -> str:
    """The options that most queries set, with links to the places where all are described."""
    return _rows(common(), lambda option: f"[`{option}`](#{option.lower()})")


def common() -> list[str]:
    """The fields that are marked as common, in the order of the page."""
    return [
        name
        for names in groups().values()
        for name in names
        if _extra(SluiceOptions.model_fields[name]).get("common")
    ]


def _rows(names: list[str], shown: Callable[[str], str]) -> str:
    rows = ["| option | values | default | meaning |", "|---|---|---|---|"]
    for name in names:
        field = SluiceOptions.model_fields[name]
        cells = [shown(str(field.alias)), _values(field), _default(field), _meaning(name, field)]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _meaning(name: str, field: FieldInfo) -> str:
    said = [_literal(field.description or "").removesuffix(".")]
    if name in ReaderOptions.model_fields:
        known = formats_of(name)
        if 1 < len(known) < len(FileFormatName):
            said.append(f"Formats: {', '.join(known)}")
    for key, whose, table in (
        ("spark", "Spark", SPARK),
        ("autoLoader", "Auto Loader", AUTO_LOADER),
    ):
        others = [one for one in str(_extra(field).get(key, "")).split(", ") if one]
        others += [known.name for known in table if known.here == field.alias]
        if key == "spark" and isinstance(field.validation_alias, AliasChoices):
            others += [str(one) for one in field.validation_alias.choices[1:]]
        if others:
            said.append(f"{whose}: " + ", ".join(f"`{one}`" for one in dict.fromkeys(others)))
    return ". ".join(said) + "."


def _literal(text: str) -> str:
    """The text as Markdown that shows each of its characters; code and links stay what they are."""
    parts = re.split(r"(`[^`]*`)", text.replace("|", "\\|"))
    return "".join(p if p.startswith("`") else re.sub(r"([*<\\](?!\|))", r"\\\1", p) for p in parts)


def _extra(field: FieldInfo) -> dict[str, JsonValue]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def names_table(whose: str, names: Sequence[KnownName]) -> str:
    """Options of another source next to their names here; those with the same note in one row."""
    rows = [f"| {whose} | here | |", "|---|---|---|"]
    by_rest: dict[tuple[str, str], list[str]] = {}
    for known in names:
        by_rest.setdefault((_counterpart(known), known.note), []).append(f"`{known.name}`")
    rows += [f"| {', '.join(names)} | {here} | {note} |" for (here, note), names in by_rest.items()]
    return "\n".join(rows)


def _counterpart(known: KnownName) -> str:
    if known.values:
        return ", ".join(
            f"`{there}`: `{known.here}={here}`" for there, here in known.values.items()
        )
    if known.here:
        return f"`{known.here}`"
    anyway = ", ".join(f"`{value}`" for value in known.happens_anyway)
    return f"refused, except {anyway}" if anyway else "refused"


def _values(field: FieldInfo) -> str:
    """The type of an option, and the range of its values."""
    metadata = [*field.metadata]
    for part in typing.get_args(field.annotation):
        if typing.get_origin(part) is typing.Annotated:
            metadata += getattr(typing.get_args(part)[1], "metadata", ())
    bounds = {
        name: getattr(m, name)
        for m in metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(m, name)
    }
    unit = str(_extra(field).get("unit", ""))
    said = _type(field)
    for name, words in (
        ("ge", "at least"),
        ("gt", "more than"),
        ("le", "at most"),
        ("lt", "less than"),
    ):
        if name in bounds and (bounds[name] or (not unit and "integer" not in said)):
            said += f", {words} {_bound(bounds[name], unit)}"
        elif name == "gt" and name in bounds and not unit:
            said += ", at least 1"
    return said


def _bound(value: float, unit: str) -> str:
    if unit:
        return _with_unit(int(value), _SIZES if unit == "bytes" else _DURATIONS)
    return str(value)


def _type(field: FieldInfo) -> str:
    if unit := _extra(field).get("unit"):
        return {"bytes": "size", "milliseconds": "duration"}[str(unit)]
    parts = [field.annotation]
    if typing.get_origin(field.annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(field.annotation) if part is not type(None)]
    return " or ".join(map(_one_type, parts))


def _one_type(kind: object) -> str:
    if typing.get_origin(kind) is typing.Annotated:
        return _type(FieldInfo(annotation=typing.get_args(kind)[0]))
    if typing.get_origin(kind) is typing.Literal:
        return ", ".join(f"`{value}`" for value in typing.get_args(kind) if value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    if typing.get_origin(kind) is list:
        return "list"
    names = {"int": "integer", "bool": "boolean", "str": "text", "float": "number"}
    return names.get(getattr(kind, "__name__", ""), "JSON object")


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.alias == "fileFormat":  # The readers below have a default; a query has not.
        return "required"
    if value is None:
        return "`auto`" if field.alias == "parallelism" else ""
    if value is PydanticUndefined:  # An empty list or object.
        return ""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        value = str(value).lower()
    if unit := _extra(field).get("unit"):
        value = _with_unit(value, _SIZES if unit == "bytes" else _DURATIONS)
    return f"`{value}`" if value != "" else ""


_SIZES = {"g": 1024**3, "m": 1024**2, "k": 1024}
_DURATIONS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1}


def _with_unit(number: int, units: dict[str, int]) -> str:
    """The number as a user would write it: with the largest unit that divides it."""
    found = ((number // size, unit) for unit, size in units.items() if number % size == 0)
    count, unit = next(found, (number, "")) if number else (number, "")
    return f"{count}{unit}"


EXPERT = [
    *("checkpoints_ahead", "batch_bytes", "fresh_share"),
    *("discovery_timeout", "discovery_attempts", "max_split_attempts", "retract_after"),
    *("log_level",),
    *("clean_source_while_retained", "retain_checkpoints_for", "keep_file_rows"),
    *("infer_sample_files", "infer_sample_bytes", "max_new_columns", "write_sort_by"),
    *("max_bad_record_share", "write_compression"),
    *("source", "source_options", "format_options", "starting_state", "available_now"),
    *("allow_unread_batches", "char_to_escape_quote_escaping"),
    *("wildcard_col_name", "row_validation_xsd_path", "datetime_rebase_mode", "int96_rebase_mode"),
]
"""Options that hardly any query needs; they have a page of their own."""

OF_SPARK = frozenset(
    (
        *("sep", "quote", "escape", "comment", "header", "enforce_schema", "empty_value"),
        *("nan_value", "positive_inf", "negative_inf", "null_value", "line_sep", "encoding"),
        *("ignore_leading_white_space", "ignore_trailing_white_space", "multi_line", "wholetext"),
        *("char_to_escape_quote_escaping", "single_variant_column", "allow_comments"),
        *("allow_unquoted_field_names", "allow_single_quotes", "allow_non_numeric_numbers"),
        *("row_tag", "attribute_prefix", "value_tag", "exclude_attribute", "ignore_namespace"),
        *("ignore_surrounding_spaces", "column_name_of_corrupt_record", "wildcard_col_name"),
        *("date_format", "timestamp_format", "timestamp_ntz_format", "row_validation_xsd_path"),
        *("datetime_rebase_mode", "int96_rebase_mode"),
    )
)
"""Options of Spark's readers, which have Spark's names and meaning."""

_BY_FORMAT = {
    "CSV": ("csv",),
    "JSON": ("json",),
    "XML": ("xml",),
    "Text": ("text",),
    "Several formats": (),
}


def visible() -> list[str]:
    """The fields of the reference, without those that it has in one sentence."""
    return [n for n, field in SluiceOptions.model_fields.items() if not _extra(field).get("hidden")]


def own() -> list[str]:
    """The fields of the reference that no reader of Spark has."""
    return [name for name in visible() if name not in OF_SPARK]


def groups() -> dict[str, list[str]]:
    """Heading -> fields of the page of options, every option once."""
    discovery = [*DiscoveryOptions.model_fields, *DECIDED_ELSEWHERE]
    event_time = list(EventTimeOptions.model_fields)
    batches = [n for n in EnumeratorOptions.model_fields if n not in (*discovery, *event_time)]
    schemas = list(SchemaOptions.model_fields)
    reading = [n for n in ReaderOptions.model_fields if n not in (*schemas, *discovery)]
    cleaning, writing = list(CleaningOptions.model_fields), list(WriteOptions.model_fields)
    others = {*discovery, *event_time, *batches, *schemas, *reading, *cleaning, *writing}
    own = [name for name in SluiceOptions.model_fields if name not in others]
    every = [n for n in reading if len(formats_of(n)) >= len(FileFormatName) - 1 or n == "mode"]
    whole = {
        "Source and state": own,
        "Discovery": discovery,
        "Batches and assignment": batches,
        "Event time": event_time,
        "Cleaning up": cleaning,
        "Schema": schemas,
        "Reading": every,
        **{
            title: [n for n in reading if n not in every and _formats(n) == formats]
            for title, formats in _BY_FORMAT.items()
            if formats
        },
        "Several formats": [n for n in reading if n not in every and len(formats_of(n)) > 1],
        "Direct write": writing,
    }
    shown = set(visible()) - set(EXPERT)
    return {title: [n for n in names if n in shown] for title, names in whole.items()}


def _formats(name: str) -> tuple[str, ...]:
    return tuple(one.value for one in formats_of(name))


def documents() -> dict[Path, str]:
    """File -> what belongs between its markers."""
    sections = {"Common options": common_table()}
    sections |= {title: table(names) for title, names in groups().items()}
    whole = "\n\n".join(f"## {title}\n\n{rows}" for title, rows in sections.items())
    return {
        ROOT / "docs" / "options.md": whole,
        ROOT / "docs" / "expert-options.md": table(EXPERT),
        ROOT / "docs" / "from-spark.md": names_table("Spark", SPARK),
        ROOT / "docs" / "from-auto-loader.md": names_table("Auto Loader", AUTO_LOADER),
    }


def updated(path: Path, content: str) -> str:
    """The text of `path` with `content` between the markers, and the number of our own options."""
    pattern = re.compile(f"{BEGIN}.*{END}", re.DOTALL)
    replacement = f"{BEGIN}\n{content}\n{END}"
    text = pattern.sub(lambda _: replacement, path.read_text(encoding="utf-8"))
    return re.sub(r"\d+ (?=are of Sluice)", f"{len(own())} ", text)


def main() -> int:
    """Rewrite the documents."""
    for path, content in documents().items():
        path.write_text(updated(path, content), encoding="utf-8")
    SCHEMA.write_text(json.dumps(feeds_file.schema(), indent=2) + "\n", encoding="utf-8")
    return option_types.main()


if __name__ == "__main__":
    sys.exit(main())
