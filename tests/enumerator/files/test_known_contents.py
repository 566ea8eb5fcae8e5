"""Files that come twice: each content is read once, whatever becomes of its files."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.files.file_split import replaced
from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key
from pyspark_sluice.enumerator.batch_budget import BatchLimits
from pyspark_sluice.enumerator.files.ledger.file_state import FileState
from pyspark_sluice.enumerator.files.ledger.index_merge import MergePolicy
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.tests.enumerator.files.bench import Bench, Listed, Query, document, file

SIZES = {"x": 60, "y": 90, "z": 250}
"""Of contents; the bench cuts what is longer than 100."""


class World(Query):
    """Files that change, a query that reads them, and the bytes that its table has."""

    def __init__(self, on_overwrite=OnOverwrite.REPROCESS):
        self.on_overwrite = on_overwrite
        self.contents, self.ever = {}, {}
        self.clock, self.rows, self.digested = 0, [], []
        self.taken_back = [], []
        """Of aborted checkpoints: changes, and what was assigned."""
        super().__init__()

    def start(self, state):
        self.bench = Bench(
            state=state,
            parallelism=1,
            discovery=Listed(self.files.values, with_known=True),
            ledger=LedgerPolicy(
                on_overwrite=self.on_overwrite,
                digest=self.digest,
                merging=MergePolicy(flush_at=3, fan_in=2),
            ),
        )
        self.enumerator = self.bench.enumerator

    def digest(self, files):
        self.digested += [one.path for one in files]
        return [
            self.contents.get(one.path, "") and file_key(self.contents[one.path]) for one in files
        ]

    # What others do ---------------------------------------------------------------------------

    def deliver(self, name, content):
        if self.on_overwrite is OnOverwrite.REPROCESS or name not in self.ever:
            self.clock += 1
            self.files[name] = file(name, SIZES[content], self.clock * 1_000_000)
            self.contents[name] = content
            self.ever.setdefault(name, {})[self.files[name]] = content

    def touch(self, name, _=""):
        if name in self.files:
            self.deliver(name, self.contents[name])

    def delete(self, name, *_):
        super().delete(name)
        self.contents.pop(name, None)

    def rename(self, name, _=""):
        if name in self.files:
            content = self.contents[name]
            self.delete(name)
            self.deliver(name + "'", content)

    # What the query does ----------------------------------------------------------------------

    def plan(self, size=300):
        self.bench.context.has_outstanding_splits = bool(self.commits or self.taken_back[1])
        return self.bench.plan(BatchLimits(bytes=size))

    def cut(self, assigned=()):
        self.number += 1
        state = self.enumerator.snapshot_state(self.number)
        changes, before = self.taken_back
        self.taken_back = [], []
        assigned = [*before, *assigned]
        self.chain.append(document(self.number, FileState([*changes, *state.changes]), assigned))
        self.commits = [commit for commit in self.commits if not commit[-1]]
        return assigned

    def abort(self, *_):
        """A checkpoint that the host never takes up."""
        assigned = self.plan()
        self.number += 1
        state = self.enumerator.snapshot_state(self.number)
        self.enumerator.notify_checkpoint_aborted(self.number)
        self.taken_back = [*self.taken_back[0], *state.changes], [*self.taken_back[1], *assigned]

    def batch(self, sent_back="", size=300):
        """Readers send back pieces by the parity of their place; what they say is counted later."""
        if len(self.commits) > 1:
            self.count()
        assigned = self.cut(self.plan(size))
        back, events, unread = [], [], []
        for split in assigned:
            path, version = split.file.path, split.file
            if str(split.start // 100 % 2) in sent_back:
                back.append(split)
            elif self.files.get(path) == version or not split.is_whole_file:
                # A part of a file that is not what it was fails, until somebody puts it back.
                self.rows.append((self.ever[path][version], split.start, split.end))
            else:
                unread.append(split)
                if path in self.files:
                    events.append(replaced(version, self.files[path]))
        self.commits.append([self.number, back, events, unread, False])
        return assigned

    def base(self, *_):
        if not self.taken_back[1]:
            super().base()

    def improve(self, *_):
        if (step := self.enumerator.improve_state()) is not None:
            step(self.attachments)

    def crash(self, *_):
        self.taken_back = [], []
        super().crash()

    def drain(self):
        for _ in range(50):
            self.discover()
            self.count()
            if not self.batch() and not len(self.enumerator.ledger.pending):
                break
        assert not len(self.enumerator.ledger.pending)

    def check(self):
        self.drain()
        for content, size in SIZES.items():
            read = sorted(row[1:] for row in self.rows if row[0] == content)
            if read or content in self.contents.values():
                ends = [0, *(end for _, end in read)]
                assert [start for start, _ in read] == ends[:-1]
                assert ends[-1] == size


NAMES = st.sampled_from("abcd")
CONTENTS, NOTHING = st.sampled_from("xyz"), st.just("")
DEEDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["deliver", "deliver", "touch"]), NAMES, CONTENTS),
        st.tuples(st.sampled_from(["deliver", "rename", "delete"]), NAMES, CONTENTS),
        st.tuples(st.sampled_from(["discover", "discover", "count", "abort"]), NOTHING, NOTHING),
        st.tuples(st.sampled_from(["crash", "crash", "base", "improve"]), NOTHING, NOTHING),
        st.tuples(
            st.just("batch"), st.sampled_from(["", "", "0", "1", "01"]), st.sampled_from([60, 300])
        ),
    ),
    min_size=6,
    max_size=30,
)


FOUND_WHILE_READ = [
    ("deliver", "a", "x"),
    ("discover", "", ""),
    ("rename", "a", ""),
    ("batch", "", 300),
    ("discover", "", ""),
]
"""Nothing is read of a file, and its copy is found before that is known."""


@example(deeds=[*FOUND_WHILE_READ, ("batch", "", 300)])
@example(deeds=[*FOUND_WHILE_READ, ("crash", "", ""), ("discover", "", ""), ("batch", "", 300)])
@pytest.mark.parametrize("on_overwrite", [OnOverwrite.REPROCESS, OnOverwrite.IGNORE])
@given(deeds=DEEDS)
@settings(max_examples=300, deadline=None)
def test_the_table_has_each_content_once(on_overwrite, deeds):
    world = World(on_overwrite)
    for deed, first, second in deeds:
        getattr(world, deed)(first, second)
    world.check()
