"""Arguments and options that several commands share.

Not here: the commands (`app.py`).
"""

from __future__ import annotations

from typing import Annotated

import typer

State = Annotated[
    str,
    typer.Argument(
        metavar="STATE",
        help="A state directory, or the checkpointLocation or stateLocation of the query; a local "
        "path or a URL such as s3://bucket/checkpoints/flights.",
    ),
]
SourceName = Annotated[
    str, typer.Option("--source-name", help="The query's sourceName, if it has one.")
]
StorageOptions = Annotated[
    str, typer.Option("--storage-options", help="The query's storageOptions: a JSON object.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")]

New = Annotated[
    str,
    typer.Argument(
        metavar="NEW",
        help=(
            "The checkpointLocation of the new query: a directory that is empty or does not exist."
        ),
    ),
]
ContinueQuery = Annotated[
    bool,
    typer.Option(
        "--continue-query",
        help=(
            "The new query keeps the id and the batch numbers of the old one, so that it can "
            "write into the same table. Stop the old query first, and never start it again."
        ),
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do it; without this flag, only say what would be done.")
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Run even if another host owns the state, where a query may be running."
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", help="The reason, which is stored in the permanent record.")
]
Matching = Annotated[
    str, typer.Option("--matching", help="Only paths that match a pattern with * ? [].")
]
