"""Listing of a tree: what is found, what is passed over, what is an error and is tried again."""

import contextlib
import os
import re
import tempfile
from pathlib import Path

import fsspec
import pytest

from pyspark_sluice.checkpoint_meta.files.file_columns import FileSplitSerializer
from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit, GrowingMark
from pyspark_sluice.checkpoint_meta.storage.storage_errors import RefusedRequest
from pyspark_sluice.checkpoint_meta.storage.urls import shown_path
from pyspark_sluice.enumerator.files.ledger.ledger import LedgerPolicy
from pyspark_sluice.enumerator.files.ledger.new_files import OnOverwrite
from pyspark_sluice.errors import MissingPathError, OptionError, SluiceError, SourceUnavailable
from pyspark_sluice.reader.files.io.source_file import SourceFile
from pyspark_sluice.tests.enumerator.files.bench import Bench, Listed, file, whole
from pyspark_sluice.tests.enumerator.files.discovery.finding import land, lister_of, make_discovery


def lister(url, storage_options=None, **more):
    return lister_of(make_discovery(url, storage_options, **more))


def found(root, known=frozenset(), **more):
    return sorted(file.path for file in lister(root, **more)(known))


def test_a_hidden_name_above_the_root_does_not_matter(tmp_path):
    path = land(tmp_path, "_staging/.x/a.json")
    assert found(tmp_path / "_staging" / ".x") == [path]


def test_a_single_file_may_be_the_path(tmp_path):
    path = land(tmp_path, "a.json")
    assert found(path) == [path]
    assert found(path, {path}) == []


def test_a_missing_path_is_an_error_that_says_the_way_out_or_is_waited_for(tmp_path):
    missing = tmp_path / "not" / "there"
    with pytest.raises(MissingPathError, match="set failOnMissingPath=false") as error:
        found(missing)
    assert str(missing) in str(error.value)
    assert found(missing, fail_on_missing_path=False) == []
    path = land(missing, "a.json")
    assert found(missing, fail_on_missing_path=False) == [path]


class Vanishing(set[str]):
    """Removes things from the tree as the listing comes by."""

    def __init__(self, *doomed):
        super().__init__()
        self._doomed = doomed

    def __contains__(self, path):
        for path_of_doomed in self._doomed:
            if os.path.isdir(path_of_doomed):
                for child in os.listdir(path_of_doomed):
                    os.unlink(os.path.join(path_of_doomed, child))
                os.rmdir(path_of_doomed)
            elif os.path.exists(path_of_doomed):
                os.unlink(path_of_doomed)
        return False


def test_what_vanishes_during_the_listing_is_no_error(tmp_path):
    stays = land(tmp_path, "a.json")
    # The listing sees all entries, then some are gone.
    doomed = [land(tmp_path, name) for name in ("b.json", "d/b.json", "e/b.json")]
    doomed = [doomed[0], str(tmp_path / "d"), str(tmp_path / "e")]
    assert [file.path for file in lister(tmp_path)(Vanishing(*doomed))] == [stays]


@contextlib.contextmanager
def as_nobody():
    """Root may list every directory, so for a moment this process is not root."""
    user = os.geteuid()
    os.seteuid(65534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


def test_an_unreadable_directory_is_an_error_with_its_name():
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        land(Path(root), "d/a.json")
        os.chmod(f"{root}/d", 0)
        named = re.escape(f"the path cannot be listed: {root}/d; found PermissionError")
        with as_nobody(), pytest.raises(SourceUnavailable, match=named):
            found(root)
        os.chmod(f"{root}/d", 0o755)


def test_a_name_that_is_not_utf_8_is_found_once_and_can_be_opened_written_down_and_shown(tmp_path):
    folder = os.fsencode(tmp_path) + b"/day=\xe9\xff"
    os.mkdir(folder)
    for name in (b"caf\xe9 100%.json", "café.json".encode()):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(b"{}")
    plain = land(tmp_path, "100%25.json")
    files = lister(tmp_path)(set())
    paths = sorted(file.path for file in files)
    quoted = f"file://{tmp_path}/day%3D%E9%FF"
    assert paths == [plain, f"{quoted}/caf%C3%A9.json", f"{quoted}/caf%E9%20100%25.json"]
    assert lister(tmp_path)(set(paths)) == []
    for each in files:
        assert SourceFile(each, {}).content() == (b"x" if each.path == plain else b"{}")
    written = FileSplitSerializer().serialize([FileSplit(f, 0, f.size) for f in files])
    assert [s.file for s in FileSplitSerializer().deserialize(1, written)] == files
    assert shown_path(f"{quoted}/a") == f"{tmp_path}/day=\ufffd\ufffd/a"
    inside = lister(os.fsdecode(folder))(set())
    assert sorted(file.path for file in inside) == paths[1:]


# Symbolic links ------------------------------------------------------------------------------


def test_a_link_to_what_is_in_the_tree_is_not_read_twice(tmp_path):
    wanted = [land(tmp_path, "a.json"), land(tmp_path, "d/b.json")]
    (tmp_path / "latest.json").symlink_to("a.json")
    (tmp_path / "e").symlink_to("d")
    (tmp_path / "d" / "again.json").symlink_to(tmp_path / "a.json")
    assert found(tmp_path) == wanted
    root = tmp_path.parent / f"{tmp_path.name}-link"
    root.symlink_to(tmp_path)
    assert found(root) == [path.replace(str(tmp_path), str(root)) for path in wanted]


def test_a_link_to_what_is_not_read_by_itself_is_followed(tmp_path):
    outside = tmp_path / "outside"
    land(outside, "x.json")
    land(outside, "y/z.json")
    root = tmp_path / "root"
    land(root, "..data/config.json")
    land(root, "b.txt")
    (root / "config.json").symlink_to("..data/config.json")
    (root / "b.json").symlink_to("b.txt")
    (root / "x.json").symlink_to(outside / "x.json")
    (root / "linked").symlink_to(outside)
    (root / "nowhere").symlink_to(outside / "nothing")
    below = [path.removeprefix(f"{root}/") for path in found(root, glob="*.json")]
    assert below == ["b.json", "config.json", "linked/x.json", "linked/y/z.json", "x.json"]


@pytest.mark.parametrize(
    "links",
    [
        {"root/d/up": ".."},
        {"root/d/here": "."},
        {"root/d/above": "../.."},
        {"root/out": "../one", "one/two": "../two", "two/one": "../one"},
        {"root/self": "self"},
    ],
)
def test_links_in_a_circle_are_named(tmp_path, links):
    for folder in ("root/d", "one", "two"):
        (tmp_path / folder).mkdir(parents=True)
    land(tmp_path, "root/a.json")
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    with pytest.raises(SourceUnavailable, match=next(iter(links)).rpartition("/")[2]) as error:
        found(tmp_path / "root")
    assert re.search("a cycle|Too many levels of symbolic links", str(error.value))


# Other file systems -------------------------------------------------------------------------


def test_a_prefix_that_has_been_emptied_is_not_missing_and_a_bucket_is(server):
    server.fault, options = None, server.options
    files = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **options)
    files.call_s3("create_bucket", Bucket="lake")
    files.pipe_file("lake/in/a.json", b"abc")
    bucket_lister = lister("s3a://lake/in", options)
    (file,) = bucket_lister(set())
    files.rm("lake/in/a.json")
    assert not files.exists("lake/in")
    assert bucket_lister({file.path}) == []
    restarted = lister("s3a://lake/in", options)
    assert restarted({file.path}) == []
    with pytest.raises(MissingPathError):
        lister("s3a://lake/in", options)(set())
    files.pipe_file("lake/in/b.json", b"abc")
    assert [file.path for file in bucket_lister({file.path})] == ["s3://lake/in/b.json"]
    files.rm("lake/in/b.json")
    files.call_s3("delete_bucket", Bucket="lake")
    with pytest.raises(MissingPathError):
        bucket_lister({file.path})


def test_a_listing_that_fails_is_retried_with_growing_delays_and_nothing_is_lost():
    bench = Bench(file("a"))
    # A success forgives earlier failures.
    for planned in ([whole(file("a"))], []):
        bench.errors = [OSError("one"), OSError("two")]
        delays = []
        for _ in range(2):
            bench.discover()
            delays.append(bench.context.calls[0].delay)
        assert 0.3 <= delays[0] <= 0.6
        assert 0.9 <= delays[1] <= 1.8
        bench.discover()
        assert bench.plan() == planned
        assert bench.context.calls[0].delay == 7.0


def test_what_a_pass_has_brought_is_taken_though_it_fails_afterwards():
    class Failing(Listed):
        def listing(self, known):
            yield from super().listing(known)
            if errors:
                raise errors.pop()

    errors = [OSError("later")]
    bench = Bench(discovery=Failing(lambda: [file("a"), file("b"), file("c")], chunk=2))
    bench.discover()
    assert "later" in bench.enumerator.backlog()["listingError"]
    assert not bench.enumerator.has_discovered
    assert len(bench.plan()) == 3
    bench.discover()
    assert bench.enumerator.has_discovered
    assert bench.plan() == []


def test_a_listing_whose_files_could_not_be_entered_does_not_count_as_done(tmp_path):
    path = land(tmp_path, "a", "line\n")
    failures = [OSError("cannot be read")]

    def whole_records(path, start, size, known):
        if failures:
            raise failures.pop()
        return GrowingMark(1, size, 0)

    policy = LedgerPolicy(on_overwrite=OnOverwrite.APPEND_TAIL, whole_records=whole_records)
    bench = Bench(discovery=make_discovery(tmp_path, incremental=True), ledger=policy)
    bench.discover()
    assert bench.enumerator.cursors() == {}
    bench.discover()
    assert [split.file.path for split in bench.plan()] == [path]
    cursors = bench.enumerator.cursors()
    assert cursors["discovery"]["greatest"] == {str(tmp_path): "a"}
    restored = Bench(discovery=make_discovery(tmp_path, incremental=True)).enumerator
    restored.resume_from(cursors)
    assert restored.cursors() == cursors


def test_nothing_is_planned_before_all_that_was_there_is_known_and_none_of_it_is_read():
    a, b = file("a"), file("b")
    bench = Bench(a, include_existing=False)
    bench.enumerator.requeue_splits([whole(b)])
    bench.errors = [OSError("away")]
    bench.discover()
    assert bench.plan() == []
    bench.discover()
    assert bench.plan() == [whole(b)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError("away"), "discovery failed 3 times in a row; found OSError"),
        (SourceUnavailable("no access", "there"), "no access: there"),
    ],
)
def test_a_listing_that_keeps_failing_fails_the_query_with_its_cause(error, told):
    bench = Bench()
    bench.errors = [error] * 3
    bench.discover()
    bench.discover()
    with pytest.raises(SourceUnavailable, match=told):
        bench.discover()


FINAL = [
    OptionError("no such option"),
    ModuleNotFoundError("No module named 'gcsfs'"),
    PermissionError("no access"),
    RefusedRequest("not a key"),
    MissingPathError("no path"),
]


@pytest.mark.parametrize("error", FINAL, ids=lambda error: type(error).__name__)
def test_what_no_retry_can_help_with_fails_at_once_unless_a_listing_has_worked_before(error):
    bench = Bench()
    bench.errors = [error]
    with pytest.raises(SluiceError, match=str(error)) as caught:
        bench.discover()
    assert "times in a row" not in str(caught.value)
    bench = Bench()
    bench.discover()
    bench.errors = [error, error]
    bench.discover()
    bench.discover()
    assert bench.errors == []
