"""What a pass over a local tree costs, and that what it saves hides no file."""

import os
import time

import pytest

from pyspark_sluice.enumerator.files.discovery.local import listing_cache, local_files, local_tree
from pyspark_sluice.enumerator.files.discovery.local.listing_cache import (
    DirectoryCache,
    Record,
    SkipCache,
    times_of,
)
from pyspark_sluice.enumerator.files.discovery.worker_pool import More, in_pool
from pyspark_sluice.enumerator.files.ledger.ledger import Ledger as FileLedger
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.tests.enumerator.files.discovery.finding import (
    Ledger,
    enter_new,
    land,
    make_discovery,
)

CHUNK = 20


@pytest.fixture
def aged(monkeypatch):
    """Directories count as old at once: the change time cannot be set back."""
    monkeypatch.setattr(listing_cache, "_YOUNGEST", 20_000_000)
    return lambda: time.sleep(0.05)


@pytest.fixture
def passed(aged):
    """Passes over a directory until it counts as old."""

    def discovery_of(root):
        discovery, ledger = make_discovery(root), Ledger()
        aged()
        for _ in range(3):
            ledger.take(discovery)
        return discovery, ledger

    return discovery_of


def test_a_file_that_is_known_or_left_out_by_name_costs_no_stat(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(local_tree, "MOST_COMPARED", 0)
    for name in ("a", "b", "_c", "d.csv"):
        land(tmp_path, name)
    discovery, ledger = make_discovery(tmp_path, glob="?"), Ledger()
    assert len(ledger.take(discovery)) == 2
    assert calls["lstat"] == 2
    land(tmp_path, "e")
    assert len(ledger.take(discovery)) == 1
    assert calls["lstat"] == 3


def test_files_that_were_delivered_again_and_are_not_read_are_counted(tmp_path, aged):
    discovery, ledger = make_discovery(tmp_path), FileLedger(LedgerPolicy())
    paths = [land(tmp_path, f"{n}.csv") for n in range(3)]
    # One octet of sizes and times is compared, so one in 128 changes of any others is missed.
    os.utime(paths[1], (1, 1))
    aged()
    assert enter_new(discovery, ledger) == 3
    assert discovery.skipped.counts == {}
    os.utime(land(tmp_path, "upload", "longer"), (2, 2))
    os.replace(tmp_path / "upload", paths[1])
    aged()
    for _ in range(3):
        # Also where the directory has not changed since the pass before.
        assert enter_new(discovery, ledger) == 0
        assert discovery.skipped.counts == {"onOverwrite": 1}
        assert [one.path for one in discovery.skipped.sample] == [paths[1]]
    # A new process, as with each run that ends.
    discovery = make_discovery(tmp_path)
    assert enter_new(discovery, ledger) == 0
    assert discovery.skipped.counts == {"onOverwrite": 1}


def test_a_file_that_is_left_out_permanently_costs_one_stat_until_the_next_full_pass(
    tmp_path, calls, monkeypatch
):
    monkeypatch.setattr(local_files, "_STILL", 0)
    now = [0.0]
    discovery = make_discovery(
        tmp_path, min_size=2, full_listing_interval=100.0, clock=lambda: now[0]
    )
    ledger = Ledger()
    land(tmp_path, "a")
    for passes in (1, 2, 3):
        now[0] += 10
        land(tmp_path, f"_{passes}")  # so that the directory is read
        assert ledger.take(discovery) == []
        assert calls["lstat"] == 1
        assert discovery.skipped.counts == {"ignoredPathSegmentRegex": passes, "minFileSize": 1}
    grown = land(tmp_path, "a", "xx")
    assert ledger.take(discovery) == []
    now[0] += 100
    assert ledger.take(discovery) == [grown]


def test_a_directory_in_which_nothing_has_changed_is_not_read_again(tmp_path, calls, aged):
    for name in ("a", "_b", "d/c", "d/e/f"):
        land(tmp_path, name)
    discovery, ledger = make_discovery(tmp_path), Ledger()
    aged()
    assert len(ledger.take(discovery)) == 3
    assert ledger.take(discovery) == []
    calls.clear()
    for _ in range(3):
        assert ledger.take(discovery) == []
        assert discovery.skipped.counts == {"ignoredPathSegmentRegex": 1}
        assert [one.path for one in discovery.skipped.sample] == [f"{tmp_path}/_b"]
    assert calls == {}
    new = land(tmp_path, "d/e/new")
    assert ledger.take(discovery) == [new]
    assert calls["scandir"] == 1
    nested = land(tmp_path, "d/g/h")
    assert ledger.take(discovery) == [nested]


def test_a_directory_is_trusted_only_if_its_times_were_old_when_it_was_read(tmp_path):
    # Within one tick of the clock a name may come without moving them.
    record = Record((0, 0, 0, 0), (), (), {}, ())
    second = 1_000_000_000
    for set_back in (0, 1000):
        os.utime(tmp_path, (time.time() - set_back, time.time() - set_back))
        status = os.stat(tmp_path)
        changed = max(status.st_mtime_ns, status.st_ctime_ns)
        for age, trusted in ((second, False), (2 * second, False), (4 * second, True)):
            directories = DirectoryCache()
            kept = record._replace(times=times_of(status))
            directories.store(str(tmp_path), kept, status, changed + age)
            assert (directories.record_of(str(tmp_path), status) == kept) is trusted


def test_a_link_whose_target_is_another_one_is_followed_again(tmp_path, passed):
    root, middle = tmp_path / "root", tmp_path / "middle"
    land(root, "d/a")
    middle.symlink_to(root / "d")
    (root / "link").symlink_to(middle)
    discovery, ledger = passed(root)
    land(tmp_path, "elsewhere/b")
    middle.unlink()
    middle.symlink_to(tmp_path / "elsewhere")
    assert ledger.take(discovery) == [f"{root}/link/b"]


def test_a_directory_whose_time_was_set_back_is_read_again(tmp_path, passed):
    folder = land(tmp_path, "d/a").rpartition("/")[0]
    discovery, ledger = passed(tmp_path)
    before = os.stat(folder)
    new = land(tmp_path, "d/b")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ledger.take(discovery) == [new]


def test_files_that_got_lost_on_the_way_come_again_however_old_their_directory_is(tmp_path, aged):
    path = land(tmp_path, "a")
    discovery = make_discovery(tmp_path)
    aged()
    for _ in range(4):
        # Nobody takes them: the pass was cut off, or what it brought was thrown away.
        assert Ledger().take(discovery) == [path]


def test_an_empty_file_in_an_old_directory_is_found_when_it_is_filled(tmp_path, passed):
    path = land(tmp_path, "a", "")
    discovery, ledger = passed(tmp_path)
    assert discovery.skipped.counts == {"empty": 1}
    with open(path, "w") as file:
        file.write("x")
    assert ledger.take(discovery) == [path]


def test_what_a_link_leads_to_later_is_found_in_an_old_directory(tmp_path, passed):
    root = tmp_path / "root"
    land(root, "a")
    (root / "link").symlink_to(tmp_path / "later")
    (root / "folder").symlink_to(tmp_path / "folder")
    discovery, ledger = passed(root)
    land(tmp_path, "later")
    land(tmp_path, "folder/b")
    assert ledger.take(discovery) == [f"{root}/folder/b", f"{root}/link"]


def test_a_file_system_that_is_not_known_to_be_local_is_always_read(
    tmp_path, calls, aged, monkeypatch
):
    monkeypatch.setattr(listing_cache, "_LOCAL_DISKS", frozenset())
    paths = sorted(land(tmp_path, f"{i % 5}/{i}") for i in range(50))
    discovery, ledger = make_discovery(tmp_path), Ledger()
    aged()
    assert ledger.take(discovery) == paths
    for _ in range(2):
        calls.clear()
        assert ledger.take(discovery) == []
        assert calls["scandir"] == 6


def test_a_pass_comes_in_chunks_and_may_be_left_half_way(tmp_path, monkeypatch):
    monkeypatch.setattr(local_tree, "CHUNK", CHUNK)
    (tmp_path / "d").mkdir()
    for i in range(CHUNK + 7):
        os.mknod(tmp_path / "d" / f"{i}")
    os.truncate(tmp_path / "d" / "3", 5)
    discovery = make_discovery(tmp_path, wants_versions=True)
    known = Ledger(*(f"{tmp_path}/d/{i}" for i in range(CHUNK + 7)))
    sizes = [len(files) for files in discovery.listing(known)]
    assert sizes == [CHUNK, 7]
    passing = discovery.listing(known)
    assert len(next(passing)) == CHUNK
    passing.close()
    assert sum(len(files) for files in discovery.listing(known)) == CHUNK + 7


def test_an_error_in_one_of_many_lanes_reaches_who_asks(tmp_path, monkeypatch):
    def work(task):
        if task == 50:
            raise OSError("broken")
        yield task
        if task < 100:
            yield More(task + 1)

    with pytest.raises(OSError, match="broken"):
        list(in_pool([0], work, 4))
    for workers in (1, 5):
        assert sorted(in_pool([60, 1000], work, workers)) == [*range(60, 101), 1000]


def test_what_is_remembered_is_found_again_among_a_million(monkeypatch):
    monkeypatch.setattr(listing_cache, "_RECENT", 1000)
    left_out = SkipCache()
    for i in range(20_000):
        left_out.add(f"/in/{i}", i % 7 + 1)
    assert len(left_out) == 20_000
    assert all(left_out.get(f"/in/{i}") == i % 7 + 1 for i in range(0, 20_000, 37))
    assert not any(left_out.get(f"/in/{i}") for i in range(20_000, 30_000))


# Names that grow ------------------------------------------------------------------------------


def test_an_incremental_pass_looks_behind_the_greatest_name_and_a_full_one_at_all(tmp_path, calls):
    now = [1000.0]
    mode = {"incremental": True, "full_listing_interval": 100.0}
    discovery = make_discovery(tmp_path, **mode, clock=lambda: now[0])
    ledger = Ledger()
    for name in ("2026-01/a", "2026-02/a", "2026-02/b"):
        land(tmp_path, name)
    assert len(ledger.take(discovery)) == 3
    late, new = land(tmp_path, "2026-01/late"), land(tmp_path, "2026-02/c")
    later = land(tmp_path, "2026-03/a")
    calls.clear()
    assert ledger.take(discovery) == [new, later]
    assert calls["scandir"] == 3
    for _ in range(2):
        now[0] += 40
        assert ledger.take(discovery) == []
    now[0] += 20
    assert ledger.take(discovery) == [late]


def test_names_that_are_not_taken_do_not_hide_lesser_ones(tmp_path):
    discovery, ledger = make_discovery(tmp_path, incremental=True, glob="*.json"), Ledger()
    land(tmp_path, "2026-01.json")
    land(tmp_path, "README.md")
    assert len(ledger.take(discovery)) == 1
    new = land(tmp_path, "2026-02.json")
    assert ledger.take(discovery) == [new]


def test_an_incremental_pass_does_not_go_past_what_waits(tmp_path):
    discovery = make_discovery(tmp_path, incremental=True, ready_marker="<name>.done")
    ledger = Ledger()
    first = land(tmp_path, "1/a")
    waiting, last = land(tmp_path, "2/b"), land(tmp_path, "3/c")
    for name in ("1/a.done", "3/c.done"):
        land(tmp_path, name)
    assert ledger.take(discovery) == [first, last]
    land(tmp_path, "2/b.done")
    assert ledger.take(discovery) == [waiting]


def test_a_run_resumes_from_the_position_of_the_one_before_unless_it_is_another_choice(tmp_path):
    first = make_discovery(tmp_path, incremental=True)
    known = Ledger()
    land(tmp_path, "2/a")
    known.take(first)
    position = first.position()
    land(tmp_path, "1/late")
    new = land(tmp_path, "2/b")
    second = make_discovery(tmp_path, incremental=True)
    second.resume(position)
    assert Ledger(*known.paths).take(second) == [new]
    other = make_discovery(tmp_path, incremental=True, glob="*")
    other.resume(position)
    assert len(Ledger(*known.paths).take(other)) == 2
    assert make_discovery(tmp_path).position() == {}


def test_a_pass_that_fails_moves_nothing(tmp_path):
    land(tmp_path, "one/2")
    discovery = make_discovery(f"{tmp_path}/one,{tmp_path}/two", incremental=True)
    with pytest.raises(Exception, match="does not exist"):
        Ledger().take(discovery)
    assert discovery.position() == {}
    (tmp_path / "two").mkdir()
    assert len(Ledger().take(discovery)) == 1


def test_with_versions_known_files_come_after_any_change(tmp_path, aged):
    path = land(tmp_path, "a")
    land(tmp_path, "b", "")
    discovery, ledger = make_discovery(tmp_path, wants_versions=True), Ledger(path)
    aged()
    for content in ("x", "xx", ""):
        with open(path, "w") as file:
            file.write(content)
        (files,) = list(discovery.listing(ledger))
        assert (list(files.paths), files.sizes.tolist()) == ([path], [len(content)])
