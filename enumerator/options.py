"""The options of discovery, batches and assignment.

Not here: options of reading (reader) and of state (connector), which join these in one model.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from ..checkpoint_meta.units import ByteSize, Milliseconds
from .files.discovery.names import IGNORED, glob_pattern

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}
_MILLISECONDS: dict[str, JsonValue] = {"unit": "milliseconds"}


def _auto(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "auto" else value


def _glob(value: str) -> str:
    glob_pattern(value)
    return value


def _expression(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return value


Parallelism = Annotated[Annotated[int, Field(gt=0)] | None, BeforeValidator(_auto)]


class EnumeratorOptions(BaseModel):
    """What is found, how much of it a batch takes, and over how many readers it is spread."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    max_files_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Most files in one batch; a file counts once, with all its splits. "
        "No limit by default.",
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        description="Most bytes in one batch; large files are cut to keep it. No limit by default.",
        json_schema_extra=_BYTES,
    )
    max_rows_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Most rows in one batch, for formats whose metadata counts rows (parquet, "
        "orc, avro, arrow); refused for the others. No limit by default.",
    )
    discovery_interval: Milliseconds = Field(
        1000,
        ge=10,
        description="Time between two listings of the path.",
        json_schema_extra=_MILLISECONDS,
    )
    discovery_timeout: Milliseconds = Field(
        600_000,
        ge=1,
        description="How long the first batch waits for the first listing before it fails.",
        json_schema_extra=_MILLISECONDS,
    )
    discovery_attempts: int = Field(
        5,
        gt=0,
        description="Failed listings in a row that fail the query; from one to the next it waits "
        "0.6 s, then three times as long each time, at most 30 s.",
    )
    fail_on_missing_path: bool = Field(
        True, description="Fail if the path does not exist; false waits for it."
    )
    path_glob_filter: Annotated[str, AfterValidator(_glob)] | None = Field(
        None,
        description="Read only files whose name matches this pattern, in Hadoop's syntax: "
        "*.{json,csv}, part-[0-9]*, ?.txt.",
    )
    ignored_path_segment_regex: Annotated[str, AfterValidator(_expression)] = Field(
        IGNORED,
        description="Directories and files in whose names this regular expression is found are "
        "passed over; empty for none. As in Spark, _name=value is read and *._COPYING_ is not, "
        "whatever it says.",
    )
    parallelism: Parallelism = Field(
        None,
        description="Number of readers, thus of Spark tasks in a batch; auto goes by bytes, and "
        "uses the driver's cores where there are that many splits.",
    )
    max_split_bytes: ByteSize = Field(
        128 * 1024 * 1024,
        gt=0,
        description="Largest split; larger files are cut where their format allows it.",
        json_schema_extra=_BYTES,
    )
    open_cost_bytes: Annotated[ByteSize | None, BeforeValidator(_auto)] = Field(
        None,
        ge=0,
        description="What opening a file costs, as if it were that much longer; used to spread "
        "splits over readers. auto: 8k on local paths, where small files are read together, else "
        "4m as in Spark.",
        json_schema_extra=_BYTES,
    )
    on_split_error: Literal["fail", "return"] = Field(
        "fail",
        description="What a split that cannot be read does: fail the query, or go back to be "
        "assigned again later.",
    )
    max_split_attempts: int = Field(
        3,
        gt=0,
        description="With onSplitError=return: how often a split is tried before quarantine.",
    )
