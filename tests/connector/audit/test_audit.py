"""`sluice audit`: equal where nothing was done to input and table; each planted difference."""

import hashlib
import json
import time

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pyspark_sluice.checkpoint_meta.index.fingerprints import file_key
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.cli.arguments import find_state
from pyspark_sluice.connector.query.file_rows import UNKNOWN, FileRows, RecordedRows
from pyspark_sluice.connector.views.files import files
from pyspark_sluice.connector.views.splits import splits
from pyspark_sluice.connector.views.state_view import StateView
from pyspark_sluice.enumerator.files.discovery.local.local_tree import LocalTree
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.connector.host.landing import DELETING, Landing
from pyspark_sluice.tests.tables.iceberg_lake import catalog_in

_ROWS = 5
_WAYS = {"keepFileRows": True, "writeFileColumn": "file"}


class Audited(Landing):
    """A query that has read files of five rows each."""

    def __init__(self, root, capsys, to="", files=3, **options):
        super().__init__(root)
        self.to = to or f"delta:{self.table}"
        self.root, self.capsys, self.options = root, capsys, options or _WAYS
        for number in range(files):
            self.file(f"f{number}.json")
        if files:
            self.again()

    def file(self, name, rows=_ROWS):
        self.json(name, *({"id": number, "name": name} for number in range(rows)))

    def again(self):
        self.run(self.to, **self.options)

    def told(self, *arguments, code=0):
        call = ["audit", str(self.checkpoint), "--table", self.to, *arguments]
        self.capsys.readouterr()
        assert main(call) == code
        return self.capsys.readouterr().out

    def answer(self, *arguments, code=0):
        return json.loads(self.told(*arguments, "--json", code=code))

    def differences(self, *arguments):
        found = self.answer(*arguments, code=1)["differences"]
        return {each["what"]: [name.rpartition("/")[2] for name in each["names"]] for each in found}

    def rows_of(self, name, count):
        key = file_key(str(self.data / name))
        return pa.table({"id": [0] * count, "name": ["x"] * count, "file": [key] * count})

    def list(self, text, name="list.csv"):
        (self.root / name).write_text(text)
        return "--expect", str(self.root / name)

    @property
    def delta(self):
        return DeltaTable(str(self.table))


@pytest.fixture
def query(tmp_path, capsys):
    return Audited(tmp_path, capsys)


@pytest.mark.parametrize("options", [_WAYS, {"keepFileRows": True}, {"writeFileColumn": "file"}])
def test_a_query_to_which_nothing_was_done_is_equal(tmp_path, capsys, options):
    query = Audited(tmp_path, capsys, **options)
    query.file("f3.json")
    lists = query.list("name,rows\n" + "".join(f"f{n}.json,{_ROWS}\n" for n in range(4)))
    answer = query.answer("--recount", *lists)
    in_table = 3 if "writeFileColumn" in options else None
    assert list(answer["files"].values()) == [4, 4, 3, 0, 0, 1, in_table]
    assert answer["rows"]["table"] == answer["rows"]["data_files"] == 3 * _ROWS
    assert (answer["rows"]["declared"], answer["rows"]["found"]) == (4 * _ROWS, 4 * _ROWS)
    (directory,) = answer["directories"]
    assert directory["files"] == answer["files"]


@pytest.mark.parametrize("kind", ["iceberg", "parquet"])
def test_tables_of_other_kinds_are_counted_by_the_same_column(tmp_path, capsys, monkeypatch, kind):
    to = f"parquet:{tmp_path}/table"
    if kind == "iceberg":
        catalog, to = catalog_in(tmp_path, monkeypatch), "iceberg:lake.db.orders"
    query = Audited(tmp_path, capsys, to, **_WAYS)
    assert query.answer()["files"]["table"] == 3
    if kind == "iceberg":
        catalog.load_table("db.orders").delete("name = 'f1.json' AND id > 2")
        assert query.differences() == {"rows in the table differ": ["f1.json"]}


def test_people_are_told_the_same_as_programs(query):
    told = query.told()
    assert told.splitlines()[-1] == "equal"
    assert [line.split() for line in told.splitlines()[1:3]] == [
        ["files", "3", "3", "3", "0", "0", "0", "3"],
        ["rows", "-", "-", "15", "0", "0", "-", "15"],
    ]


def test_a_declared_file_that_never_came_and_one_that_nobody_declared_are_named(query):
    lists = query.list("name\nf0.json\nf1.json\nlost.json\n")
    found = query.differences(*lists)
    assert found == {"declared, not found": ["lost.json"], "found, not declared": ["f2.json"]}
    assert set(query.differences("--partial", *lists)) == {"declared, not found"}


def test_other_rows_than_declared_are_named(query):
    lists = query.list('{"name": "f1.json", "rows": 6}\n', "list.jsonl")
    found = query.differences("--partial", *lists)
    whats = ("rows read differ from those delivered", "rows in the table differ")
    assert found == {what: ["f1.json"] for what in whats}


def test_files_that_are_not_what_the_sender_has_summed_are_named(query):
    digest = hashlib.md5((query.data / "f0.json").read_bytes(), usedforsecurity=False).hexdigest()
    lines = f"{digest}  in/f0.json\n{'0' * 32}  in/f1.json\n"
    lists = query.list(lines, "sums.md5")
    assert query.differences("--partial", *lists) == {"content differs from the list": ["f1.json"]}


def test_a_checksum_of_a_file_that_is_gone_is_unverified(query):
    lists = query.list(f"{'0' * 32}  in/f0.json\n", "sums.md5")
    (query.data / "f0.json").unlink()
    (difference,) = query.answer("--partial", *lists, code=1)["differences"]
    assert difference["unverified"]


def test_a_data_file_that_was_removed_is_named(query):
    gone = next(query.table.glob("*.parquet"))
    gone.unlink()
    assert query.differences() == {"data files that the table names are gone": [gone.name]}


def test_rows_that_an_engine_has_deleted_are_named(query):
    query.delta.delete("name = 'f1.json' AND id > 2")
    assert query.differences() == {"rows in the table differ": ["f1.json"]}


def test_a_batch_that_was_taken_back_by_restore_is_named(query):
    version = query.delta.version()
    query.file("late.json")
    query.again()
    query.delta.restore(version)
    assert query.differences() == {"rows in the table differ": ["late.json"]}


def test_a_file_that_was_read_twice_by_hand_is_named(query):
    order = ["requeue", str(query.checkpoint), "--matching", "*f1.json", "--in-state", "read"]
    assert main([*order, "--yes", "--force"]) == 0
    query.again()
    what = "rows of files that an order let read again beside their earlier rows"
    assert query.differences() == {what: ["f1.json"]}
    found = query.differences("--recount")
    assert found["rows in the table differ"] == ["f1.json"]


def test_a_file_that_was_replaced_and_one_whose_rows_were_taken_back_are_equal(query):
    query.file("f0.json", rows=2)
    query.options = {**query.options, "onOverwrite": "replace"}
    query.again()
    assert main(["retract", str(query.checkpoint), "--matching", "*f1*", "--yes", "--force"]) == 0
    query.again()
    answer = query.answer("--recount")
    assert answer["rows"]["table"] == _ROWS + 2
    assert list(answer["files"].values()) == [3, 3, 2, 0, 1, 0, 2]


def test_rows_of_a_file_that_came_back_after_its_retraction_are_compared(query):
    assert main(["retract", str(query.checkpoint), "--matching", "*f1*", "--yes", "--force"]) == 0
    query.again()
    write_deltalake(query.delta, query.rows_of("f1.json", 1), mode="append")
    assert query.differences() == {"in the table, though retracted": ["f1.json"]}
    order = ["requeue", str(query.checkpoint), "--matching", "*f1*", "--replace"]
    assert main([*order, "--yes", "--force"]) == 0
    query.again()
    answer = query.answer()
    assert (answer["files"]["read"], answer["files"]["skipped"]) == (3, 0)
    query.delta.delete("id = 4 AND name = 'f1.json'")
    assert query.differences() == {"rows in the table differ": ["f1.json"]}


@pytest.mark.parametrize("place", ["in", "memory://retracted"])
def test_a_file_whose_rows_were_taken_back_and_that_is_there_is_skipped(tmp_path, capsys, place):
    query = Landing(tmp_path)
    path = place if "://" in place else str(tmp_path / place)
    for name in ("f0.json", "f1.json"):
        with fsspec.open(f"{path}/{name}", "w") as file:
            file.write('{"id": 1}\n')
    to, options = f"delta:{query.table}", {"path": path, **_WAYS}
    query.run(to, **options)
    state = str(query.checkpoint)
    assert main(["retract", state, "--matching", "*f1*", "--yes", "--force"]) == 0
    query.run(to, **options)
    capsys.readouterr()
    assert main(["audit", state, "--table", to, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["files"]
    assert (counts["found"], counts["read"], counts["skipped"]) == (2, 1, 1)


def test_a_version_that_replaces_one_in_quarantine_is_read(tmp_path, capsys):
    query = Audited(tmp_path, capsys, **_WAYS, onOverwrite="replace", onSplitError="return")
    (query.data / "f0.json").write_text('{"id": \n')
    query.again()
    assert query.answer()["files"]["rejected"] == 1
    query.file("f0.json", rows=2)
    query.again()
    answer = query.answer()
    assert (answer["files"]["read"], answer["files"]["rejected"]) == (3, 0)


def test_rows_whose_number_a_transform_has_changed_are_unverified(tmp_path, capsys):
    schema, columns = "id LONG, name STRING, file STRING", {"writeSchema": "id LONG, name STRING"}
    transform = {"writeTransform": f"{__name__}:without_one", "writeTransformSchema": schema}
    query = Audited(tmp_path, capsys, **_WAYS, **columns, **transform)
    what = "rows of single files: writeTransform has changed how many there are"
    assert sorted(query.differences("--recount")[what]) == ["f0.json", "f1.json", "f2.json"]
    (tmp_path / "alone").mkdir()
    transform["writeTransformSchema"] = "id LONG, name STRING"
    query = Audited(tmp_path / "alone", capsys, keepFileRows=True, **columns, **transform)
    assert [*query.differences()] == [
        "rows of the table: writeTransform has changed how many there are"
    ]


def without_one(rows):
    return rows.filter(pc.not_equal(rows["id"], 1))


def test_a_fork_counts_the_rows_of_the_query_that_it_continues(query):
    old, query.checkpoint = query.checkpoint, query.root / "ck-2"
    assert main(["fork", str(old), str(query.checkpoint), "--continue-query", "--yes"]) == 0
    assert query.answer("--recount")["equal"]
    query.options = {**_WAYS, "keepFileRows": False}
    query.file("later.json")
    query.again()
    answer = query.answer("--recount")
    assert answer["rows"]["data_files"] == answer["rows"]["table"] == 4 * _ROWS


@pytest.mark.slow
def test_files_that_were_gone_before_a_fork_are_retracted_and_not_read(tmp_path, capsys):
    query = Audited(tmp_path, capsys, **DELETING)
    for name in ("f0.json", "f1.json"):
        (query.data / name).unlink()
    query.again()
    time.sleep(1.1)
    query.again()
    query.file("f0.json")
    query.again()
    old, query.checkpoint = query.checkpoint, tmp_path / "ck-2"
    assert main(["fork", str(old), str(query.checkpoint), "--continue-query", "--yes"]) == 0
    query.again()
    assert list(query.answer("--recount")["files"].values()) == [2, 2, 2, 0, 0, 0, 2]
    seen = files(StateView(find_state(str(query.checkpoint), "source", "{}")), "*f1*")
    assert seen["state"].to_pylist() == ["done", "retracted"]


def test_rows_of_a_file_that_the_query_does_not_know_are_named(query):
    query.file("new.json")
    for path in ("new.json", "/elsewhere/by/another/query.json"):
        write_deltalake(query.delta, query.rows_of(path, 1), mode="append")
    of_no_file = query.rows_of("f0.json", 2).set_column(2, "file", pa.nulls(2, pa.string()))
    write_deltalake(query.delta, of_no_file, mode="append")
    assert query.differences() == {"in the table, though not read": ["new.json"]}
    assert query.answer(code=1)["rows"]["others"] == 3
    assert "\nrows of no file that is known: 3\n" in query.told(code=1)


@pytest.mark.parametrize("key", ["z" * 32, "ä" * 16, "ä" * 32, "F" * 33, "", "0" * 31 + "."])
def test_rows_of_others_may_have_any_text_in_the_column_of_files(query, key):
    rows = query.rows_of("f0.json", 2).set_column(2, "file", [[key, key]])
    write_deltalake(query.delta, rows, mode="append")
    answer = query.answer()
    assert (answer["rows"]["others"], answer["rows"]["table"]) == (2, 3 * _ROWS)


def test_a_row_that_the_table_has_twice_is_named(query):
    write_deltalake(query.delta, query.rows_of("f1.json", 1), mode="append")
    assert query.differences() == {"rows in the table differ": ["f1.json"]}


def test_rows_that_are_older_than_the_column_of_files_are_of_no_file(tmp_path, capsys):
    write_deltalake(tmp_path / "table", pa.table({"id": [0], "name": ["x"]}))
    query = Audited(tmp_path, capsys, **_WAYS)
    assert query.answer()["rows"]["others"] == 1


def test_a_file_that_is_gone_counts_in_its_directory(query):
    (query.data / "old").mkdir()
    query.file("old/1.json")
    query.again()
    (query.data / "old/1.json").unlink()
    (query.data / "f0.json").unlink()
    directories = query.answer()["directories"]
    counts = {d["directory"]: d["files"]["table"] for d in directories}
    assert counts == {str(query.data): 3, f"{query.data}/old": 1}


def test_one_pass_over_the_input_suffices_where_the_state_knows_all_of_it(query, monkeypatch):
    passes, listed = [], LocalTree.list_files

    def list_files(*arguments):
        passes.append(arguments)
        return listed(*arguments)

    monkeypatch.setattr(LocalTree, "list_files", list_files)
    # What has changed since is known, too.
    query.file("f2.json", rows=9)
    assert query.answer()["differences"] == []
    assert len(passes) == 1


def test_a_file_that_grew_after_it_was_read_is_named(query):
    query.file("f2.json", rows=9)
    found = query.differences("--recount")
    assert found["rows read differ from those delivered"] == ["f2.json"]


def test_records_that_were_dropped_are_rejected_rows(tmp_path, capsys):
    query = Audited(
        tmp_path, capsys, **_WAYS, mode="DROPMALFORMED", writeSchema="id LONG, name STRING"
    )
    (query.data / "bad.json").write_text('{"id": 1, "name": "a"}\n{"id": }\n')
    query.again()
    answer = query.answer("--recount")
    assert answer["rows"]["rejected"] == 1
    assert answer["rows"]["read"] == answer["rows"]["table"] == 3 * _ROWS + 1


def _delivered(query, number, kind):
    """Ten rows in two row groups, of which the filter `id >= 7` keeps three."""
    place = query.data / f"{number}.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"id": range(10), "name": ["a"] * 10}), place, row_group_size=5)
    elif kind == "csv":
        place.write_text("".join(f"{at},a\n" for at in range(10)))
    else:
        query.json(place.name, *({"id": at, "name": "a"} for at in range(10)))


@pytest.mark.parametrize("most", ["", "1", "4"])
@pytest.mark.parametrize("wanted", ["id >= 7", "id < 3"])
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_rows_that_the_filter_drops_are_skipped_rows(tmp_path, capsys, kind, wanted, most):
    limit = {"maxRowsPerTrigger": most} if most else {}
    schema = {"fileFormat": kind, "writeSchema": "id LONG, name STRING"}
    query = Audited(tmp_path, capsys, files=0, **_WAYS, **schema, **limit, filter=wanted)
    for number in range(2):
        _delivered(query, number, kind)
    query.again()
    lists = query.list(f"name,rows\n0.{kind},10\n1.{kind},10\n")
    rows = query.answer("--recount", *lists)["rows"]
    assert (rows["declared"], rows["found"], rows["read"], rows["skipped"]) == (20, 20, 6, 14)
    query.list(f"name,rows\n0.{kind},10\n1.{kind},11\n")
    found = query.differences(*lists)
    assert set(found.popitem()[1]) == {f"1.{kind}"}


def test_rows_of_a_file_that_the_filter_leaves_unopened_are_not_known(tmp_path, capsys):
    options = {**_WAYS, "writeSchema": "id LONG, name STRING, day INT", "filter": "day > 1"}
    query = Audited(tmp_path, capsys, **{**options, "filter": ""})
    for day in (1, 2):
        (query.data / f"day={day}").mkdir()
        query.file(f"day={day}/1.json")
    query.options = options
    query.again()
    rows = query.answer("--recount")["rows"]
    assert (rows["read"], rows["skipped"], rows["table"]) == (4 * _ROWS, None, 4 * _ROWS)


def test_what_options_leave_out_is_skipped(query):
    query.json("note.txt", {"id": 1})
    answer = query.answer("--option", "pathGlobFilter=*.json")
    assert (answer["files"]["found"], answer["files"]["skipped"]) == (4, 1)


def test_a_file_that_is_left_out_need_not_be_counted_by_another_reader(query):
    # Of an empty file, the content may come yet.
    query.json("empty.json")
    query.again()
    answer = query.answer("--recount")
    assert (answer["files"]["skipped"], answer["rows"]["found"]) == (1, 3 * _ROWS)


def test_a_state_that_has_begun_does_not_change_its_mind(query):
    changed = {**query.options, "keepFileRows": False}
    query.refused("keepFileRows cannot change", error=OptionError, **changed)


@pytest.mark.slow
@pytest.mark.effect_of("keepFileRows")
def test_rows_of_files_are_kept_beyond_the_retention_of_checkpoints(query):
    for number in range(230):
        query.file(f"more{number}.json", rows=number % 3 + 1)
    query.options["maxFilesPerTrigger"] = 1
    query.again()
    rows = RecordedRows(find_state(str(query.checkpoint), "source", "{}"))
    assert rows.newest.checkpoint >= 50
    assert query.answer()["equal"]


def test_rows_of_a_file_that_is_read_in_parts_count_once_each(query):
    query.file("long.json", rows=7)
    query.options = {**query.options, "maxRowsPerTrigger": 2}
    query.again()
    answer = query.answer()
    assert answer["rows"]["read"] == answer["rows"]["table"] == 3 * _ROWS + 7


def test_views_have_the_rows_of_all_parts_of_a_file(query):
    query.file("long.json", rows=7)
    query.file("short.json", rows=1)
    query.options = {**query.options, "maxRowsPerTrigger": 2}
    query.again()
    view = StateView(find_state(str(query.checkpoint), "source", "{}"))
    rows = {row["path"].rpartition("/")[2]: row["rows"] for row in files(view).to_pylist()}
    assert (rows["long.json"], rows["short.json"], rows["f0.json"]) == (7, 1, _ROWS)
    parts = [row for table in splits(view) for row in table.to_pylist()]
    long = [part["rows"] for part in parts if part["path"].endswith("long.json")]
    assert (sum(long), max(long)) == (7, 2)


@pytest.mark.thorough("230 batches; the test of whole files has as many")
def test_parts_of_a_file_count_beyond_the_retention_of_the_checkpoints_that_began_them(query):
    query.file("long.json", rows=230)
    query.options = {**query.options, "maxRowsPerTrigger": 1}
    query.again()
    assert RecordedRows(find_state(str(query.checkpoint), "source", "{}")).newest.checkpoint >= 50
    assert query.answer()["equal"]


def test_sums_count_from_the_newest_replacement_on():
    def part(*rows):
        columns = (pa.array(column).to_numpy() for column in zip(*rows, strict=True))
        return FileRows(*columns)

    old = FileRows.sums([part((7, 5, 1, 3, 0), (8, 2, 0, -1, 0)), part((8, 0, 0, 5, 0))])
    new = FileRows.sums([old, part((7, 3, 0, 1, 1)), part((7, 4, 0, 1, 0))])
    columns = new.key, new.good, new.bad, new.filtered
    assert [column.tolist() for column in columns] == [[7, 8], [7, 2], [0, 0], [2, UNKNOWN]]
    again = FileRows.from_bytes(new.to_bytes())
    assert again.replaces.tolist() == [1, 0]


def test_the_view_of_files_has_the_rows_and_the_key_by_which_sql_compares_them(query):
    view = files(StateView(find_state(str(query.checkpoint), "source", "{}")))
    by_key = {row["key"]: row["all_rows"] for row in view.to_pylist()}
    in_table = query.delta.to_pyarrow_table().column("file").value_counts()
    assert by_key == {each["values"]: each["counts"] for each in in_table.to_pylist()}


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ('id;text\n1;"a;b"\n2;c\n', {"fileFormat": "csv", "header": "true", "sep": ";"}),
        ("one\ntwo\n\n", {"fileFormat": "text", "writeSchema": "value STRING"}),
        (pa.table({"id": [1, 2]}), {"fileFormat": "parquet"}),
    ],
)
def test_a_second_reader_counts_the_rows_of_each_format(tmp_path, capsys, written, options):
    query = Audited(tmp_path, capsys, files=0, **_WAYS, **options)
    # As a pattern, the last name matches the others, too.
    for name in ("a[1].data", "b.data", "*.data"):
        if isinstance(written, pa.Table):
            pq.write_table(written, str(query.data / name))
        else:
            (query.data / name).write_text(written)
    query.again()
    answer = query.answer("--recount")
    assert answer["rows"]["found"] == answer["rows"]["table"]
