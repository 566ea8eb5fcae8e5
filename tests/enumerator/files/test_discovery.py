"""Listing of a tree: what is found, what is passed over, what is an error."""

from __future__ import annotations

import os
import shutil
import uuid

import fsspec
import pytest

from pyspark_sluice.enumerator.files.discovery import make_lister
from pyspark_sluice.errors import MissingPathError, SourceUnavailable


def land(root, name, content="x"):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return str(path)


def lister(url, **more):
    return make_lister(str(url), {}, **{"fail_on_missing_path": True, **more})


def found(root, known=frozenset(), **more):
    return sorted(file.path for file in lister(root, **more)(known))


def test_nested_files_are_found_and_hidden_names_are_not(tmp_path):
    wanted = [land(tmp_path, name) for name in ("a.json", "d/b.json", "d/e/c.json")]
    for hidden in (".a", "_b", "_SUCCESS", ".d/a.json", "_temporary/0/a.json", "d/.x/y/z.json"):
        land(tmp_path, hidden)
    assert found(tmp_path) == wanted


def test_a_hidden_name_above_the_root_does_not_matter(tmp_path):
    path = land(tmp_path, "_staging/.x/a.json")
    assert found(tmp_path / "_staging" / ".x") == [path]


def test_a_file_is_described_as_it_is(tmp_path):
    path = land(tmp_path, "a.json", "12345")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    (file,) = lister(tmp_path)(set())
    assert (file.path, file.size, file.modified) == (path, 5, 1_700_000_000_123_456)


def test_known_files_are_not_listed_again(tmp_path):
    known = land(tmp_path, "a.json")
    new = land(tmp_path, "b.json")
    assert found(tmp_path, {known}) == [new]


def test_an_empty_file_is_passed_over_until_it_is_filled(tmp_path):
    path = land(tmp_path, "a.json", "")
    assert found(tmp_path) == []
    land(tmp_path, "a.json", "x")
    assert found(tmp_path) == [path]


def test_a_single_file_may_be_the_path(tmp_path):
    path = land(tmp_path, "a.json")
    assert found(path) == [path]
    assert found(path, {path}) == []


def test_a_file_url_is_a_local_path(tmp_path):
    path = land(tmp_path, "with space/a.json")
    assert found((tmp_path / "with space").as_uri()) == [path]


def test_only_names_that_match_the_glob_are_found(tmp_path):
    wanted = land(tmp_path, "d/a.json")
    land(tmp_path, "d/a.csv")
    land(tmp_path, "d.json/b.txt")
    assert found(tmp_path, name_glob="*.json") == [wanted]


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


def test_a_file_that_vanishes_during_the_listing_is_no_error(tmp_path):
    paths = [land(tmp_path, f"{i}.json") for i in range(3)]
    # The listing sees all three entries, then all three are gone.
    assert [file.path for file in lister(tmp_path)(Vanishing(*paths))] == []


def test_a_directory_that_vanishes_during_the_listing_is_no_error(tmp_path):
    stays = land(tmp_path, "a.json")
    for name in ("d", "e"):
        land(tmp_path, f"{name}/b.json")
    doomed = [str(tmp_path / "d"), str(tmp_path / "e")]
    assert [file.path for file in lister(tmp_path)(Vanishing(*doomed))] == [stays]


def test_a_directory_that_cannot_be_listed_is_an_error_with_its_name_and_cause(tmp_path):
    # Root may read everything, but nobody can walk a loop of links.
    loop = tmp_path / "d" / "loop"
    loop.parent.mkdir()
    loop.symlink_to(loop)
    target = loop / "below"
    with pytest.raises((SourceUnavailable, MissingPathError)) as error:
        found(target)
    assert "loop" in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_an_unreadable_directory_is_an_error_with_its_name(tmp_path):
    land(tmp_path, "d/a.json")
    os.chmod(tmp_path / "d", 0)
    try:
        with pytest.raises(SourceUnavailable, match="the path cannot be listed"):
            found(tmp_path)
    finally:
        os.chmod(tmp_path / "d", 0o755)


def test_a_listing_error_names_the_place_and_keeps_its_cause(tmp_path):
    long = "n" * 200
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        # Deeper than a path may be long: the kernel refuses to open it by its full name.
        for _ in range(25):
            os.mkdir(long, dir_fd=descriptor)
            below = os.open(long, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        with pytest.raises(SourceUnavailable, match=r"the path cannot be listed: .*nnn") as error:
            found(tmp_path)
        assert isinstance(error.value.__cause__, OSError)
    finally:
        os.close(descriptor)
        shutil.rmtree(tmp_path / long)


# Other file systems -------------------------------------------------------------------------


@pytest.fixture
def bucket():
    root = f"memory://bucket-{uuid.uuid4().hex}"
    fs = fsspec.filesystem("memory")
    yield root, fs
    fs.rm(root, recursive=True) if fs.exists(root) else None


def test_another_file_system_is_listed_through_fsspec(bucket):
    root, fs = bucket
    for name in ("in/a.json", "in/d/b.json", "in/_x/c.json", "in/d/.e", "out/f.json"):
        fs.pipe_file(f"{root}/{name}", b"abc")
    fs.pipe_file(f"{root}/in/empty", b"")
    files = lister(f"{root}/in")(set())
    assert [file.path.split("/in/")[1] for file in files] == ["a.json", "d/b.json"]
    assert [file.size for file in files] == [3, 3]
    assert all(file.modified > 0 for file in files)
    assert lister(f"{root}/in")({file.path for file in files}) == []


def test_a_missing_bucket_is_an_error_or_is_waited_for(bucket):
    root, fs = bucket
    with pytest.raises(MissingPathError):
        lister(f"{root}/in")(set())
    waiting = lister(f"{root}/in", fail_on_missing_path=False)
    assert waiting(set()) == []
    fs.pipe_file(f"{root}/in/a.json", b"abc")
    assert len(waiting(set())) == 1
