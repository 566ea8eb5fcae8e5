"""Moments in the life of a query's driver, told by the files that it writes."""

from __future__ import annotations

from pyspark_sluice.examples.demo.watch import Checkpoint, Watch

FILES = 24
"""Four batches: a moment that needs the third one has two to come in."""

ROWS = 25


def discovering(watch: Watch) -> bool:
    """An incarnation of the coordinator has begun and has not published anything yet."""
    # A kill within Spark's own write of its first offset leaves a temporary file, for which Spark
    # then refuses the checkpoint directory; no source can help that.
    epochs = watch.epochs()
    nothing = all(c.epoch != max(epochs) for c in watch.checkpoints())
    return bool(epochs) and nothing and not watch.writing_offset()


def cut_ahead(watch: Watch) -> bool:
    """Two checkpoints are in flight: a batch runs, and the one after it is durable already."""
    batch = watch.running()
    return batch is not None and batch > 1 and _is_ahead(watch)


def published_only(watch: Watch) -> bool:
    """Spark has finished a batch; the next one is durable, and not in the offset log."""
    return watch.running() is None and len(watch.offsets()) > 2 and _is_ahead(watch)


def _is_ahead(watch: Watch) -> bool:
    newest = watch.checkpoints()[-1]
    return watch.of_batch(max(watch.offsets())) != newest and _is_new(watch, newest)


def _is_new(watch: Watch, checkpoint: Checkpoint) -> bool:
    """The newest incarnation of the coordinator has written it."""
    return checkpoint.epoch == max(watch.epochs())


def in_the_tasks(watch: Watch) -> bool:
    """One task of the running batch has acknowledged, another has not."""
    done, of = _tasks(watch)
    return 0 < done < of


def between_tasks_and_commit(watch: Watch) -> bool:
    """Every task of the running batch has acknowledged, and Spark has not committed it."""
    done, of = _tasks(watch)
    return 0 < done == of


def idle(watch: Watch) -> bool:
    """Spark has committed everything that there was to read, and has begun nothing since."""
    done = watch.of_batch(max(watch.commits())) if watch.commits() else None
    if done is None or not _is_new(watch, done):
        return False
    return watch.running() is None and _files_read(watch) % FILES == 0


def _files_read(watch: Watch) -> int:
    """In batches of Spark; without checkpoints that died with their driver."""
    batches = [watch.of_batch(batch) for batch in watch.offsets()]
    return sum(len(watch.assigned(checkpoint)) for checkpoint in batches if checkpoint)


def _tasks(watch: Watch) -> tuple[int, int]:
    batch = watch.running()
    checkpoint = None if batch is None or batch < 2 else watch.of_batch(batch)
    if checkpoint is None or not _is_new(watch, checkpoint):
        return 0, 0
    return watch.reader_commits(checkpoint), len(set(watch.assigned(checkpoint)))
