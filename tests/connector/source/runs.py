"""AvailableNow runs over files, one after another on one state, without Spark."""

from __future__ import annotations

import pyarrow as pa

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.enumerator import BatchLimits, Coordinator, CoordinatorSettings
from pyspark_sluice.reader.api import ReaderContext


class Runs:
    """A query without tasks or acknowledgements; each run has a new coordinator."""

    def __init__(self, schema, **options):
        self.schema, self.given = schema, options
        self.store, self.ref, self.backlog = MemoryStateStore(), NO_CHECKPOINT, {}

    def run(self, batches=100, deltas=2, *, dies=False, before_reading=lambda: None):
        """Rows of each batch; a run that dies forgets what its last batch was."""
        options = parse_options(self.given, streaming=False)
        source = FileSource(options, self.schema)
        settings = CoordinatorSettings(
            limits=BatchLimits(files=options.max_files_per_trigger),
            parallelism=1,
            commit_patience=0.0,
            deltas_per_base=deltas,
        )
        coordinator = Coordinator(source, self.store, settings)
        coordinator.prepare_available_now()
        found = []
        try:
            while len(found) < batches and (end := coordinator.latest(self.ref)) != self.ref:
                before_reading()
                checkpoints = coordinator.assignments(self.ref, end)
                found.append([row for one in checkpoints for row in _rows(source, one)])
                self.backlog = coordinator.report()
                self.ref = self.ref if dies else end
        finally:
            coordinator.close()
        return found


def _rows(source, checkpoint):
    for reader, splits in checkpoint.assigned:
        made = source.create_reader(ReaderContext(checkpoint.ref.checkpoint, reader, 0))
        for item in made.read(source.split_serializer.read(1, splits)):
            if isinstance(item, pa.RecordBatch):
                yield from item.to_pylist()
        made.close()
