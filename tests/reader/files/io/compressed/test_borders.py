"""Files that cannot be entered: where two splits meet is decided once, by the first who comes."""

from __future__ import annotations

import gzip
import json
import random
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.stores.open_store import LocalStateStore
from pyspark_sluice.errors import SplitReadError
from pyspark_sluice.reader.files.formats.api import FormatContext, Splittability
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.io import codecs
from pyspark_sluice.reader.files.io.compressed import gzip as points_of_gzip
from pyspark_sluice.reader.files.io.compressed import splittable_codecs
from pyspark_sluice.reader.files.io.compressed.cut_places import (
    MemoryCutPlaces,
    StoredCutPlaces,
    take_over,
)
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import CONTEXT, cut, version
from pyspark_sluice.tests.reader.files.io.compressed_members import MEMBERS

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
JSON = ReaderOptions(file_format="json")
COUNT = 2_000
SUFFIX = {"gzip": "gz", "hadoop lz4": "lz4", "hadoop snappy": "snappy"}
KINDS = [kind for kind in MEMBERS if kind not in ("bzip2", "zstd")]


def _lines():
    chance = random.Random(1)
    texts = (f"{chance.getrandbits(4 * chance.randrange(1, 300)):x}" for _ in range(COUNT))
    return "".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)).encode()


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(points_of_gzip, "can_find_points", lambda: False)
    _take_in(monkeypatch, 1000, 3000)
    monkeypatch.setattr(splittable_codecs, "LEAST_SHARE", 10_000)


def _take_in(monkeypatch, stored, content):
    """Another release of a decoder: it takes in, and gives out, so much at a time."""
    monkeypatch.setattr(codecs, "_CHUNK", stored)
    monkeypatch.setattr(splittable_codecs, "_STEP", content)


def _file(root, kind="deflate"):
    path = root / f"a.json.{SUFFIX.get(kind, kind)}"
    path.write_bytes(MEMBERS[kind][1](_lines()))
    return path


def _splits(path, cut_places):
    made = make_format(JSON, SCHEMA, FormatContext(cut_places=cut_places))
    assert made.splittability(version(path)) is Splittability.LIMITS
    return cut(path, [block.start for block in made.blocks(version(path))])


def _steps(split, cut_places):
    reader = FileSplitReader(SCHEMA, JSON, CONTEXT, cut_places=cut_places)
    return (i for i in reader.read([split]) if isinstance(i, pa.RecordBatch))


def _ids(split, cut_places):
    return [number for batch in _steps(split, cut_places) for number in batch["id"].to_pylist()]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_splits_have_the_records_of_the_file_once_in_any_order_of_reading(
    tmp_path, kind, backwards
):
    path, cut_places = _file(tmp_path, kind), MemoryCutPlaces()
    splits = _splits(path, cut_places)
    assert len(splits) == splittable_codecs.SHARES
    order = range(len(splits))[:: -1 if backwards else 1]
    found = {at: _ids(splits[at], cut_places) for at in order}
    assert [number for at in sorted(found) for number in found[at]] == list(range(COUNT))
    # Hadoop's blocks are taken in one by one, and here there are three.
    assert sum(1 for ids in found.values() if ids) >= (3 if "hadoop" in kind else 6)


class Forgets(MemoryCutPlaces):
    """A bug: each reader decides for itself where a border is."""

    def boundary(self, file, byte):
        return None

    def keep_boundary(self, file, byte, content):
        return content


def _random_run(root, cut_places, draw, monkeypatch):
    """Readers of any release of a decoder, in any order; some are killed, and tried again."""
    splits = _splits(root / "a.json.deflate", cut_places)
    found = {}
    for at in draw(st.permutations(range(len(splits)))):
        for killed in (*draw(st.lists(st.integers(0, 3), max_size=2)), None):
            _take_in(monkeypatch, draw(st.integers(50, 9_000)), draw(st.integers(50, 50_000)))
            steps = _steps(splits[at], cut_places)
            if killed is None:
                found[at] = [n for batch in steps for n in batch["id"].to_pylist()]
            for _ in range(killed or 0):
                next(steps, None)
            steps.close()
    return [number for at in sorted(found) for number in found[at]]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    made = tmp_path_factory.mktemp("boundaries")
    _file(made)
    return made


@pytest.mark.slow
@given(data=st.data())
@pytest.mark.thorough("kills at any place; cuts at borders are above")
def test_readers_of_any_release_that_are_killed_anywhere_give_every_row_once(root, data):
    with pytest.MonkeyPatch.context() as patch:
        store = StoredCutPlaces(LocalStateStore(str(root / f"{data.draw(st.uuids())}")))
        assert _random_run(root, store, data.draw, patch) == list(range(COUNT))


def test_a_border_that_is_not_kept_loses_and_doubles_rows(root, monkeypatch):
    found = []
    for stored, later in ((1000, 9000), (9000, 1000)):
        splits, ids = _splits(root / "a.json.deflate", Forgets()), []
        for at, split in enumerate(splits):
            _take_in(monkeypatch, later if at % 2 else stored, 3000)
            ids += _ids(split, Forgets())
        found.append((set(range(COUNT)) - set(ids), len(ids) - len(set(ids))))
    assert any(lost for lost, _ in found)
    assert any(doubled for _, doubled in found)


class Late(MemoryCutPlaces):
    """Another reader comes to a border after this one has looked for it."""

    def __init__(self, content):
        super().__init__()
        self.content = content

    def boundary(self, file, byte):
        found = super().boundary(file, byte)
        if found is None:
            super().keep_boundary(file, byte, self.content)
        return found


@pytest.mark.parametrize(("content", "again"), [(100, True), (60_000, False)])
def test_a_reader_that_was_not_the_first_at_a_border_gives_the_same_rows(root, content, again):
    cut_places = Late(content)
    first, *_ = _splits(root / "a.json.deflate", cut_places)
    if again:
        with pytest.raises(SplitReadError, match="another reader has split"):
            _ids(first, cut_places)
    ids = _ids(first, cut_places)
    assert ids == list(range(_lines()[:content].count(b"\n") + 1))


def test_another_state_takes_borders_over(root, tmp_path, monkeypatch):
    old, new = (LocalStateStore(str(tmp_path / name)) for name in ("old", "new"))
    first, *rest = _splits(root / "a.json.deflate", StoredCutPlaces(old))
    ids = _ids(first, StoredCutPlaces(old))
    for _ in range(2):
        take_over(old, new)
    _take_in(monkeypatch, 9000, 50)
    cut_places = StoredCutPlaces(new)
    assert ids + [number for split in rest for number in _ids(split, cut_places)] == list(
        range(COUNT)
    )


def test_rapidgzip_may_come_and_go_within_a_file(tmp_path, monkeypatch):
    pytest.importorskip("rapidgzip")
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(_lines() * 12, 6))
    monkeypatch.setattr(points_of_gzip, "SPACING", 1)
    cut_places, found = MemoryCutPlaces(), []
    made, file = make_format(JSON, SCHEMA, FormatContext(cut_places=cut_places)), version(path)
    done, boundaries = 0, []
    for is_there in (False, True, False, True):
        monkeypatch.setattr(points_of_gzip, "can_find_points", lambda there=is_there: there)
        ends = [block.end for block in made.blocks(file) if block.end > done]
        done = ends[0]
        boundaries.append(done)
    for split in cut(path, boundaries):
        found += _ids(split, cut_places)
    assert found == 12 * list(range(COUNT))
    kinds = [byte in splittable_codecs.boundaries(file.size) for byte in boundaries]
    assert {True, False} <= set(kinds), "both kinds of borders are used"


def test_a_border_belongs_to_one_version_of_a_file(tmp_path):
    path, cut_places = _file(tmp_path), MemoryCutPlaces()
    splits = _splits(path, cut_places)
    before = _ids(splits[0], cut_places)
    path.write_bytes(zlib.compress(_lines(), 1))
    again = _splits(path, cut_places)
    found = [number for split in again for number in _ids(split, cut_places)]
    assert found == list(range(COUNT))
    assert before == found[: len(before)]
