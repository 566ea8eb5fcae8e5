"""A log of which the older lines are archived in files, written without the code under test."""

import json

import pyarrow as pa

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog

LINES = pa.schema([("partition", pa.string()), ("position", pa.int64()), ("line", pa.string())])


class Logs:
    """Partitions of a log in a directory, and its archive."""

    def __init__(self, place):
        self.place = place
        self.archive = place / "archive"
        self.archive.mkdir(exist_ok=True)

    def options(self, **more):
        """As Spark hands them over; slices are of two lines."""
        given = {"path": str(self.place), "source": "log:Log", "stateLocation": "unused"}
        given |= {"sourceOptions": '{"slice": 2}', **more}
        return parse_options(given, streaming=True)

    def land(self, part, count, archived=None):
        """Append lines to a partition; the first part of a new one is archived. The rows."""
        path = self.place / f"p{part}.log"
        if archived is None:
            archived = 0 if path.exists() else (count + 1) // 2
        position = path.stat().st_size if path.exists() else 0
        rows = []
        with path.open("a") as file:
            for _ in range(count):
                line = f"line at {position}"
                file.write(f"{line}\n")
                rows.append({"partition": path.name, "position": position, "line": line})
                position += len(line) + 1
        if archived:
            last = rows[archived - 1]
            self.write_archive(part, rows[:archived], last["position"] + len(last["line"]) + 1)
        return rows

    def write_archive(self, part, rows, end):
        """A file of lines that begin before `end`, put in place atomically."""
        hidden = self.archive / f".p{part}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(self.archive / f"p{part}.log.{end}.json")


def trial_of(logs, source=ArchivedLog, **options):
    return Trial(lambda: source(logs.options(), LINES), limits=BatchLimits(files=2), **options)
