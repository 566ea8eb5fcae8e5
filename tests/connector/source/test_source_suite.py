"""The suite for sources, passed by the example log, by a hybrid source and by the file source."""

from __future__ import annotations

import json

import pyarrow as pa

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.source.testing import SourceSuite
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.examples.log_source.log_source import LogSource

LINES = pa.schema([("partition", pa.string()), ("position", pa.int64()), ("line", pa.string())])


def _options(place, source, **more):
    given = {"path": str(place), "source": source, "stateLocation": "unused", **more}
    return parse_options(given, streaming=True)


def _append(place, part, count):
    """Append lines to a partition of a log; the rows."""
    path = place / f"p{part}.log"
    position = path.stat().st_size if path.exists() else 0
    rows = []
    with path.open("a") as file:
        for _ in range(count):
            line = f"line at {position}"
            file.write(f"{line}\n")
            rows.append({"partition": path.name, "position": position, "line": line})
            position += len(line) + 1
    return rows


class TestLogSource(SourceSuite):
    def make_source(self, place):
        return LogSource(_options(place, "log:Log", sourceOptions='{"slice": 2}'), LINES)

    def land(self, place, part, rows):
        return _append(place, part, rows)


class TestArchivedLog(SourceSuite):
    """What lands in a partition is in the log; of what lands first, a part is archived."""

    def make_source(self, place):
        (place / "archive").mkdir(exist_ok=True)
        return ArchivedLog(_options(place, "log:Log", sourceOptions='{"slice": 2}'), LINES)

    def land(self, place, part, rows):
        (place / "archive").mkdir(exist_ok=True)
        is_new = not (place / f"p{part}.log").exists()
        landed = _append(place, part, rows)
        if is_new:
            archived = landed[: (rows + 1) // 2]
            end = archived[-1]["position"] + len(archived[-1]["line"]) + 1
            lines = "".join(json.dumps(row) + "\n" for row in archived)
            hidden = place / "archive" / f".p{part}"
            hidden.write_text(lines)
            hidden.rename(place / "archive" / f"p{part}.log.{end}.json")
        return landed


class TestFileSource(SourceSuite):
    schema = pa.schema([("id", pa.int64()), ("part", pa.int64())])

    def make_source(self, place):
        return FileSource(_options(place, "files"), self.schema)

    def land(self, place, part, rows):
        number = len(list(place.glob("*.json")))
        landed = [{"id": number * 100 + i, "part": part} for i in range(rows)]
        hidden = place / f".{number}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in landed))
        hidden.rename(place / f"{number}.json")
        return landed
