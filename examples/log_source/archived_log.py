"""A log whose older part is in files: the files first, then the log from where they end.

A directory holds the log of `log_source.py`, and below `archive/` JSON files with lines that were
copied out of it, perhaps long ago and gone from the log's hot storage. The name of a file says up
to where its partition is archived: `p0.log.4711.json` holds lines of `p0.log` that begin before
byte 4711.

    spark.readStream.format("sluice")
        .option("source", "log_source.archived_log:ArchivedLog").option("checkpointLocation", ck)
        .schema("partition string, position long, line string").load("/logs")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from pyspark_sluice.sources import FileSource, FileSplit, HybridSource, Source

from .log_source import LogSource, LogState, PartitionState


class ArchivedLog(HybridSource):
    """Named by `.option("source", "log_source.archived_log:ArchivedLog")`."""

    @override
    def sources(self) -> Sequence[Source[Any, Any]]:
        archive = os.path.join(self.options.path, "archive")
        files = FileSource(self.options.model_copy(update={"path": archive}), self.schema)
        return files, LogSource(self.options, self.schema)

    @override
    def position_after(
        self, part: int, position: Mapping[str, int] | None, splits: Sequence[FileSplit]
    ) -> Mapping[str, int]:
        ends = dict(position or {})
        for split in splits:
            partition, end, _ = os.path.basename(split.file.path).rsplit(".", 2)
            ends[partition] = max(int(end), ends.get(partition, 0))
        return ends

    @override
    def state_at(self, part: int, position: Mapping[str, int] | None) -> LogState:
        # No reader has a partition yet (-1), and no parallelism is known (0).
        return 0, {name: PartitionState(end, -1) for name, end in (position or {}).items()}
