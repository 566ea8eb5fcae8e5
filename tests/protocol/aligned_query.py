"""A query over several aligned sources, on a model of Spark: one offset log for all of them.

Files are hours. The coordinators, tasks and messages are the real ones; nothing happens by itself,
and there is one clock for the idle timeout, which only a test moves.
"""

from pyspark_sluice.checkpoint_meta.documents.aligned_positions import AlignedPositions
from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, FileVersion
from pyspark_sluice.checkpoint_meta.stores.testing import (
    FaultyStateStore,
    MemoryStateStore,
    SimulatedCrash,
)
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.connector.query.partitions import partitions_of
from pyspark_sluice.connector.source.api import Source
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files.aligned_batches import AlignedBatches, Alignment
from pyspark_sluice.enumerator.files.cutting import SplitCutter, SplitSpreader
from pyspark_sluice.enumerator.files.enumerator import FileSplitEnumerator
from pyspark_sluice.enumerator.files.file_policy import FilePolicy
from pyspark_sluice.enumerator.files.ledger.file_state import FileState, fold
from pyspark_sluice.enumerator.files.ledger_source import FilesSource
from pyspark_sluice.tests.enumerator.files.bench import HOUR, AnyByte, Listed, in_event_time, times

from .row_reader import SCHEMA, RowReader

IDLE = 300.0
QUIET = 8
"""Questions without news in a row after which nothing comes unless time passes."""


class HoursSource(FilesSource, Source[FileSplit, FileState]):
    """Files that a test makes up, each of an hour, whose rows are counted."""

    def __init__(self, files, alignment, skew, pace):
        super().__init__(SluiceOptions(), SCHEMA)
        self._files = files
        self._pace = pace
        self._policy = FilePolicy(0.0, alignment=alignment, portion=3, **in_event_time(skew))

    def create_enumerator(self, context, state):
        discovery = Listed(lambda: self._files, chunk=2)
        cutter, spreader = SplitCutter(AnyByte(), 100), SplitSpreader(1000, 1, 1)
        made = FileSplitEnumerator(context, discovery, cutter, spreader, self._policy, state)
        policy, first = self._policy, made.ledger.pending.first
        made._batch_order = self._pace(policy.event_time, context, policy.alignment, first)
        return made

    def restore_state(self, chain, attachments):
        return fold(chain, attachments, details=False)

    def create_reader(self, context):
        return RowReader(context)


class OneOfSeveral(Trial):
    """One source of the query; a kill is the end of all of its processes."""

    def __init__(self, query, *given, **options):
        self.query = query
        super().__init__(*given, **options)

    def _died(self):
        self.query.kill_at(None)

    @property
    def start(self):
        return self.offsets[len(self.sink) - 1] if self.sink else NO_CHECKPOINT

    def latest(self):
        return self._patiently(lambda: self.coordinator.latest(self.start))

    def read_batch(self):
        checkpoints = self.coordinator.assignments(self.start, self.offsets[-1])
        self.outcome = []
        for partition in partitions_of(checkpoints, "", "", self.coordinator.waived, 0, {}):
            rows = None
            while rows is None:
                rows = self._attempt(partition)
                self.query.background(self)
            self.outcome += rows


class AlignedQuery:
    """A query, with what it has read and what has been there from its beginning."""

    def __init__(self, hours, *, skew=1, files=None, bounded=False, pace=AlignedBatches):
        """`hours` are those of each source's files at the start; `files` limits a batch."""
        self.skew = skew * HOUR
        self.bounded = bounded
        self.clock = 0.0
        self._fault = None
        self._pace = pace
        self.messages = MemoryStateStore("messages")
        self._handles = []
        self._files = 0
        self.files = {f"s{number}": [] for number in range(len(hours))}
        for name, of in zip(self.files, hours, strict=True):
            for hour in of:
                self.land(name, hour)
        self.from_the_start = {name: list(files) for name, files in self.files.items()}
        self.handed_out = {name: set() for name in self.files}
        self.is_slow = False
        """The background of each process runs only when a question waits for it, or by `turn`."""
        self.sources = {
            name: OneOfSeveral(
                self,
                lambda name=name: self._make(name),
                limits=BatchLimits(files=files),
                bounded=bounded,
            )
            for name in self.files
        }

    def _make(self, name):
        handle = FaultyStateStore(self.messages)
        handle.fault = self._fault
        self._handles.append(handle)
        positions = AlignedPositions(handle, "group", name, IDLE, lambda: self.clock)
        alignment = Alignment(positions, 1.0)
        return HoursSource(self.files[name], alignment, self.skew, self._pace)

    # What happens -----------------------------------------------------------------------------

    def land(self, name, hour, rows=2):
        self._files += 1
        path = f"date=2026-01-{1 + hour // 24:02}/hour={hour % 24:02}/{name}-{self._files}"
        self.files[name].append(FileVersion(path, rows, self._files))

    def turn(self, name, count):
        """The background of one source's process."""
        try:
            for _ in range(count):
                self.sources[name]._background()
        except SimulatedCrash:
            self._restart_all()

    def kill_at(self, fault):
        self._fault = fault
        for handle in self._handles:
            handle.fault = fault
        for source in self.sources.values():
            source.kill_at(fault)

    def restart(self):
        self.kill_at(None)
        self._restart_all()

    def _restart_all(self):
        self.kill_at(None)
        for source in self.sources.values():
            source.restart()

    def step(self):
        """One trigger; False if no source has anything new."""
        try:
            return self._step()
        except SimulatedCrash:
            self._restart_all()
            return True

    def _step(self):
        sources = self.sources.values()
        (running,) = {len(source.offsets) - len(source.sink) for source in sources}
        if not running and not self._ask():
            return False
        for source in sources:
            source.read_batch()
        for source in sources:
            source.sink.append(source.outcome)
        self._check_skew()
        for source in sources:
            source.coordinator.commit(source.offsets[-1])
            self.background(source)
        return True

    def _ask(self):
        """One source after the other; if any has something new, all offsets are logged."""
        ends = {}
        for source in self.sources.values():
            if not self.is_slow:
                source.calls.run_calls()
            ends[source] = source.latest()
        if all(end == source.start for source, end in ends.items()):
            return False
        for source, end in ends.items():
            source.offsets.append(end)
        return True

    def background(self, source):
        if not self.is_slow:
            source._background()

    # What has to hold -------------------------------------------------------------------------

    def _check_skew(self):
        """What was there from the start: nothing runs ahead of what another has not handed out."""
        new = {name: self._paths_of(source) for name, source in self.sources.items()}
        for name, paths in new.items():
            self.handed_out[name] |= paths
        for name, paths in new.items():
            latest = max((times().of(path) for path in paths), default=None)
            for other, files in self.from_the_start.items():
                left = {file.path for file in files} - self.handed_out[other]
                if latest is not None and left and other != name:
                    earliest = min(map(times().of, left))
                    ahead = (latest - earliest) / HOUR
                    assert ahead <= self.skew / HOUR, f"{name} is {ahead} h ahead of {other}"

    def _paths_of(self, source):
        """Files of the newest batch that were in none before."""
        checkpoints = source.coordinator.history.between(
            source.offsets[-2] if len(source.offsets) > 1 else NO_CHECKPOINT, source.offsets[-1]
        )
        read = source.source.split_serializer.read
        found = {
            split.file.path
            for of in checkpoints
            for _, batch in of.assigned
            for split in read(of.header.split_version, batch)
        }
        return found - self.handed_out[next(n for n, s in self.sources.items() if s is source)]

    def due(self, name):
        return [
            {"file": file.path, "row": row} for file in self.files[name] for row in range(file.size)
        ]

    def is_drained(self, name):
        return len(self.sources[name].rows) >= len(self.due(name))

    def check(self):
        for name, source in self.sources.items():
            source.check(self.due(name), name)

    def run_to_end(self):
        """Until everything is read, in the time that the protocol promises."""
        self.kill_at(None)
        if self.bounded:
            # What has landed meanwhile is for the next run.
            self._restart_all()
        else:
            self.is_slow = False
        batches = 0
        most = 40 + 20 * sum(map(len, self.files.values()))
        quiet = 0
        while quiet < (1 if self.bounded else QUIET):
            quiet = 0 if self.step() else quiet + 1
            batches += 1
            assert batches < most, "the run does not end"
        if not self.bounded:
            drained = any(map(self.is_drained, self.sources))
            assert drained, "rows are lost: each source waits for another"
            self._pass_time()
        self.check()

    def _pass_time(self):
        # Ten looks, until an idle source is known to be one; the rest are batches.
        for _ in range(60 + 4 * self._files):
            self.clock += IDLE / 10
            for name in self.sources:
                self.turn(name, 3)
            self.step()
            if all(map(self.is_drained, self.sources)):
                return
