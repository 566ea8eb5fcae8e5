"""Where records and files go that are left out of the rows.

Not here: which are malformed (`mode`), and which files are skipped (`ignoreCorruptFiles`).
"""

from __future__ import annotations

from pydantic import BaseModel, Field


class BadRecordsOptions(BaseModel):
    """What is left out of the rows is written somewhere else."""

    bad_records_path: str = Field(
        "",
        description=(
            "Directory or bucket that receives malformed records (and files that "
            "ignoreCorruptFiles or ignoreMissingFiles skips) as JSON lines with path, position, "
            "record and reason, exactly once. They are not in the rows: mode is DROPMALFORMED "
            "then."
        ),
        json_schema_extra={"common": True},
    )
