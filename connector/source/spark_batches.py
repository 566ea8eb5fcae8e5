"""How long Spark's batches took, by the times of the objects in its own checkpoint.

A batch has begun when `offsets/<n>` is written, and has ended when `commits/<n>` is. The time until
Spark asks for the next batch is longer where a trigger interval has to pass first.

Not here: what these objects say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from ...checkpoint_meta.storage.bucket import open_bucket
from ...checkpoint_meta.storage.urls import hadoop_path, join, local_path
from ..options.model import SluiceOptions


class SparkBatches:
    """For one query; looked at between two of its batches."""

    def __init__(self, options: SluiceOptions) -> None:
        self._options = options
        self._newest = -1

    def seconds_of_newest(self) -> float | None:
        """How long the newest committed batch took.

        None if it is not known: no checkpointLocation is given or it cannot be read, or no batch
        was committed since the last call, as with asynchronous progress tracking.
        """
        if self._options.checkpoint_location is None:
            return None
        root = hadoop_path(self._options.checkpoint_location)
        try:
            names, modified = self._log(root)
            newest = max((int(name) for name in names if name.isdecimal()), default=-1)
            if newest <= self._newest:
                return None
            self._newest = newest
            seconds = modified(f"commits/{newest}") - modified(f"offsets/{newest}")
        except OSError:
            # It only makes the figure better, and Spark itself says what is wrong with its log.
            return None
        # S3 keeps whole seconds, so a short batch seems to take no time.
        return seconds if seconds > 0 else None

    def _log(self, root: str) -> tuple[Iterable[str], Callable[[str], float]]:
        path = local_path(root)
        if path is not None:
            return os.listdir(
                join(path, "commits")
            ), lambda name: os.stat(join(path, name)).st_mtime
        found = open_bucket(root, self._options.storage_options)
        if found is None:
            return (), lambda _: 0.0
        bucket, prefix = found
        keys = bucket.names(join(prefix, "commits"))
        return keys, lambda name: bucket.head(join(prefix, name)).modified / 1_000_000
