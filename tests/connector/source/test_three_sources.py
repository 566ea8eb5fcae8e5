"""A hybrid source of three: an archive, newer files, and the log of which both are copies."""

import json
import shutil

import pytest

from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.connector.testing import Trial
from pyspark_sluice.enumerator import BatchLimits, StartingState
from pyspark_sluice.examples.log_source.archived_log import ArchivedLog
from pyspark_sluice.tests.connector.source.archived import LINES, Logs

pytestmark = pytest.mark.slow

FOLDERS = ("archive", "recent")


class ThreeSources(ArchivedLog):
    """The two folders, then the log from where the files of both end."""

    @property
    def name(self):
        return "three"

    def _files(self, folder):
        path = f"{self.options.path}/{folder}"
        return FileSource(self.options.model_copy(update={"path": path}), self.schema)

    def sources(self):
        return (*map(self._files, FOLDERS), super().sources()[1])

    def state_at(self, part, position):
        return super().state_at(part, position) if part == len(FOLDERS) else None


class Story:
    """A directory with a log, and copies of its lines in both folders."""

    def __init__(self, place):
        self.place = place
        self.logs = Logs(place)
        for folder in FOLDERS:
            (place / folder).mkdir(exist_ok=True)

    def land(self, part, rows):
        """A new partition: its first third is in the archive, the next in the newer files."""
        landed = self.logs.land(part, rows, archived=0)
        third = -(-rows // 3)
        self.copy("archive", part, landed[:third])
        self.copy("recent", part, landed[third : 2 * third])
        return landed

    def copy(self, folder, part, rows):
        if not rows:
            return
        end = rows[-1]["position"] + len(rows[-1]["line"]) + 1
        hidden = self.place / folder / f".p{part}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        hidden.rename(self.place / folder / f"p{part}.log.{end}.json")

    def trial(self, files=2, **options):
        limits = BatchLimits(files=files)
        return Trial(lambda: ThreeSources(self.logs.options(), LINES), limits=limits, **options)


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path)


def parts_of(trial):
    """The part that each checkpoint is in; its splits are of that part."""
    states, splits, found = trial.source.state_serializer, trial.source.split_serializer, []
    for of in trial.checkpoints():
        found.append(states.deserialize(1, of.state[-1]).part)
        assigned = [split for _, batch in of.assigned for split in splits.deserialize(1, batch)]
        assert {split.part for split in assigned} <= {found[-1]}
    return found


@pytest.mark.parametrize("bounded", [False, True])
def test_each_source_is_read_to_its_end_before_the_next(story, bounded):
    landed = [row for part in range(3) for row in story.land(part, 9)]
    trial = story.trial(files=1, bounded=bounded)
    trial.run_to_end()
    trial.check(landed)
    found = parts_of(trial)
    assert (found, set(found)) == (sorted(found), {0, 1, 2})
    assert trial.coordinator.report()["part"] == "third"


def _opened(*_):
    pytest.fail("a source that is over was opened")


def test_a_restart_in_the_third_opens_nothing_of_the_first_two(story):
    class NeverAgain(ThreeSources):
        def sources(self):
            *over, log = super().sources()
            for source in over:
                vars(source).update(create_enumerator=_opened, create_reader=_opened)
            return (*over, log)

    landed = story.land(0, 9)
    trial = story.trial()
    trial.run_to_end()
    for folder in FOLDERS:
        shutil.rmtree(story.place / folder)
    trial._make_source = lambda: NeverAgain(story.logs.options(), LINES)
    trial.restart()
    landed += story.logs.land(0, 3, archived=0)
    trial.run_to_end()
    trial.check(landed)


@pytest.mark.parametrize("empty", [{"archive"}, {"recent"}, {"archive", "recent"}])
def test_a_source_without_anything_is_passed_by_with_a_checkpoint_of_its_own(story, empty):
    landed = story.logs.land(0, 6, archived=0)
    for folder in {*FOLDERS} - empty:
        story.copy(folder, 0, landed[:4])
    trial = story.trial()
    trial.run_to_end()
    trial.check(landed)
    assert {1, 2} <= set(parts_of(trial))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_new_query_resumes_from_a_checkpoint_in_any_part(story, part):
    landed = [row for number in range(3) for row in story.land(number, 9)]
    trial = story.trial(files=1)
    trial.run_to_end()
    number = parts_of(trial).index(part)
    fork = story.trial(starting_state=StartingState(trial.objects, trial.offsets[number]))
    for folder in FOLDERS[:part]:
        shutil.rmtree(story.place / folder)
        if part < len(FOLDERS):
            (story.place / folder).mkdir()
    fork.run_to_end()
    before = [row for batch in trial.sink[: number + 1] for row in batch]
    fork.check([row for row in landed if row not in before])
