"""What other programs have read, and what the commands make of it."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.cli.command_line import run
from pyspark_sluice.tests.connector.queries import Query

ODD = [
    "plain.json",
    "with blank.json",
    "100%.json",
    "a%20b.json",
    "k=v.json",
    "ünï.json",
    "#+&.json",
]


def landed(root, names):
    """Files with an id each, in the order of the names."""
    data = root / "data"
    data.mkdir(exist_ok=True)
    for at, name in enumerate(names):
        (data / name).write_text(f'{{"id": {at}}}\n')
    return [data / name for name in names]


def imported(root, capsys, command, *arguments, code=0):
    """What the command says, and a query in the state that it made."""
    if code:
        assert main([command, *map(str, arguments)]) == code
        return capsys.readouterr().err
    report = run(capsys, command, *map(str, arguments))
    return report, Query(root, state=str(root / "new" / "sluice" / "source"))


def rows_of(paths, committed):
    """Rows of cloud_files_state."""
    return [
        {
            "path": str(path),
            "size": path.stat().st_size,
            "create_time": "2999-01-01T00:00:00.000Z",
            "discovery_time": "2999-01-01T00:00:00.000Z",
            "commit_time": "2999-01-01T00:01:00.000Z" if path in committed else None,
            "archive_time": None,
            "source_id": "0",
        }
        for path in paths
    ]


def written(root, rows, ending):
    """An export in one of the formats; JSON lines in a directory, as Spark writes them."""
    target = root / f"export{ending}"
    if ending == ".csv":
        with target.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), target)
    else:
        target.mkdir()
        (target / "_SUCCESS").write_text("")
        lines = [json.dumps({k: v for k, v in row.items() if v is not None}) for row in rows]
        (target / "part-0.json").write_text("\n".join(lines[:2]) + "\n")
        (target / "part-1.json").write_text("\n".join(lines[2:]))
    return target
