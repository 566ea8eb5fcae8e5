"""A query while its store answers one create with an error, or confirms what it has not stored.

The store is a directory behind a storage that plays the answers, so that the whole table takes
seconds. `tests/checkpoint_meta/storage/test_bucket.py` has the same answers as HTTP.
"""

from __future__ import annotations

import gzip
import os
import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from typing_extensions import override

from pyspark_sluice import run
from pyspark_sluice.checkpoint_meta.storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.contract import Data, Draft, SpooledDraft
from pyspark_sluice.checkpoint_meta.storage.local_storage import LocalStorage
from pyspark_sluice.errors import SluiceError
from pyspark_sluice.tables.manifests import Manifests
from pyspark_sluice.tests.connector.host.query import keywords

KINDS = {
    "data file": r"/table/[^_/]*\.parquet$",
    "bad records": "/bad/",
    "manifest": "/manifests/",
    "archived file": "/old/",
    "cut places": "/points/",
    "cleanup mark": "/cleaned/",
    "schema": "/schemas/",
    "claim": "/epochs/",
    "checkpoint": "/checkpoints/",
    "reader commit": "/readers/",
    "offset": "/offsets/",
    "commit of a batch": "/commits/",
}
"""Kind of object -> its names."""

ANSWERS: dict[str, tuple[bool, type[OSError] | None]] = {
    "409 and nothing is stored": (False, FileExistsError),
    "412 after a repeated request": (True, FileExistsError),
    "503, 500 or a cut before": (False, OSError),
    "time-out or a cut after": (True, OSError),
    "200 and nothing is stored": (False, None),
}
"""Answer -> whether the object is stored, and the error that the client makes of it."""

_KILLED, _REFUSED = 9, 3

MANY = range(2, 6_000)


class _Store(LocalStorage):
    """Behaves as a bucket, and answers the first create of one kind of object as the test says."""

    play: Callable[[str], tuple[bool, type[OSError] | None, bool] | None]

    @override
    def create(self, name: str, data: Data) -> None:
        played = type(self).play(name)
        if played is None:
            return super().create(name, data)
        is_stored, error, is_killed = played
        if is_stored:
            super().create(name, data)
        if is_killed:
            os._exit(_KILLED)
        if error is not None:
            raise error(5, "played", name)
        return None

    @override
    def begin(self, name: str) -> Draft:
        return SpooledDraft(self, name)

    @override
    def rename(self, name: str, target: str, mark: str = "") -> None:
        raise OSError(18, "no rename", target)

    @override
    def copy(self, name: str, target: str, etag: str = "") -> None:
        self.create(target, self.whole(name))


def _in_a_fork(action: Callable[[], object], log: Path) -> int:
    """Exit code of a process that does this; a text with the error is in `log`."""
    child = os.fork()
    if not child:
        code = 1
        try:
            action()
            code = 0
        except SluiceError as error:
            log.write_text(f"{type(error).__name__}: {error}")
            code = _REFUSED
        except BaseException:  # noqa: BLE001 - the parent reports it
            log.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(autouse=True)
def played_store(monkeypatch):
    monkeypatch.setattr(open_storage, "LocalStorage", _Store)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [name for name in ANSWERS if not name.startswith("200")])
def test_any_answer_to_the_first_create_of_each_kind_loses_and_doubles_nothing(tmp_path, answer):
    _play(tmp_path, KINDS.values(), *ANSWERS[answer])
    codes, texts = _runs(tmp_path)
    assert codes == [0] * 3, texts
    _check(tmp_path)
    assert {name.name for name in (tmp_path / "played").iterdir()} == {
        str(number) for number in range(len(KINDS))
    }


@pytest.mark.slow
@pytest.mark.sample(
    "data file", "bad records", "manifest", "archived file", why="the simulation has the others"
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_dies_after_a_create_or_a_store_that_forgets_one_doubles_nothing(
    tmp_path, kind
):
    """A store that forgets what it has confirmed may end the query, by name."""
    for is_stored, is_killed in [(False, False), (False, True), (True, True)]:
        root = tmp_path / f"{is_stored}-{is_killed}"
        _play(root, [KINDS[kind]], is_stored, None, is_killed)
        codes, texts = _runs(root)
        case = f"stored={is_stored}, killed={is_killed}: {codes} {texts}"
        assert list((root / "played").iterdir()), case
        assert (_KILLED in codes) == is_killed, case
        assert codes[-1] == 0 or (codes[-1] == _REFUSED and not is_killed), case
        if codes[-1] == 0:
            _check(root)
        else:
            rows = _rows(root)
            assert len(set(rows)) == len(rows), case


def _runs(root: Path) -> tuple[list[int], str]:
    """Exit codes of three runs, with a new file before the first two of them, and their errors."""
    (root / "in").mkdir(parents=True, exist_ok=True)
    # It is read in several splits, which begin at cut places.
    with gzip.open(root / "in" / "many.json.gz", "wt") as many:
        many.writelines(f'{{"id": {number}, "t": "{uuid4().hex * 2}"}}\n' for number in MANY)
    codes, texts = [], ""
    for number in range(3):
        if number < 2:
            lines = f'{{"id": {number}}}\n{{broken-{number}\n'
            (root / "in" / f"{number}.json").write_text(lines)
        codes.append(_in_a_fork(lambda: _run(root), root / "log"))
        texts += (root / "log").read_text() if (root / "log").exists() else ""
    return codes, texts


def _check(root: Path) -> None:
    broken = {"broken-0", "broken-1"}
    assert _rows(root) == [0, 1, *MANY]
    assert _texts(root, "bad") == _texts(root, "in", "old") == broken


def _play(
    root: Path,
    kinds: Iterable[str],
    is_stored: bool,
    error: type[OSError] | None,
    is_killed: bool = False,
) -> None:
    """Let the first create of each kind be answered so."""
    (root / "played").mkdir(parents=True)

    def play(name: str) -> tuple[bool, type[OSError] | None, bool] | None:
        for number, names in enumerate(kinds):
            mark = root / "played" / str(number)
            if re.search(names, name.removeprefix(str(root))) and not mark.exists():
                mark.touch()
                return is_stored, error, is_killed
        return None

    _Store.play = staticmethod(play)


def _run(root: Path) -> None:
    run(**keywords(_options(str(root))), to=f"parquet:{root / 'table'}")


def _options(root: str) -> dict[str, Any]:
    options: dict[str, Any] = {"path": f"{root}/in", "checkpointLocation": f"{root}/ck"}
    options |= {"fileFormat": "json", "inferColumnTypes": True, "badRecordsPath": f"{root}/bad"}
    options |= {"maxSplitBytes": "64k"}
    options |= {"cleanSource": "archive", "sourceArchiveDir": f"{root}/old"}
    return options | {"cleanSourceRetention": "0s", "cleanSourceWhileRetained": True}


def _rows(root: Path) -> list[int]:
    paths = Manifests(str(root / "table" / "_sluice"), {}).paths()
    return sorted(n for path in paths for n in pq.read_table(path)["id"].to_pylist())


def _texts(root: Path, *folders: str) -> set[str]:
    files = [path for name in folders for path in (root / name).rglob("*.json")]
    return {text for path in files for text in re.findall(r"broken-\d", path.read_text())}
