"""The options of the ledger: which files count as new, and in which order they are read.

Not here: which files are found (`discovery/discovery_options.py`).
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..discovery.discovery_options import named
from .changes import OnOverwrite
from .pending import FileOrder


class LedgerOptions(BaseModel):
    """What becomes of what is found. Frozen by the model that joins all options."""

    model_config = ConfigDict(defer_build=True)

    file_order: FileOrder = Field(
        FileOrder.MTIME,
        description="Which files come first: mtime (the oldest), name, or newestFirst. It orders "
        "what has been found; the first batch may start before everything has.",
        json_schema_extra=named("latestFirst"),
    )
    fresh_share: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="The part of each batch that is kept for the files at the end of fileOrder "
        "(with mtime the newest), while a backlog drains: of its bytes where bytes are limited, "
        "else of its files.",
    )
    max_pending_files: int = Field(
        1_000_000,
        gt=0,
        description="Listing pauses while so many files wait to be read: what bounds the memory "
        "of a first listing.",
    )
    include_existing_files: bool = Field(
        True,
        description="false: files that are there at the first start count as seen and are not "
        "read. The first batch is then an empty one, which makes that durable.",
        json_schema_extra=named(auto_loader="cloudFiles.includeExistingFiles"),
    )
    on_overwrite: OnOverwrite = Field(
        OnOverwrite.IGNORE,
        description="What a file means that was found before and has another size, time or etag: "
        "ignore it, reprocess it whole, fail, or appendTail: read on from where it ended, for "
        "local files of a line format that only grow.",
        json_schema_extra=named(auto_loader="cloudFiles.allowOverwrites"),
    )

    @model_validator(mode="after")
    def _newest_come_anyway(self) -> Self:
        if self.fresh_share and self.file_order is FileOrder.NEWEST_FIRST:
            message = "freshShare: with fileOrder=newestFirst the newest files come first anyway"
            raise ValueError(message)
        return self
