"""The options of cleaning up: what becomes of files that were read.

Not here: cleaning (`file_cleaner.py`).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ....checkpoint_meta.storage.units import LowerCase, Milliseconds
from ..discovery.discovery_options import named

__all__ = ["CleaningOptions"]


class CleaningOptions(BaseModel):
    """Joined to the others by the model that has all options."""

    model_config = ConfigDict(defer_build=True)

    clean_source: Annotated[Literal["off", "delete", "archive"], LowerCase] = Field(
        "off",
        description=(
            "What happens to a file that completed batches have read to its end: off leaves "
            "it, delete deletes it, archive moves it below sourceArchiveDir. Never a file that "
            "has changed since, nor a file of which a part was returned, skipped or "
            "quarantined."
        ),
        json_schema_extra=named("cleanSource", "cloudFiles.cleanSource"),
    )
    source_archive_dir: str = Field(
        "",
        description=(
            "Where cleanSource=archive moves files; on the same file system or in the same "
            "bucket, and outside of the loaded paths. A file keeps its name below the loaded "
            "path; an existing file is never replaced."
        ),
        json_schema_extra=named("sourceArchiveDir", "cloudFiles.cleanSource.moveDestination"),
    )
    clean_source_retention: Milliseconds = Field(
        0,
        ge=0,
        description=(
            "How long a file stays where it is after the last batch that read it was planned."
        ),
        json_schema_extra=named(
            auto_loader="cloudFiles.cleanSource.retentionDuration", unit="milliseconds"
        ),
    )
    clean_source_while_retained: bool = Field(
        False,
        description=(
            "true cleans up as soon as a batch is complete. false waits until its checkpoint "
            "is older than the minCheckpointsToRetain newest ones, so that another query can "
            "still start from each of those."
        ),
    )
