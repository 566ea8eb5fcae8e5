"""onDelete=retract: files that are gone, what is not taken for one, and what is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.layout import CLEANED
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.commands.clean_up import compact_plan
from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.errors import OptionError, SourceUnavailable, StateCorruptError
from pyspark_sluice.tests.connector.host.landing import DELETING, Landing

pytestmark = pytest.mark.slow


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    landing = Landing(tmp_path)
    for name, value in (("1", 1), ("2", 2)):
        landing.json(f"{name}.json", {"v": value})
    landing.run(**DELETING)
    return landing


def values(landing: Landing) -> list[int]:
    return sorted(row["v"] for row in landing.rows())


@pytest.mark.effect_of("onDelete", "retractAfter")
def test_rows_of_a_file_that_is_gone_leave_the_table_after_a_delay_that_spans_runs(landing):
    (landing.data / "1.json").unlink()
    # This run says only since when it is absent.
    landing.run(**DELETING)
    assert values(landing) == [1, 2]
    time.sleep(1.1)
    landing.run(**{**DELETING, "retractAfter": "1h"})
    assert values(landing) == [1, 2]
    landing.run(**DELETING)
    assert values(landing) == [2]
    landing.json("1.json", {"v": 3})
    landing.run(**DELETING)
    assert values(landing) == [2, 3]


def test_times_of_absent_files_are_an_object_that_compaction_keeps(landing):
    (landing.data / "1.json").unlink()
    for value in range(3, 7):
        landing.json(f"{value}.json", {"v": value})
        landing.run(**{**DELETING, "retractAfter": "1h"})
    (state,) = landing.checkpoint.glob("sluice/*")
    (written,) = state.rglob("*.absent.arrow")
    plan = compact_plan(open_store(str(state), {}), 1)
    assert plan.write is not None
    plan.write()
    assert [*state.rglob("*.absent.arrow")] == [written]
    time.sleep(1.1)
    landing.run(**DELETING)
    assert values(landing) == [2, 3, 4, 5, 6]


def test_a_damaged_object_with_the_times_of_absent_files_is_an_error_by_name(landing, capsys):
    (landing.data / "1.json").unlink()
    landing.run(**DELETING)
    (written,) = landing.checkpoint.rglob("*.absent.arrow")
    assert main(["verify", str(landing.checkpoint)]) == 0
    capsys.readouterr()
    written.write_bytes(b"no times")
    assert main(["verify", str(landing.checkpoint)]) != 0
    assert written.name in capsys.readouterr().out
    with pytest.raises(StateCorruptError, match=written.name):
        landing.run(**DELETING)


def test_a_fork_goes_on_with_the_times_of_absent_files(landing, tmp_path):
    (landing.data / "1.json").unlink()
    landing.run(**DELETING)
    fork = tmp_path / "fork"
    assert main(["fork", str(landing.checkpoint), str(fork), "--yes"]) == 0
    (old, new) = (p.read_bytes() for p in tmp_path.rglob("*.absent.arrow"))
    assert old == new
    landing.checkpoint = fork
    time.sleep(1.1)
    landing.run(**DELETING)
    assert values(landing) == [2]


def test_a_loaded_path_without_any_file_is_an_error_and_takes_no_rows(landing):
    paths = [landing.data / "1.json", landing.data / "2.json"]
    for path in paths:
        path.rename(landing.data.parent / path.name)
    landing.run(**DELETING)
    time.sleep(1.1)
    with pytest.raises(SourceUnavailable, match="a loaded path has no files any more"):
        landing.run(**DELETING)
    assert values(landing) == [1, 2]
    # With one of its files back, the other one is gone.
    (landing.data.parent / "1.json").rename(paths[0])
    landing.run(**DELETING)
    assert values(landing) == [1]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"discoveryMode": "incremental"}, "discoveryMode=full"),
        ({"cleanSource": "delete"}, "cleanSource=off"),
        ({"onOverwrite": "reprocess"}, "onOverwrite=ignore or onOverwrite=replace"),
        ({"writeFileColumn": ""}, "writeFileColumn"),
    ],
)
def test_what_would_take_other_rows_along_is_refused(tmp_path, more, says):
    given = {"path": str(tmp_path), "fileFormat": "json", **DELETING, **more}
    given["writeTo"] = str(tmp_path / "table")
    with pytest.raises(OptionError, match=says):
        parse_options({k: v for k, v in given.items() if v}, streaming=False)


def test_a_query_that_has_cleaned_up_is_refused(landing):
    (cleaned,) = landing.checkpoint.glob("sluice/*")
    (cleaned / CLEANED).mkdir()
    (cleaned / CLEANED / "0000000001-0000000001.json").write_text("{}")
    with pytest.raises(OptionError, match="files of this query were cleaned up"):
        landing.run(**DELETING)
    landing.json("3.json", {"v": 3})
    landing.run(writeFileColumn="file")
    assert values(landing) == [1, 2, 3]
