"""What is taken of all that is there: paths, names, sizes, times, markers; each on both trees."""

import os
import time
import uuid
from datetime import UTC, datetime

import fsspec
import numpy as np
import pytest

from pyspark_sluice.enumerator.files.discovery.selection.criteria import Criteria, Scope
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import NameRule, ReadyMarker
from pyspark_sluice.errors import MissingPathError, OptionError, SourceUnavailable
from pyspark_sluice.tests.enumerator.files.discovery.finding import (
    Ledger,
    land,
    make_discovery,
    names,
)

pytestmark = pytest.mark.slow


class Local:
    """A local directory."""

    def __init__(self, root):
        self._path = root
        self.root = str(root)

    def land(self, name, content="x"):
        land(self._path, name, content)

    def remove(self, name):
        os.unlink(f"{self.root}/{name}")


class Remote:
    """A directory of a file system of fsspec."""

    def __init__(self):
        self.root = f"memory://{uuid.uuid4().hex}"
        self.files = fsspec.filesystem("memory")

    def land(self, name, content="x"):
        self.files.pipe_file(f"{self.root}/{name}", content.encode())

    def remove(self, name):
        self.files.rm(f"{self.root}/{name}")


@pytest.fixture(params=["local", "remote"])
def tree(request, tmp_path):
    return Local(tmp_path) if request.param == "local" else Remote()


def found(tree, paths="", **chosen):
    """Names below the tree's root that a first pass takes, and what it leaves out.

    Blanks are between `paths`.
    """
    text = ",".join(f"{tree.root}/{path}".rstrip("/") for path in paths.split(" "))
    discovery = make_discovery(text, **chosen)
    below = [
        path.partition(tree.root.removeprefix("memory://"))[2] for path in Ledger().take(discovery)
    ]
    return [name.lstrip("/") for name in below], dict(discovery.skipped.counts)


DATES = ["2026-01/a.json", "2026-01/b.csv", "2026-02/a.json", "2027-01/c/a.json", "x.json"]


@pytest.mark.parametrize(
    ("paths", "taken"),
    [
        ("", DATES),
        ("2026-*", DATES[:3]),
        ("2026-*/*.json", [DATES[0], DATES[2]]),
        ("*/a.json", [DATES[0], DATES[2]]),
        ("*", DATES),
        ("*/*/*", [DATES[3]]),
        ("202[6-7]-01/?.{json,txt}", [DATES[0]]),
        ("{2026-01/b.csv,x.json}", [DATES[1], DATES[4]]),
        ("2026-01 2027-01/c", [DATES[0], DATES[1], DATES[3]]),
        (" 2026-01 */a.json", DATES),
        ("*.json 2026-0? 2026-01/a.json", [*DATES[:3], DATES[4]]),
    ],
)
def test_each_file_that_any_path_names_is_taken_once(tree, paths, taken):
    for name in DATES:
        tree.land(name)
    assert found(tree, paths) == (taken, {})


def test_a_wildcard_matches_no_hidden_name_and_what_appears_later_is_found(tree):
    for name in ("_tmp/a", ".x", "b/a", "b/_c"):
        tree.land(name)
    discovery = make_discovery(f"{tree.root}/*")
    ledger = Ledger()
    assert len(ledger.take(discovery)) == 1
    assert discovery.skipped.counts == {"ignoredPathSegmentRegex": 3}
    tree.land("c/d")
    assert [path.rpartition("/")[2] for path in ledger.take(discovery)] == ["d"]


def test_of_several_paths_each_has_to_be_there(tree):
    tree.land("in/a")
    with pytest.raises(MissingPathError, match="/out"):
        found(tree, "in out")
    assert found(tree, "in out", fail_on_missing_path=False) == (["in/a"], {})
    with pytest.raises(MissingPathError, match=r"/out/\*.*in a name must be escaped with"):
        found(tree, "out/*")


def test_without_nesting_only_partitions_are_entered_and_the_rest_is_counted(tree):
    for name in ("a", "day=1/b", "day=1/hour=2/c", "day=1/other/d", "deep/e"):
        tree.land(name)
    taken = ["a", "day=1/b", "day=1/hour=2/c"]
    assert found(tree, nested=False) == (taken, {"recursiveFileLookup": 2})


def test_names_that_are_not_chosen_are_counted_by_the_option_that_says_so(tree):
    for name in ("a.json", "b.csv", "_c.json", "tmp-d.json", "_e/f.json"):
        tree.land(name)
    assert found(tree, glob="*.json") == (
        ["a.json", "tmp-d.json"],
        {"ignoredPathSegmentRegex": 2, "pathGlobFilter": 1},
    )
    assert found(tree, ignored="^tmp-") == (
        ["_c.json", "_e/f.json", "a.json", "b.csv"],
        {"ignoredPathSegmentRegex": 1},
    )


def test_unfinished_uploads_are_left_out_and_counted_until_they_have_their_names(tree):
    names = "x.tmp x.csv.filepart x.csv.part x.crdownload x~ ~$x.csv x.partial x.INPROGRESS x.swp"
    data = ["a.csv", "part-0", "partial", "tmp.csv", "x.parts"]
    for name in (*names.split(), *data):
        tree.land(name)
    assert found(tree) == (data, {"ignoredPathSegmentRegex": len(names.split())})
    assert found(tree, ignored="^[._]") == (sorted([*names.split(), *data]), {})


def test_small_and_empty_files_are_left_out_until_they_grow(tree):
    for name, size in (("a", 0), ("b", 9), ("c", 10)):
        tree.land(name, "x" * size)
    assert found(tree, min_size=10) == (["c"], {"empty": 1, "minFileSize": 1})
    discovery, ledger = make_discovery(tree.root, min_size=10), Ledger()
    assert len(ledger.take(discovery)) == 1
    tree.land("b", "x" * 11)
    assert len(ledger.take(discovery)) == 1
    assert discovery.skipped.counts == {"empty": 1}


def test_all_that_is_left_out_can_be_listed_with_its_reason(tree):
    for name in ("a", "_b", "_c/d", "e/f"):
        tree.land(name, "" if name == "e/f" else "x")
    discovery = make_discovery(tree.root)
    Ledger().take(discovery)
    listed = sorted(discovery.left_out(Ledger()))
    assert sorted(discovery.skipped.sample) == listed
    assert [(one.path.rpartition("/")[2] or "_c/", one.reason) for one in listed] == [
        ("_b", "ignoredPathSegmentRegex"),
        ("_c/", "ignoredPathSegmentRegex"),
        ("f", "empty"),
    ]


# Times, which only local files can be given ---------------------------------------------------


def test_a_file_is_taken_when_it_has_settled(tmp_path):
    discovery, ledger = make_discovery(tmp_path, settle_time=1_800_000_000), Ledger()
    old = land(tmp_path, "old", age=2000)
    growing = land(tmp_path, "growing", age=900)
    assert ledger.take(discovery) == [old]
    assert discovery.skipped.counts == {"settleTime": 1}
    land(tmp_path, "growing", "xx")
    assert ledger.take(discovery) == []
    land(tmp_path, "growing", "xx", age=2000)
    (files,) = list(discovery.listing(ledger))
    assert (list(files.paths), files.sizes.tolist()) == ([growing], [2])


def test_a_local_file_dated_in_the_future_settles_by_when_it_was_changed(tmp_path):
    discovery, ledger = make_discovery(tmp_path, settle_time=300_000), Ledger()
    path = land(tmp_path, "future", age=-70 * 365 * 86_400)
    assert ledger.take(discovery) == []
    assert discovery.skipped.counts == {"settleTime": 1}
    time.sleep(0.35)
    assert ledger.take(discovery) == [path]


def test_a_remote_file_dated_in_the_future_waits_under_a_name_of_its_own():
    files = fsspec.filesystem("memory")
    files.pipe("/dated/a", b"x")
    files.store["/dated/a"].modified = datetime(2099, 1, 1, tzinfo=UTC)
    files.store["/dated/a"].created = datetime(2099, 1, 1, tzinfo=UTC)
    discovery = make_discovery("memory://dated", settle_time=1_000_000)
    assert list(discovery.listing(Ledger())) == []
    assert discovery.skipped.counts == {"modifiedInFuture": 1}
    files.rm("/dated", recursive=True)


def test_a_file_system_without_times_is_refused_where_times_are_asked_for():
    unknown = np.array([-1])
    assert Criteria().classify(["a"], np.array([1]), unknown, 0).tolist() == [0]
    with pytest.raises(SourceUnavailable, match="without modification times"):
        Criteria(settle_time=1).classify(["a"], np.array([1]), unknown, 0)


def test_a_directory_that_sparks_file_sink_writes_to_is_refused_and_one_above_it_is_not(tree):
    tree.land("sink/part-0")
    tree.land("sink/_spark_metadata/0")
    with pytest.raises(OptionError, match=r"sink; found _spark_metadata, the list of the files"):
        Ledger().take(make_discovery(f"{tree.root}/sink"))
    # As in Spark, which looks for its log in what is loaded only.
    assert len(Ledger().take(make_discovery(tree.root))) == 1
    assert len(Ledger().take(make_discovery(f"{tree.root}/si*"))) == 1


# Markers ------------------------------------------------------------------------------------


def test_a_file_is_taken_when_the_marker_of_its_directory_is_there(tree):
    for name in ("d/a", "d/_SUCCESS", "e/b", "c"):
        tree.land(name)
    discovery, ledger = make_discovery(tree.root, ready_marker="_SUCCESS"), Ledger()
    assert [path[-3:] for path in ledger.take(discovery)] == ["d/a"]
    assert discovery.skipped.counts == {"isMarker": 1, "readyMarker": 2}
    tree.land("e/_SUCCESS")
    assert [path[-3:] for path in ledger.take(discovery)] == ["e/b"]
    assert discovery.skipped.counts == {"isMarker": 2, "readyMarker": 1}


@pytest.mark.parametrize("pattern", ["<name>.done", ".ok-<name>"])
def test_a_file_is_taken_when_its_own_marker_is_there(tree, pattern):
    for name in ("d/a", "d/b", pattern.replace("<name>", "e"), "e"):
        tree.land(name)
    discovery, ledger = make_discovery(tree.root, ready_marker=pattern), Ledger()
    assert [path[-2:] for path in ledger.take(discovery)] == ["/e"]
    assert discovery.skipped.counts == {"isMarker": 1, "readyMarker": 2}
    tree.land("d/" + pattern.replace("<name>", "b"))
    assert [path[-3:] for path in ledger.take(discovery)] == ["d/b"]
    assert ledger.take(discovery) == []


@pytest.mark.parametrize("pattern", ["<name>", "a/b", "<name><name>", ""])
def test_what_can_be_no_marker_is_refused(pattern):
    with pytest.raises(ValueError, match="name"):
        ReadyMarker(pattern)


def test_a_path_with_wildcards_does_not_cover_what_is_before_them():
    names = NameRule()
    whole = Scope("/in", [], names, nested=True)
    some = Scope("/in", ["a*"], names, nested=True)
    for path, of_whole, of_some in (
        ("/in", True, False),
        ("/in/ab", True, True),
        ("/in/b", True, False),
        ("/in/ab/_c", False, False),
        ("/inside", False, False),
    ):
        assert whole.covers(path, file=False) is of_whole
        assert some.covers(path, file=False) is of_some


# Links over several paths ---------------------------------------------------------------------


def test_a_link_into_another_loaded_path_is_not_read_twice(tmp_path):
    land(tmp_path, "one/a")
    land(tmp_path, "two/b")
    land(tmp_path, "three/c")
    for link in ("one/two", "one/three"):
        (tmp_path / link).symlink_to(tmp_path / link[4:])
    (tmp_path / "one" / "b").symlink_to(tmp_path / "two" / "b")
    taken = Ledger().take(make_discovery(f"{tmp_path}/one,{tmp_path}/two"))
    assert names(taken, tmp_path) == ["one/a", "one/three/c", "two/b"]


def test_times_choose_files_and_their_borders_are_sparks(tmp_path):
    for name, second in (("a", 99), ("b", 100), ("c", 101), ("d", 200)):
        os.utime(land(tmp_path, name), (second, second))
    tree = Local(tmp_path)
    times = {"modified_after": 100_000_000, "modified_before": 200_000_000}
    assert found(tree, **times) == (["c"], {"modifiedAfter": 2, "modifiedBefore": 1})


def test_files_older_than_the_age_are_counted_and_passed_over(tmp_path):
    land(tmp_path, "old", age=1000)
    land(tmp_path, "new", age=500)
    assert found(Local(tmp_path), max_age=900_000_000) == (["new"], {"maxFileAge": 1})
