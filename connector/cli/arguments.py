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
    str, typer.Option("--source-name", help="The query's sourceName, where it has one.")
]
StorageOptions = Annotated[
    str, typer.Option("--storage-options", help="The query's storageOptions: a JSON object.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")]

New = Annotated[
    str,
    typer.Argument(
        metavar="NEW",
        help="The checkpointLocation of the new query: a directory that is empty or not there.",
    ),
]
ContinueQuery = Annotated[
    bool,
    typer.Option(
        "--continue-query",
        help="The new query keeps the id and the batch numbers of the old one, which its sink may "
        "remember: for the same table. The old query has to be stopped, and never starts again.",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do it; without it, only say what would be done.")
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
