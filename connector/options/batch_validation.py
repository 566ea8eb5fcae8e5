"""The options that only a stream has: in a batch read they are refused by name.

A batch read takes all files that are there, at once: a limit that it ignored would be a surprise.
Not here: landing, which needs a stream, too (`connector/source/landing.py`).
"""

from __future__ import annotations

from enum import Enum

from ...enumerator.files.cleaning.cleaning_options import CleaningOptions
from ...errors import OptionError
from .model import SluiceOptions

_BATCHES = (
    "max_files_per_trigger max_bytes_per_trigger max_rows_per_trigger target_batch_duration "
    "fresh_share file_order max_event_time_skew on_late_file event_time_column event_time_unit "
    "on_missing_event_time alignment_group alignment_idle_timeout"
)
_PROGRESS = (
    "include_existing_files on_overwrite on_split_error max_split_attempts max_pending_files"
)
_QUEUE = "discovery_mode queue_url dead_letter_queue_url"
_CHECKPOINTS = (
    "bad_records_path starting_state ingest_again allow_unread_first_batch acknowledgement_timeout "
    "checkpoints_ahead min_checkpoints_to_retain retain_checkpoints_for"
)
ONLY_STREAMS = frozenset(
    [
        *f"{_BATCHES} {_PROGRESS} {_QUEUE} {_CHECKPOINTS}".split(),
        *CleaningOptions.model_fields,
    ]
)
"""Fields of `SluiceOptions` that say what becomes of batches, of progress and of checkpoints."""


def refuse_streaming_options(options: SluiceOptions) -> None:
    """Raise if a batch read is given what only a stream can do. A default value is accepted.

    Raises:
        OptionError: names each of them.
    """
    fields = SluiceOptions.model_fields
    problems = [
        f"{fields[name].alias}: found {_shown(getattr(options, name))} in a batch read; "
        "expected it with readStream only"
        for name in sorted(ONLY_STREAMS & options.model_fields_set)
        if getattr(options, name) != fields[name].default
    ]
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise OptionError(
            f'spark.read.format("sluice") reads all files at once, without a state:{listed}\n'
            "Leave these out, or use readStream with trigger(availableNow=True)"
        )


def _shown(value: object) -> object:
    return value.value if isinstance(value, Enum) else value
