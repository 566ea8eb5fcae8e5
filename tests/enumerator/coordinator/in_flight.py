"""A query of which several checkpoints are in flight, and what its state shows of them."""

from pyspark_sluice.checkpoint_meta.documents.reader_commit import UnfinishedSplit
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings

TWO_FILES = CoordinatorSettings(BatchLimits(files=2), 2, discovery_timeout=0.0)


def published(query):
    return [name for name in sorted(query.state.objects) if name.startswith("checkpoints/")]


def header(query, ref):
    return query.coordinator.history.load(ref).header


def rest(number, index=0):
    """Make the remainder of a split that a reader has not finished, the first one by default."""
    return UnfinishedSplit(index=index, remainder={"json": [str(number)]})
