"""Files that change take their rows in the table along, in the embedded host."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReaderCommits
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.errors import OptionError, TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.connector.host.landing import STEPS

pytestmark = pytest.mark.slow

REPLACING = {"onOverwrite": "replace", "writeFileColumn": "file"}


def values(landing):
    return sorted(row["v"] for row in landing.rows())


def first_delivery(landing):
    landing.json("1.json", {"v": 1}, {"v": 2})
    landing.json("2.json", {"v": 3})
    landing.run(**REPLACING)


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("give back", "delete")])
def test_a_kill_at_any_step_leaves_the_rows_of_a_file_in_one_version(landing, step, is_done):
    first_delivery(landing)
    landing.json("1.json", {"v": 10}, {"v": 20}, {"v": 30})
    landing.die(step, is_done, **REPLACING)
    for _ in range(2):
        landing.run(**REPLACING)
        assert values(landing) == [3, 10, 20, 30]
    landing.json("3.json", {"v": 4})
    landing.json("1.json", {"v": 5})
    landing.run(**REPLACING)
    assert values(landing) == [3, 4, 5]


def test_sinks_and_tables_that_cannot_remove_rows_are_refused_before_the_first_batch(landing):
    landing.json("1.json", {"v": 1})
    only = {"onOverwrite": "replace"}
    landing.refused("onOverwrite: found replace without writeFileColumn", error=OptionError, **only)
    to = f"parquet:{landing.table}"
    landing.refused("cannot be replaced or removed in this table", to=to, **REPLACING)
    landing.create(("v", pa.int64()))
    properties = DeltaTable(str(landing.table)).alter.set_table_properties
    properties({"delta.appendOnly": "true"})
    landing.refused(r"found delta\.appendOnly=true", **REPLACING)
    with pytest.raises(OptionError, match="this sink cannot remove earlier rows"):
        landing.run(to=lambda batch, number: None, writeTo=str(landing.table), **REPLACING)
    properties({"delta.appendOnly": "false"})
    landing.run(**REPLACING)
    assert values(landing) == [1]


def test_rows_that_were_written_without_the_column_are_not_replaced_beside_new_ones(landing):
    landing.json("1.json", {"v": 1})
    landing.run()
    key = {**REPLACING, "writeFileColumn": "key"}
    with pytest.raises(OptionError, match=r"earlier rows of this query have no such key.*without"):
        landing.run(**REPLACING)
    landing.run(writeFileColumn="file")
    with pytest.raises(OptionError, match="writeFileColumn=file, and rows without"):
        landing.run(**REPLACING)
    landing.table = landing.data.parent / "another"
    landing.checkpoint = landing.data.parent / "another ck"
    landing.run(**REPLACING)
    with pytest.raises(OptionError, match="writeFileColumn=key, and rows with file"):
        landing.run(**key)
    landing.json("1.json", {"v": 10})
    landing.run(**REPLACING)
    assert values(landing) == [10]


def test_a_fork_that_keeps_its_table_keeps_the_column_by_which_earlier_rows_are_found(landing):
    first_delivery(landing)
    old, landing.checkpoint = landing.checkpoint, landing.data.parent / "fork"
    at_table = "--at-table", f"delta:{landing.table}"
    assert main(["fork", str(old), str(landing.checkpoint), *at_table, "--yes"]) == 0
    landing.json("1.json", {"v": 10})
    with pytest.raises(OptionError, match="writeFileColumn=key, and rows with file"):
        landing.run(**{**REPLACING, "writeFileColumn": "key"})
    retract = ["retract", str(landing.checkpoint), "--matching", "*/2.json", "--yes"]
    assert main(retract) == 0
    landing.run(**REPLACING)
    assert values(landing) == [10]


def test_a_file_that_is_replaced_while_its_parts_are_read_is_read_once_as_it_is_now(landing):
    landing.json("1.json", *({"v": v} for v in range(200)))
    landing.json("2.json", {"v": 500})
    options = {**REPLACING, "maxSplitBytes": "300"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReaderCommits, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            landing.run(**options)
    landing.json("1.json", *({"v": v} for v in range(1000, 1100)))
    landing.run(**options)
    assert values(landing) == [500, *range(1000, 1100)]


def test_a_batch_that_replaces_files_waits_for_a_start_that_names_the_column(landing, monkeypatch):
    first_delivery(landing)
    landing.json("1.json", {"v": 10})
    with monkeypatch.context() as patch:
        patch.setattr(DeltaSink, "add", lambda *_: 1 / 0)
        patch.setattr(ReaderCommits, "publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            landing.run(**REPLACING)
    with pytest.raises(TableError, match="rows of a file are to be replaced or removed"):
        landing.run()
    landing.run(writeFileColumn="file")
    assert values(landing) == [3, 10]


@pytest.mark.parametrize("kind", ["int", "long", "date", "string"])
def test_a_column_of_the_path_of_any_type_is_a_condition_of_the_removal(landing, kind):
    day = landing.data / f"day={'2026-01-02' if kind == 'date' else 4}"
    day.mkdir()
    schema = {"writeSchema": f"v long, day {kind}", **REPLACING}
    for name, rows in (("1.json", ({"v": 1}, {"v": 2})), ("2.json", ({"v": 3},))):
        landing.json(f"{day.name}/{name}", *rows)
    landing.run(**schema)
    landing.json(f"{day.name}/1.json", {"v": 10})
    landing.run(**schema)
    assert values(landing) == [3, 10]


@pytest.mark.parametrize("how", ["--continue-query", "fork", "startingState"])
def test_a_query_that_continues_another_one_replaces_its_rows_if_they_have_the_key(landing, how):
    landing.json("1.json", {"v": 1})
    landing.run()
    landing.json("1.json", {"v": 10})
    with pytest.raises(OptionError, match="writeFileColumn=file, and rows without"):
        landing.run(**continued(landing, how))
    # A table of its own has no such rows.
    landing.table = landing.data.parent / "own"
    if how != "--continue-query":
        landing.run(**continued(landing, how))
        assert values(landing) == [10]


@pytest.mark.parametrize("how", ["--continue-query", "fork"])
def test_a_fork_knows_the_input_and_the_column_of_files(landing, how, tmp_path):
    first_delivery(landing)
    options = continued(landing, how)
    order = ["requeue", str(landing.checkpoint), "--matching", "*/1.json", "--replace", "--yes"]
    assert main(order) == 0
    (tmp_path / "link").symlink_to(landing.data)
    with pytest.raises(OptionError, match="this query has read another input"):
        landing.run(path=str(tmp_path / "link"), **options)
    landing.json("2.json", {"v": 30})
    landing.run(**options)
    assert values(landing) == [1, 2, 30]


def continued(landing, how):
    """Go on with a new checkpoint; the options of its first start."""
    root = landing.data.parent
    landing.checkpoint = root / f"ck of {landing.table.name}"
    if how == "startingState":
        return {**REPLACING, "startingState": f"{root}/ck/sluice/source@1"}
    more = [how] if how.startswith("--") else []
    assert main(["fork", str(root / "ck"), str(landing.checkpoint), *more, "--yes"]) == 0
    return REPLACING


@pytest.mark.parametrize("policy", ["replace", "reprocess"])
def test_an_order_to_retract_spares_a_version_that_is_delivered_after_it(landing, policy):
    first_delivery(landing)
    assert main(["retract", str(landing.checkpoint), "--matching", "*/1.json", "--yes"]) == 0
    landing.json("1.json", {"v": 10}, {"v": 20})
    for _ in range(2):
        landing.run(**{**REPLACING, "onOverwrite": policy})
        assert values(landing) == [3, 10, 20]


def test_a_table_that_has_lost_the_column_of_files_is_refused(landing):
    first_delivery(landing)
    rows = DeltaTable(str(landing.table)).to_pyarrow_table().drop_columns("file")
    write_deltalake(str(landing.table), rows, mode="overwrite", schema_mode="overwrite")
    landing.json("1.json", {"v": 10})
    with pytest.raises(TableError, match=r"lost the column that names the file.*found v; expected"):
        landing.run(**REPLACING)
    landing.run(writeFileColumn="file")
    assert values(landing) == [1, 2, 3]
    DeltaTable(str(landing.table)).restore(0)
    landing.run(**REPLACING)
    assert values(landing) == [3, 10]
