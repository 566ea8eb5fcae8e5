"""A call with another input or another table than its state: refused, or meant."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pyspark_sluice import DefaultSource
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.connector.query.start_check import USUAL_TERMS, check_start
from pyspark_sluice.errors import SluiceError, TableError
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.connector.host.query import Query

pytestmark = pytest.mark.slow


@pytest.fixture
def query(tmp_path):
    query = Query(tmp_path)
    query.land("0.json", range(10))
    assert query.run_here()[0] == 0
    query.land("1.json", range(10, 20))
    return query


def claims(query):
    return sorted(query.checkpoint.glob("sluice/source/epochs/*"))


def refused(query, word, *more, code=1, **how):
    before = claims(query), query.logged("offsets")
    ended, _, errors = query.run_here(*more, **how)
    assert ended == code
    assert word in errors
    assert (claims(query), query.logged("offsets")) == before


def through_a_link(query):
    link = query.source.parent / "link"
    link.symlink_to(query.source)
    query.source = link


def moved(query):
    query.source = query.source.rename(query.source.parent / "moved")


def linked_parent(query):
    link = query.source.parent.parent / f"{query.source.parent.name}-link"
    link.symlink_to(query.source.parent)
    query.source = link / query.source.name


@pytest.mark.parametrize("change", [through_a_link, moved, linked_parent])
def test_an_input_by_another_name_is_refused_and_can_be_meant(query, change):
    first = query.source
    change(query)
    refused(query, f"found {query.source}", code=2)
    if change is moved:
        # A link where the directory was makes the names what they were.
        first.symlink_to(query.source)
    query.source, other = first, query.source
    assert query.run_here()[0] == 0
    assert query.in_table() == query.landed
    query.source = other
    assert query.run_here("--new-input")[0] == 0
    assert query.in_table() == query.landed + query.landed


@pytest.mark.parametrize("limit", ["all is read", "a file is pending"])
def test_a_fork_that_rewrites_paths_continues_a_moved_input(tmp_path, limit):
    query = Query(tmp_path)
    for name, ids in (("0.json", range(10)), ("1.json", range(10, 20))):
        query.land(name, ids)
    if limit == "all is read":
        assert query.run_here()[0] == 0
    else:
        batches = query.batches(maxFilesPerTrigger="1")
        next(batches)
        batches.close()
    first = query.source
    moved(query)
    query.land("2.json", range(20, 35))
    refused(query, "--rewrite OLD=NEW --continue-query", code=2)
    old, query.checkpoint = query.checkpoint, tmp_path / "ck-2"
    rewrite = ["--rewrite", f"{first}={query.source}", "--continue-query", "--yes"]
    assert main(["fork", str(old), str(query.checkpoint), *rewrite]) == 0
    for _ in range(2):
        assert query.run_here()[0] == 0
        assert query.in_table() == query.landed
    # The new checkpoint knows its input and its table.
    query.source = first
    query.source.mkdir()
    refused(query, "this query has read another input", code=2)


def test_further_paths_and_paths_above_and_below_are_the_same_input(query, tmp_path):
    first, more = query.source, tmp_path / "more"
    more.mkdir()
    (first / "below").mkdir()
    for path in (f"{first},{more}", first / "below", f"{first}/", more / ".." / "in"):
        query.source = path
        assert query.run_here()[0] == 0
    assert query.in_table() == query.landed


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_another_table_is_refused_and_can_be_meant(tmp_path, kind):
    query = Query(tmp_path)
    query.land("0.json", range(10))
    right, wrong = f"{kind}:{query.table}", f"{kind}:{tmp_path}/misspelt"
    assert query.run_here(to=right)[0] == 0
    query.land("1.json", range(10, 20))
    refused(query, "--new-table", to=wrong)
    assert not (tmp_path / "misspelt").exists()
    assert query.run_here(to=right)[0] == 0
    shutil.rmtree(query.table)
    query.land("2.json", range(20, 30))
    refused(query, "found no table", to=right)
    assert query.run_here("--new-table", to=right)[0] == 0
    query.land("3.json", range(30, 40))
    assert main(["rebind", str(query.checkpoint), "--yes"]) == 0
    assert query.run_here(to=wrong)[0] == 0


@pytest.mark.parametrize("change", [lambda _: None, through_a_link], ids=["same", "link"])
def test_a_lost_checkpoint_does_not_double_the_table(query, change, tmp_path):
    query.checkpoint.rename(tmp_path / "lost")
    change(query)
    refused(query, "--append")
    refused(query, "--append")
    # Another input may go into the same table.
    second = Query(tmp_path / "second")
    second.land("a.json", range(100, 110))
    second.table = query.table
    assert second.run_here()[0] == 0
    assert query.in_table() == second.landed + Counter(range(10))
    assert query.run_here("--append")[0] == 0


def test_the_table_itself_says_which_inputs_it_has(query, tmp_path):
    # Not the directory of data files, which may be another one.
    query.checkpoint.rename(tmp_path / "lost")
    refused(query, "--append", "--option", f"writeTo={query.table}/new")
    query.table = query.table.rename(tmp_path / "moved")
    refused(query, "--append")


def test_an_input_of_many_paths_is_known_by_their_directories(tmp_path):
    query = Query(tmp_path)
    folders = [query.source / f"{number:03}" for number in range(120)]
    for folder in folders:
        folder.mkdir()
    query.land("000/0.json", range(10))
    query.source, one = Path(",".join(map(str, folders))), folders[70]
    assert query.run_here()[0] == 0
    shutil.rmtree(query.checkpoint)
    query.source = one
    refused(query, "--append")


def start_in_spark(query):
    """What Spark asks of a source at the start of a query, before it plans a batch."""
    query.checkpoint.mkdir(exist_ok=True)
    (query.checkpoint / "metadata").write_text('{"id":"11111111-2222-3333-4444-555555555555"}')
    source = DefaultSource(query.options(writeTo=str(query.table)))
    schema = source.schema()
    assert not isinstance(schema, str)
    source.streamReader(schema).initialOffset()


def another_table(query):
    query.table = query.table.parent / "other"
    DeltaTable.create(str(query.table), pa.schema([("id", pa.int64())]))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (moved, "another input.*sluice rebind"),
        (another_table, "another table.*sluice rebind"),
        (lambda query: shutil.rmtree(query.table), "found no table.*sluice rebind"),
        (lambda query: shutil.rmtree(query.checkpoint), "another query.*sluice rebind"),
    ],
    ids=["input", "another table", "no table", "lost checkpoint"],
)
def test_a_query_of_spark_is_refused_as_well_and_a_command_says_that_it_is_meant(
    query, change, error
):
    change(query)
    before = claims(query)
    with pytest.raises(SluiceError, match=error):
        start_in_spark(query)
    assert claims(query) == before
    assert main(["rebind", str(query.checkpoint), "--yes"]) == 0
    start_in_spark(query)


def test_a_query_that_a_fork_continues_in_its_table_is_refused_by_both_hosts(query, tmp_path):
    old, fork, table = query.checkpoint, tmp_path / "ck-2", f"delta:{query.table}"
    assert main(["fork", str(old), str(fork), "--yes"]) == 0
    query.checkpoint = fork
    assert query.run_here()[0] == 0
    query.checkpoint = old
    refused(query, f"whose state is {fork}")
    texts = query.options(writeTo=str(query.table))
    with pytest.raises(TableError, match="continued by another one"):
        check_start(texts, DeltaSink(str(query.table), {}), USUAL_TERMS)
    for command in ("add-batches", "remove-batches"):
        assert main([command, str(old), table, "--yes"]) == 5
    at_table = ["--at-table", table, "--yes"]
    assert main(["fork", str(old), str(tmp_path / "ck-3"), *at_table]) == 5
    query.land("2.json", range(20, 30))
    query.checkpoint = fork
    assert query.run_here()[0] == 0
    assert query.in_table() == query.landed
    # For queries that read different files, which these two do not.
    query.checkpoint = old
    assert query.run_here("--new-table")[0] == 0
    query.land("3.json", range(30, 40))
    assert query.run_here()[0] == 0
    assert query.in_table() == query.landed + Counter(range(10, 30))
