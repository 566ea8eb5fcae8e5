"""Commands that are refused, and what their messages lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Wrong:
    """A command that is refused, and the one that its message leads to."""

    place: str
    wrong: str
    right: str
    says: str
    """A part of the remedy."""

    rows: Sequence[int] = (1, 2, 3)
    """The ids in the table after one more run."""

    gone: str = ""
    """A file that is removed before."""


_TWICE = (1, 1, 2, 2, 3)
_TIMES = "requeue CK --yes --event-time 2026-11-26..2026-11-29"

COMMANDS = [
    Wrong("fork.py: --at and", "fork CK NEW --at 1 --at-time 2030", "fork CK NEW --at 1", "one"),
    Wrong("the target directory is not", "fork CK IN --at 1", "fork CK NEW --at 1", "empty"),
    Wrong(
        "only the end of a query can",
        "fork CK NEW --continue-query --at 1",
        "fork CK NEW --continue-query",
        "Leave --at out",
    ),
    Wrong("compact-table: not a Delta", "compact-table IN", "compact-table delta:TABLE", "delta:"),
    Wrong(
        "run_arguments.py: {} exclude each other",
        "RUN --once --every 5s",
        "RUN --once",
        "one of them",
    ),
    Wrong("has no such heading", "runbook nonsense", "runbook FencedError", "FencedError"),
    Wrong("no table to compare", "sweep CK TABLE --table IN", "sweep CK TABLE", "Delta"),
    Wrong(
        "there is no schema to go back",
        "take-back-schema CK",
        "files CK --view schemas",
        "--view schemas",
    ),
    Wrong(
        "reread: no batch is in flight",
        "reread CK",
        "requeue CK --matching * --yes",
        "sluice requeue",
        _TWICE,
    ),
    Wrong("waive: no batch is in", "waive CK", "files CK --in-state assigned", "sluice forget"),
    Wrong(
        "should be read again no longer exist",
        "requeue CK --matching * --yes",
        "requeue CK --matching * --yes --skip-missing",
        "--skip-missing",
        (1, 2, 2, 3),
        gone="2026-11-27/1.json",
    ),
    Wrong(
        "--event-time or --event-time-pattern",
        "requeue CK --event-time x --yes",
        f"{_TIMES} --event-time-pattern {{yyyy}}-{{MM}}-{{dd}} --matching *2026*",
        "{yyyy}",
        (1, 1, 2, 3),
    ),
    Wrong(
        "known_files.py: --event-time: {}",
        _TIMES,
        f"{_TIMES} --event-time-pattern {{yyyy}}-{{MM}}-{{dd}} --matching *2026*",
        "--event-time-pattern '{yyyy}-{MM}-{dd}'",
        (1, 1, 2, 3),
    ),
    Wrong(
        "requeue: no option says",
        "requeue CK --yes",
        "requeue CK --matching * --yes",
        "--matching '*'",
        _TWICE,
    ),
    Wrong(
        "rewind: pass either", "rewind CK --yes", "rewind CK --to 1 --yes", "--to 42", (1, 2, 2, 3)
    ),
    Wrong(
        "reprocess_plan.py: {}: the table has no",
        "retract CK --matching * --yes",
        "requeue CK --matching * --yes",
        "without --replace",
        _TWICE,
    ),
    Wrong("retract: no option says", "retract CK", "files CK", "--matching '*'"),
    Wrong("forget: no option says", "forget CK", "files CK --in-state pending", "--matching '*'"),
    Wrong("--in-state: no row", "files CK --in-state x", "files CK --in-state done", "done"),
    Wrong(
        "files.py: {} does not apply",
        "files CK --view schemas --matching *",
        "files CK --matching *",
        "view",
    ),
    Wrong("arguments.py: no state", "status IN", "status CK", "checkpointLocation"),
    Wrong(
        "arguments.py: the checkpoint does",
        "fork CK NEW --at 99",
        "checkpoints CK",
        "sluice checkpoints",
    ),
    Wrong("--option does not parse", "RUN --option x", "RUN --option mode=FAILFAST", "NAME=VALUE"),
    Wrong(
        "--storage-options do not",
        "status CK --storage-options {",
        "status CK --storage-options {}",
        "JSON",
    ),
    Wrong("arguments.py: {} does not", "RUN --every x", "RUN --once", "--every"),
    Wrong("to: not a table", "run IN --to TABLE --checkpoint CK", "RUN", "delta:URL"),
    Wrong("view: the view does not", "files CK --view read", "files CK --view readers", "readers"),
    Wrong("options/call.py: {}", "RUN --option path=x", "RUN", "path"),
    Wrong(
        "open_store.py: state cannot be kept",
        "run IN --to parquet:ftp://h/x --checkpoint NEW",
        "RUN",
        "a local path",
    ),
    Wrong(
        "a Delta table cannot be written there",
        "run IN --to delta:ftp://h/x --checkpoint NEW",
        "RUN",
        "a local path",
    ),
    Wrong(
        "its create is not known to be atomic",
        "run IN --to delta:TABLE --checkpoint ftp://h/x",
        "RUN",
        "a local path",
    ),
    Wrong(
        "providers.py: storageOptions: not known to the client",
        'run s3://b/x --to delta:TABLE --checkpoint NEW --option storageOptions={"colour":1}',
        "RUN",
        "Leave them out",
    ),
    Wrong(
        "the endpoint is not a URL",
        'run s3://b/x --to delta:TABLE --checkpoint NEW --option storageOptions={"endpoint":"x"}',
        "RUN",
        "a URL such as",
    ),
    Wrong(
        "is not a known client",
        'run s3://b/x --to delta:TABLE --checkpoint NEW --option storageOptions={"client":"x"}',
        "RUN",
        "obstore or fsspec",
    ),
    Wrong(
        "they do not configure a client",
        "run gs://b/x --to delta:TABLE --checkpoint NEW --option storageOptions="
        '{"service_account_key":"x"}',
        "RUN",
        "in the form that the client reads",
    ),
]
