"""Which options need other options, or exclude them: one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from ...enumerator.files.ledger.new_files import OnOverwrite
from ...enumerator.files.ledger.pending import FileOrder
from ...reader.direct_write.write_options import WriteOptions
from ...reader.files.formats.registry import format_class
from ...reader.files.options import FileFormatName, ParseMode
from ...reader.files.options.schema_options import EvolutionMode
from ...reader.files.options.values import LINE_FORMATS, MissingFiles, is_built_in

UNSET: Final = object()
"""Among the values of a rule: the option is left out."""


@dataclass(frozen=True)
class Rule:
    """An option that was chosen permits only some values of another one."""

    option: str
    other: str
    permitted: tuple[object, ...] = ()
    """Values of `other`; if empty, any but its default."""

    value: object = None
    """The value of `option` that the rule is about; None: any but its default."""

    reason: str = ""

    def problem(self, options: BaseModel) -> str:
        """The line that reports a violation; empty without one."""
        value = getattr(options, self.option)
        if not is_chosen(options, self.option) or self.value not in (None, value):
            return ""
        if self._is_permitted(options):
            return ""
        other = to_camel(self.other)
        found = f" {shown(value)}" if self.value else ""
        found += f" with {other}={shown(getattr(options, self.other))}" if self.permitted else ""
        found += "" if self.permitted else f" without {other}"
        values = (f"no {other}" if v is UNSET else f"{other}={shown(v)}" for v in self.permitted)
        expected = " or ".join(values) or f"{other} with it"
        return f"{to_camel(self.option)}: found{found}; expected {expected}{self.reason}"

    def _is_permitted(self, options: BaseModel) -> bool:
        if not self.permitted:
            return is_chosen(options, self.other)
        if UNSET in self.permitted and self.other not in options.model_fields_set:
            return True
        value = getattr(options, self.other)
        if self.permitted == LINE_FORMATS and not is_built_in(value):
            return format_class(value).is_lines
        return value in self.permitted


def _rules(options: str | Iterable[str], *rule: Any, **parts: Any) -> list[Rule]:
    names = options.split() if isinstance(options, str) else options
    return [Rule(name, *rule, **parts) for name in names]


_TABLE_HAS_FILES = ", since the table has the files themselves"
_NOT_IN_ROWS = ", since malformed records are not in the rows"
_LINES = ", since it needs lines that each are a record"
_WRITE_OPTIONS = sorted(WriteOptions.model_fields)
_NOT_WRITTEN = {"write_to", "write_copy", "write_schema"}
"""Options of direct writes that apply to files that stay where they are, too."""

OF_EVERY_SOURCE: Final = (
    Rule("write_file_column", "source", ("files",), reason=", since only files have a key"),
    Rule("bad_records_path", "mode", (UNSET, ParseMode.DROPMALFORMED), reason=_NOT_IN_ROWS),
    Rule("bad_records_path", "column_name_of_corrupt_record", (UNSET,), reason=_NOT_IN_ROWS),
    Rule(
        "fresh_share",
        "file_order",
        (FileOrder.MTIME, FileOrder.NAME),
        reason=", since the other orders say themselves which files come first",
    ),
)

OF_FILES: Final = (
    *_rules(
        "max_event_time_skew on_late_file event_time_column on_missing_event_time alignment_group",
        "file_order",
        (FileOrder.EVENT_TIME,),
    ),
    Rule("event_time_unit", "event_time_column"),
    *_rules("dead_letter_queue_url", "discovery_mode", ("notifications",)),
    *_rules("queue_url", "discovery_mode", ("notifications", "journal")),
    Rule(
        "discovery_mode",
        "queue_url",
        value="notifications",
        reason=": an SQS queue, an Azure Storage Queue or a Pub/Sub subscription that receives the "
        "events of the bucket",
    ),
    Rule(
        "discovery_mode", "queue_url", value="journal", reason=": iceberg:CATALOG.NAMESPACE.TABLE"
    ),
    Rule("clean_source", "source_archive_dir", value="archive"),
    *_rules((name for name in _WRITE_OPTIONS if name != "write_to"), "write_to"),
    Rule("write_transform", "write_transform_schema"),
    Rule("write_transform_schema", "write_transform"),
    *_rules(
        ["filter", *(name for name in _WRITE_OPTIONS if name not in _NOT_WRITTEN)],
        "write_copy",
        ("always",),
        reason=", since nothing is written with never",
    ),
    Rule("write_copy", "file_format", (FileFormatName.PARQUET,), "never"),
    Rule("write_copy", "clean_source", ("off",), "never", _TABLE_HAS_FILES),
    Rule(
        "ignore_missing_files",
        "clean_source",
        ("off",),
        MissingFiles.SKIP_IF_REPLACED,
        ", since older files of a directory tell a lost file from a replaced one",
    ),
    Rule("write_copy", "on_overwrite", (OnOverwrite.IGNORE,), "never", _TABLE_HAS_FILES),
    Rule(
        "on_overwrite",
        "write_file_column",
        value=OnOverwrite.REPLACE,
        reason=", the column of the table by which earlier rows are found",
    ),
    Rule("retract_after", "on_delete", ("retract",)),
    Rule("on_delete", "write_file_column", value="retract"),
    Rule(
        "on_delete",
        "on_overwrite",
        (OnOverwrite.IGNORE, OnOverwrite.REPLACE),
        "retract",
        ", since rows of one version of a file are in the table",
    ),
    Rule(
        "on_delete",
        "discovery_mode",
        ("full",),
        "retract",
        ", since others do not look at all files",
    ),
    Rule(
        "on_delete",
        "clean_source",
        ("off",),
        "retract",
        ", since a file that was cleaned up and one that was deleted look alike",
    ),
    Rule("schema_evolution_mode", "write_copy", ("always",), EvolutionMode.RESCUE),
    Rule(
        "on_overwrite",
        "clean_source",
        ("off",),
        OnOverwrite.APPEND_TAIL,
        ", since a file that grows is never read to its end",
    ),
    Rule(
        "on_overwrite",
        "file_format",
        LINE_FORMATS,
        OnOverwrite.APPEND_TAIL,
        _LINES,
    ),
    Rule("record_path", "multi_line"),
    Rule("record_path", "line_sep", ("",)),
    Rule("record_path", "allow_comments", (False,), reason=", which may hold quotes and brackets"),
    Rule("on_overwrite", "wholetext", (False,), OnOverwrite.APPEND_TAIL, _LINES),
    Rule("on_overwrite", "multi_line", (False,), OnOverwrite.APPEND_TAIL, _LINES),
)


def is_chosen(options: BaseModel, name: str) -> bool:
    """True if an option was given another value than its default."""
    if name not in options.model_fields_set:
        return False
    default = type(options).model_fields[name].get_default(call_default_factory=True)
    return bool(getattr(options, name) != default)


def shown(value: object) -> object:
    """A value as it is written in an option."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.value if isinstance(value, Enum) else value


def broken_rules(options: BaseModel, source: str) -> Iterator[str]:
    """Yield a line for each pair of options that do not fit together."""
    rules = (*OF_EVERY_SOURCE, *(OF_FILES if source == "files" else ()))
    yield from filter(None, (rule.problem(options) for rule in rules))
