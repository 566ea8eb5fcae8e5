"""One table of the options that need other options, exclude them, or need a stream.

Which formats know an option of reading is in the formats' `registry`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from ...enumerator.files.file_options import CleaningOptions
from ...enumerator.files.ledger.new_files import OnOverwrite
from ...enumerator.files.ledger.pending import FileOrder
from ...errors import OptionError
from ...reader.direct_write.write_options import WriteOptions
from ...reader.files.formats.registry import format_class
from ...reader.files.options import FileFormatName, ParseMode
from ...reader.files.options.schema_options import EvolutionMode
from ...reader.files.options.values import MissingFiles

UNSET: Final = object()
"""Among the values of a rule: the option is left out."""


@dataclass(frozen=True)
class Rule:
    """An option that was chosen permits only some values of another one."""

    option: str
    value: object
    """The value of `option` that the rule is about; None: any but its default."""

    other: str
    permitted: tuple[object, ...] | str = ()
    """Values of `other`; if empty, any but its default. A name: formats of which this is true."""

    reason: str = ""

    def problem(self, options: BaseModel) -> str:
        """The line that reports a violation; empty without one."""
        value = getattr(options, self.option)
        if not is_chosen(options, self.option) or self.value not in (None, value):
            return ""
        if self._is_permitted(options):
            return ""
        other, permitted = to_camel(self.other), self.permitted
        if isinstance(permitted, str):
            permitted = tuple(f for f in FileFormatName if getattr(format_class(f), permitted))
        found = f" {shown(value)}" if self.value else ""
        found += f" with {other}={shown(getattr(options, self.other))}" if permitted else ""
        found += "" if permitted else f" without {other}"
        values = (f"no {other}" if v is UNSET else f"{other}={shown(v)}" for v in permitted)
        expected = " or ".join(values) or f"{other} with it"
        return f"{to_camel(self.option)}: found{found}; expected {expected}{self.reason}"

    def _is_permitted(self, options: BaseModel) -> bool:
        value = getattr(options, self.other)
        if isinstance(self.permitted, str):
            with contextlib.suppress(OptionError):
                return bool(getattr(format_class(value), self.permitted))
            return True  # That there is no such format is another problem.
        if not self.permitted:
            return is_chosen(options, self.other)
        is_unset = self.other not in options.model_fields_set
        return value in self.permitted or (UNSET in self.permitted and is_unset)


def _rules(options: str, *needs: Sequence[Any], value: object = None) -> Sequence[Rule]:
    return [Rule(name, value, *need) for name in options.split() for need in needs]


_ROWS_LEAVE = ", since a content whose rows have left the table would count as known"
_TABLE_HAS_FILES = ", since the table has the files themselves"
_NOT_IN_ROWS = ", since malformed records are not in the rows"
_LINES = ", since it needs lines that each are a record"
_NOTHING_WRITTEN = ", since nothing is written with never"
_QUEUE = (
    ": an SQS queue, an Azure Storage Queue or a Pub/Sub subscription that receives the events of "
    "the bucket"
)
_WRITE_OPTIONS = WriteOptions.model_fields.keys() - {"write_to"}
_NOT_WRITTEN = {"write_copy", "write_schema"}
"""Options of direct writes that apply to files that stay where they are, too."""

OF_EVERY_SOURCE: Final = (
    *_rules("write_file_column", ("source", ("files",), ", since only files have a key")),
    *_rules(
        "bad_records_path",
        ("mode", (UNSET, ParseMode.DROPMALFORMED), _NOT_IN_ROWS),
        ("column_name_of_corrupt_record", (UNSET,), _NOT_IN_ROWS),
    ),
    *_rules(
        "fresh_share",
        (
            "file_order",
            (FileOrder.MTIME, FileOrder.NAME),
            ", since the other orders say themselves which files come first",
        ),
    ),
)

OF_FILES: Final = (
    *_rules(
        "max_event_time_skew on_late_file event_time_column on_missing_event_time alignment_group",
        ("file_order", (FileOrder.EVENT_TIME,)),
    ),
    *_rules("event_time_unit", ("event_time_column",)),
    *_rules(
        "event_time_column",
        (
            "file_format",
            "has_time_statistics",
            ", since other files have no statistics; or eventTimePattern instead",
        ),
    ),
    *_rules("dead_letter_queue_url", ("discovery_mode", ("notifications",))),
    *_rules("queue_url", ("discovery_mode", ("notifications", "journal"))),
    *_rules("discovery_mode", ("queue_url", (), _QUEUE), value="notifications"),
    *_rules(
        "discovery_mode", ("queue_url", (), ": iceberg:CATALOG.NAMESPACE.TABLE"), value="journal"
    ),
    *_rules("clean_source", ("source_archive_dir",), value="archive"),
    *_rules(" ".join(sorted(_WRITE_OPTIONS)), ("write_to",)),
    *_rules("write_transform", ("write_transform_schema",)),
    *_rules("write_transform_schema", ("write_transform",)),
    *_rules(
        " ".join(["filter", *sorted(_WRITE_OPTIONS - _NOT_WRITTEN)]),
        ("write_copy", ("always",), _NOTHING_WRITTEN),
    ),
    *_rules(
        "write_copy",
        ("file_format", (FileFormatName.PARQUET,)),
        ("clean_source", ("off",), _TABLE_HAS_FILES),
        ("on_overwrite", (OnOverwrite.IGNORE,), _TABLE_HAS_FILES),
        value="never",
    ),
    *_rules(
        "ignore_missing_files",
        (
            "clean_source",
            ("off",),
            ", since older files of a directory tell a lost file from a replaced one",
        ),
        value=MissingFiles.SKIP_IF_REPLACED,
    ),
    *_rules(
        "on_overwrite",
        ("write_file_column", (), ", the column of the table by which earlier rows are found"),
        value=OnOverwrite.REPLACE,
    ),
    *_rules(
        "identity",
        (
            "on_overwrite",
            (OnOverwrite.IGNORE, OnOverwrite.REPROCESS, OnOverwrite.FAIL),
            _ROWS_LEAVE,
        ),
        ("on_delete", ("ignore",), _ROWS_LEAVE),
        ("write_copy", ("always",), _TABLE_HAS_FILES),
        value="content",
    ),
    *_rules("retract_after", ("on_delete", ("retract",))),
    *_rules(
        "on_delete",
        ("write_file_column",),
        (
            "on_overwrite",
            (OnOverwrite.IGNORE, OnOverwrite.REPLACE),
            ", since rows of one version of a file are in the table",
        ),
        ("discovery_mode", ("full",), ", since others do not look at all files"),
        (
            "clean_source",
            ("off",),
            ", since a file that was cleaned up and one that was deleted look alike",
        ),
        value="retract",
    ),
    *_rules("schema_evolution_mode", ("write_copy", ("always",)), value=EvolutionMode.RESCUE),
    *_rules(
        "on_overwrite",
        ("clean_source", ("off",), ", since a file that grows is never read to its end"),
        ("file_format", "is_lines", _LINES),
        ("wholetext", (False,), _LINES),
        ("multi_line", (False,), _LINES),
        value=OnOverwrite.APPEND_TAIL,
    ),
    *_rules(
        "record_path",
        ("multi_line",),
        ("line_sep", ("",)),
        ("allow_comments", (False,), ", which may hold quotes and brackets"),
    ),
)


_BATCHES = (
    "max_files_per_trigger max_bytes_per_trigger max_rows_per_trigger max_batch_duration "
    "fresh_share file_order max_event_time_skew on_late_file "
    "event_time_column event_time_unit on_missing_event_time alignment_group"
)
_PROGRESS = (
    "include_existing_files identity on_overwrite on_delete retract_after on_split_error "
    "max_split_attempts"
)
_QUEUE = "discovery_mode queue_url dead_letter_queue_url"
_CHECKPOINTS = (
    "available_now bad_records_path starting_state allow_unread_batches checkpoints_ahead "
    "retain_checkpoints_for keep_file_rows"
)
ONLY_STREAMS = frozenset(
    [*f"{_BATCHES} {_PROGRESS} {_QUEUE} {_CHECKPOINTS}".split(), *CleaningOptions.model_fields]
)
"""Fields of `SluiceOptions` that say what becomes of batches, of progress and of checkpoints."""


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
