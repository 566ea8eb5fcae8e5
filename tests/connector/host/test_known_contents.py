"""Files that come twice (`identity=content`), in the embedded host, local and in a bucket."""

from __future__ import annotations

import json
import logging
import os

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.arguments import find_state
from pyspark_sluice.connector.views.files import files
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.errors import FileChangedError, FileVanishedError, OptionError, SplitReadError
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.tests.connector.host.landing import STEPS, Landing

pytestmark = pytest.mark.slow

BY_CONTENT = {"identity": "content"}


def read(landing, **options):
    """One run; the values that the table has then."""
    landing.run(**BY_CONTENT, **options)
    return sorted(row["v"] for row in landing.rows())


def states(landing):
    """The states of all versions of each file, by its name."""
    found: dict[str, list[str]] = {}
    view = StateView(find_state(str(landing.checkpoint), "source", "{}"))
    for row in files(view).to_pylist():
        found.setdefault(row["path"].rpartition("/")[2], []).append(row["state"])
    return {name: sorted(states) for name, states in sorted(found.items())}


def told(capsys, *arguments):
    capsys.readouterr()
    main([*map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.effect_of("identity")
def test_equal_files_of_one_run_and_of_different_ones_are_read_once(landing, caplog):
    caplog.set_level(logging.DEBUG, "pyspark_sluice.discovery")
    landing.json("1.json", {"v": 1}, {"v": 2})
    landing.json("2.json", {"v": 1}, {"v": 2})
    assert read(landing) == [1, 2]
    landing.json("3.json", {"v": 1}, {"v": 2})
    landing.json("4.json", {"v": 3})
    assert read(landing) == [1, 2, 3]
    expected = {"1.json": ["read"], "2.json": ["skipped"], "3.json": ["skipped"]}
    assert states(landing) == {**expected, "4.json": ["read"]}
    lines = [line for line in caplog.messages if "identity=content" in line]
    assert [line.rpartition("/")[2] for line in lines] == ["2.json", "3.json"]


@pytest.mark.parametrize("order", [{"fileOrder": "name"}, {"fileOrder": "newestFirst"}])
def test_of_equal_files_the_first_in_order_is_read(landing, order):
    for at, name in enumerate(("1.json", "2.json")):
        landing.json(name, {"v": 1})
        os.utime(landing.data / name, (1000 + at, 1000 + at))
    assert read(landing, **order) == [1]
    first = "1.json" if order["fileOrder"] == "name" else "2.json"
    assert [name for name, state in states(landing).items() if state == ["read"]] == [first]


def test_files_that_are_left_out_count_against_no_limit_and_are_in_any_order(landing):
    for day in (1, 2, 3):
        (landing.data / f"date=2026-01-0{day}").mkdir()
        for name in "ab":
            landing.json(f"date=2026-01-0{day}/{name}.json", {"v": day})
    order = {"fileOrder": "eventTime", "eventTimePattern": "date={yyyy}-{MM}-{dd}"}
    assert read(landing, **order, maxFilesPerTrigger="1") == [1, 2, 3]


def test_a_touched_file_is_recorded_and_a_changed_one_is_read_or_fails(landing):
    landing.json("1.json", {"v": 1})
    read(landing)
    for option in ("reprocess", "fail"):
        os.utime(landing.data / "1.json")
        assert read(landing, onOverwrite=option) == [1]
    assert states(landing)["1.json"] == ["read", "skipped", "skipped"]
    landing.json("1.json", {"v": 2})
    with pytest.raises(FileChangedError):
        read(landing, onOverwrite="fail")
    assert read(landing, onOverwrite="reprocess") == [1, 2]
    landing.json("1.json", {"v": 1})
    assert read(landing, onOverwrite="reprocess") == [1, 2]


def test_what_was_read_before_the_option_was_set_is_not_known_and_what_after_it_stays_so(landing):
    landing.json("1.json", {"v": 1})
    landing.run()
    landing.json("2.json", {"v": 1})
    assert read(landing) == [1, 1]
    landing.json("3.json", {"v": 1})
    landing.run(identity="path")
    landing.json("4.json", {"v": 1})
    assert read(landing) == [1, 1, 1]
    assert states(landing)["4.json"] == ["skipped"]


def test_files_that_are_passed_over_at_the_start_are_not_known_by_their_contents(landing):
    landing.json("1.json", {"v": 1})
    read_none = {"includeExistingFiles": False}
    landing.run(**BY_CONTENT, **read_none)
    landing.json("2.json", {"v": 1})
    landing.json("3.json", {"v": 1})
    assert read(landing, **read_none) == [1]


def planned_and_not_read(landing, **options):
    """A batch of one file that waits."""
    landing.json("1.json", {"v": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*STEPS["commit"], lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            landing.run(**BY_CONTENT, **options)


def renamed_while_it_waits(landing, **options):
    planned_and_not_read(landing, **options)
    (landing.data / "1.json").rename(landing.data / "2.json")


def test_a_file_that_is_renamed_before_it_is_read_is_read_under_its_new_name(landing):
    skips = {"ignoreMissingFiles": "true"}
    renamed_while_it_waits(landing, **skips)
    assert read(landing, **skips) == [1]
    assert read(landing, **skips) == [1]
    assert states(landing) == {"1.json": ["skipped"], "2.json": ["read"]}


def test_a_file_that_is_waived_makes_way_for_its_copy(landing, capsys):
    renamed_while_it_waits(landing)
    with pytest.raises(FileVanishedError):
        read(landing)
    main(["waive", str(landing.checkpoint), "--yes"])
    assert read(landing) == [1]
    assert states(landing) == {"1.json": ["waived"], "2.json": ["read"]}


def test_a_file_that_is_quarantined_makes_way_for_its_copy(landing, monkeypatch):
    returns = {"onSplitError": "return", "maxSplitAttempts": "1"}
    landing.json("1.json", {"v": 1})
    landing.json("2.json", {"v": 1})

    batches = FileSplitReader._batches

    def refusing(self, split):
        if split.file.path.endswith("1.json"):
            raise SplitReadError("cannot be read", split.file.path, "a fault", "none", "Wait.")
        return batches(self, split)

    monkeypatch.setattr(FileSplitReader, "_batches", refusing)
    assert read(landing, **returns) == [1]
    assert states(landing) == {"1.json": ["quarantined"], "2.json": ["read"]}


@pytest.mark.parametrize("on_overwrite", ["ignore", "reprocess"])
def test_a_file_that_changes_before_it_is_read_is_known_by_what_is_read(landing, on_overwrite):
    options = {"onOverwrite": on_overwrite}
    planned_and_not_read(landing, **options)
    landing.json("1.json", {"v": 2}, {"v": 3})
    landing.json("2.json", {"v": 2}, {"v": 3})
    landing.json("3.json", {"v": 1})
    for _ in range(2):
        assert read(landing, **options) == [1, 2, 3]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("give back", "delete")])
def test_a_kill_at_any_step_leaves_each_content_once(landing, step, is_done):
    landing.json("1.json", {"v": 1})
    landing.json("2.json", {"v": 1})
    landing.die(step, is_done, **BY_CONTENT)
    landing.json("3.json", {"v": 1})
    landing.json("4.json", {"v": 2})
    for _ in range(2):
        assert read(landing) == [1, 2]


def test_a_fork_a_moved_query_and_a_compacted_state_know_the_contents(landing, capsys):
    landing.json("1.json", {"v": 1})
    landing.json("2.json", {"v": 1})
    assert read(landing) == [1]
    assert told(capsys, "status", landing.checkpoint)["files_seen"] == 2
    assert main(["compact", str(landing.checkpoint), "--yes"]) == 0
    assert told(capsys, "status", landing.checkpoint)["files_seen"] == 2
    assert main(["verify", str(landing.checkpoint)]) == 0
    landing.json("3.json", {"v": 1})
    assert read(landing) == [1]
    moved = landing.data.parent / "moved"
    landing.data.rename(moved)
    to = landing.data.parent / "fork"
    main(
        ["fork", str(landing.checkpoint), str(to), "--rewrite", f"{landing.data}={moved}", "--yes"]
    )
    landing.data, landing.checkpoint = moved, to
    landing.json("4.json", {"v": 1})
    landing.json("5.json", {"v": 2})
    assert read(landing) == [1, 2]


def test_an_order_reads_what_was_left_out_and_the_books_are_closed(landing, capsys):
    counted = {"writeFileColumn": "file", "keepFileRows": True}
    landing.json("1.json", {"v": 1})
    landing.json("2.json", {"v": 1})
    assert read(landing, **counted) == [1]
    audit = "audit", landing.checkpoint, "--table", f"delta:{landing.table}", "--recount"
    answer = told(capsys, *audit)
    assert answer["differences"] == []
    assert (answer["files"]["read"], answer["files"]["skipped"]) == (1, 1)
    main(["requeue", str(landing.checkpoint), "--matching", "*2.json", "--yes"])
    assert read(landing, **counted) == [1, 1]
    assert states(landing) == {"1.json": ["read"], "2.json": ["read"]}
    assert told(capsys, *audit)["files"]["read"] == 2


def test_options_that_let_rows_leave_the_table_are_refused(landing):
    landing.json("1.json", {"v": 1})
    by_file = {**BY_CONTENT, "writeFileColumn": "file"}
    for more in (
        {"onOverwrite": "replace"},
        {"onDelete": "retract"},
        {"onOverwrite": "appendTail"},
    ):
        landing.refused("identity: found content with on", error=OptionError, **by_file, **more)


def test_objects_in_buckets_are_known_by_their_contents(tmp_path, server, bucket):
    landing = Landing(tmp_path)
    options = {"path": f"s3://{bucket}/in/", "storageOptions": json.dumps(server.options)}
    server.put(bucket, "in/1.json", b'{"v": 1}\n')
    server.put(bucket, "in/2.json", b'{"v": 1}\n')
    assert read(landing, **options) == [1]
    server.put(bucket, "in/3.json", b'{"v": 1}\n')
    server.put(bucket, "in/4.json", b'{"v": 2}\n')
    assert read(landing, **options) == [1, 2]


def test_a_rewind_reads_files_again_whose_content_is_known(landing):
    landing.json("1.json", {"v": 1})
    assert read(landing) == [1]
    landing.json("2.json", {"v": 2})
    assert read(landing) == [1, 2]
    main(["rewind", str(landing.checkpoint), "--to", "1", "--yes"])
    assert read(landing) == [1, 2, 2]
    landing.json("3.json", {"v": 2})
    assert read(landing) == [1, 2, 2]


def test_a_file_that_is_read_by_an_order_is_known_by_its_content(landing, monkeypatch):
    returns = {"onSplitError": "return", "maxSplitAttempts": "1", "writeSchema": "v long"}

    def refusing(self, split):
        raise SplitReadError("cannot be read", split.file.path, "a fault", "none", "Wait.")

    landing.json("1.json", {"v": 1})
    with monkeypatch.context() as patch:
        patch.setattr(FileSplitReader, "_batches", refusing)
        landing.run(**BY_CONTENT, **returns)
    main(["requeue", str(landing.checkpoint), "--quarantined", "--yes"])
    assert read(landing, **returns) == [1]
    landing.json("2.json", {"v": 1})
    assert read(landing, **returns) == [1]
