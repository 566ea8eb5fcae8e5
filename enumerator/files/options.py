"""The options of batches and assignment, joined to those of discovery.

Not here: what is found (`discovery/discovery_options.py`), options of reading (reader) and of state
(connector), which join these in one model.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from ...checkpoint_meta.storage.units import ByteSize
from .discovery.discovery_options import DiscoveryOptions, named
from .ledger.ledger_options import LedgerOptions

_BYTES: dict[str, JsonValue] = {"unit": "bytes"}


def _auto(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "auto" else value


Parallelism = Annotated[Annotated[int, Field(gt=0)] | None, BeforeValidator(_auto)]


class EnumeratorOptions(DiscoveryOptions, LedgerOptions):
    """What is found, how much of it a batch takes, and over how many readers it is spread."""

    model_config = ConfigDict(
        frozen=True, defer_build=True, alias_generator=to_camel, populate_by_name=True
    )

    max_files_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Most files in one batch; a file counts once, with all its splits. "
        "No limit by default.",
        json_schema_extra=named("maxFilesPerTrigger", "cloudFiles.maxFilesPerTrigger"),
    )
    max_bytes_per_trigger: ByteSize | None = Field(
        None,
        gt=0,
        description="Most bytes in one batch; large files are cut to keep it. No limit by default.",
        json_schema_extra=named("maxBytesPerTrigger", "cloudFiles.maxBytesPerTrigger", "bytes"),
    )
    max_rows_per_trigger: int | None = Field(
        None,
        gt=0,
        description="Most rows in one batch, for formats whose metadata counts rows (parquet, "
        "orc, avro, arrow); refused for the others. No limit by default.",
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
