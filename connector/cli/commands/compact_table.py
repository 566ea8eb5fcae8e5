"""The command that makes few large files of the many small ones in a Delta table."""

from __future__ import annotations

from typing import Annotated

import typer

from ....checkpoint_meta.storage.units import parse_bytes
from ....errors import OptionError
from ....tables.delta_table import DeltaSink
from ..answer import Answer
from ..arguments import StorageOptions
from ..state_argument import parsed, parsed_storage_options


def compact_table(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Use this table: delta:URL.")],
    target_bytes: Annotated[
        str, typer.Option(metavar="SIZE", help="Write files of about this size, such as 128m.")
    ] = "128m",
    storage_options: StorageOptions = "{}",
) -> Answer:
    """Rewrite the small files of a Delta table.

    Larger files replace them in one commit. The query may be running. VACUUM deletes the old files.
    """
    kind, _, place = table.partition(":")
    if kind != "delta" or not place:
        raise OptionError(
            "compact-table: not a Delta table",
            "",
            table,
            "delta:URL; pyiceberg cannot rewrite the files of an Iceberg table, so use another "
            "engine for it, such as Spark's procedure rewrite_data_files",
        )
    size = parsed("--target-bytes", target_bytes, parse_bytes)
    return Answer(DeltaSink(place, parsed_storage_options(storage_options)).compact(size))
