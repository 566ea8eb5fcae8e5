"""Remedies in several steps: an error, what its text says, and right rows at the end."""

import re
import resource
import subprocess
import sys
from random import Random

import pytest
from deltalake import DeltaTable

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.host.call import Call

pytestmark = pytest.mark.slow


def csv(query, *arguments, schema=""):
    call = Call(query, "--option", "header=true", *arguments, fmt="csv", schema=schema)
    call.put("1.csv", "ts,device\n1,a\n")
    call.run()
    return call


@pytest.mark.parametrize("way", ["put back", "waive", "ignoreMissingFiles"])
def test_a_file_that_is_deleted_after_a_failed_batch(query, way):
    call = csv(query)
    call.put("2.csv", "ts;device\n2;b\n")
    call.run(code=1)
    (query.source / "2.csv").unlink()
    call.put("3.csv", "ts,device\n3,c\n")
    call.run(code=1, says=["FileVanishedError", "Put it back", "ignoreMissingFiles=true"])
    message = call.run(code=1, apart=True)
    if way == "put back":
        call.put("2.csv", "ts,device\n2,b\n")
    elif way == "waive":
        call.command(message, "waive")
    call.run(*(["ignoreMissingFiles=true"] if way == "ignoreMissingFiles" else []))
    assert call.rows() == [(1, "a"), *([(2, "b")] if way == "put back" else []), (3, "c")]


@pytest.mark.parametrize(
    ("option", "rows"),
    [
        ("badRecordsPath={home}/bad", [(1,), (3,)]),
        ("onSplitError=return", [(1,)]),
        ("mode=PERMISSIVE", [(1,), (3,), (None,)]),
        ("mode=DROPMALFORMED", [(1,), (3,)]),
    ],
)
def test_a_value_that_does_not_fit_the_type_of_its_column(query, option, rows):
    call = Call(query)
    call.put("1.json", '{"n": 1}\n')
    call.run()
    call.put("2.json", '{"n": "x"}\n{"n": 3}\n')
    name, _, value = option.partition("=")
    call.run(code=1, says=[name, value.removeprefix("{home}/bad"), "schemaHints='n string'"])
    home = query.source.parent
    call.run(option.format(home=home), "maxSplitAttempts=1", apart=True)
    # PERMISSIVE also keeps the record, in a column of its own.
    assert [row[:1] for row in call.rows()] == rows
    if name == "onSplitError":
        # Put aside, and read later.
        call.put("2.json", '{"n": 2}\n{"n": 3}\n')
        assert main(["requeue", str(query.checkpoint), "--quarantined", "--yes"]) == 0
        call.run()
        assert call.rows() == [(1,), (2,), (3,)]
    if name == "badRecordsPath":
        assert [path for path in (home / "bad").rglob("*") if path.is_file()]


def test_the_hint_of_a_misfit_reads_the_value_where_no_table_has_the_column(query):
    call = Call(query)
    call.put("1.json", '{"n": "1.5", "id": 1}\n')
    message = call.run("writeSchema=n long, id long", "mode=FAILFAST", code=1)
    assert "schemaHints='n string'" in message
    call.run("schemaHints=n string")
    assert call.rows() == [("1.5", 1)] or call.rows() == [(1, "1.5")]


def test_doubled_quotes_without_a_separator_are_kept_as_in_spark_with_one_warning(query, caplog):
    call = Call(query, "--option", "header=true", fmt="csv")
    call.put("1.csv", 'id,text\n1,"a ""b"" c"\n2,"a ""b"" c"\n3,""\n')
    call.run()
    assert call.rows() == [(1, '"a ""b"" c"'), (2, '"a ""b"" c"'), (3, None)]
    (record,) = caplog.records
    assert 'set escape="' in record.getMessage()
    call.put("2.csv", 'id,text\n4,"a ""b"" c"\n')
    call.run('escape="')
    assert call.rows()[-1] == (4, 'a "b" c')
    assert len(caplog.records) == 1


def test_a_separator_that_fits_is_named_where_the_file_is_the_first_or_has_no_header(query, caplog):
    call = Call(query, "--option", "header=true", fmt="csv")
    call.put("1.csv", "a;b\n1;2\n")
    assert main(["run", *query._arguments("", "")[1:], *call.arguments, "--dry-run"]) == 0
    (record,) = caplog.records
    assert "set sep=';'" in record.getMessage()
    call = Call(query, fmt="csv", schema="a long, b long")
    call.put("1.csv", "1|2\n")
    call.run(code=1, says=["1 fields where 2 are expected, as with sep='|'"])
    call.run("sep=|")
    assert call.rows() == [(1, 2)]


def test_doubled_quotes_are_read_with_the_escape_that_the_message_names(query):
    call = Call(query, "--option", "header=true", fmt="csv")
    call.put("1.csv", 'id,text\n1,"a ""b"", c"\n')
    message = call.run(code=1, says=["quotes are doubled: set escape="])
    (character,) = re.findall(r"set escape=(.)", message)
    call.run(f"escape={character}")
    assert call.rows() == [(1, 'a "b", c')]


@pytest.mark.parametrize("choice", ["reprocess", "ignore"])
def test_a_file_that_changes_although_none_may(query, choice):
    call = Call(query, schema="id long")
    call.put("1.json", '{"id": 1}\n')
    call.run("onOverwrite=fail")
    call.put("1.json", '{"id": 1}\n{"id": 2}\n')
    call.run("onOverwrite=fail", code=1, says=["set onOverwrite to ", choice])
    call.run(f"onOverwrite={choice}")
    assert call.rows() == ([(1,), (1,), (2,)] if choice == "reprocess" else [(1,)])


@pytest.mark.parametrize("mode", ["addNewColumns", "rescue", "none"])
def test_a_new_column_where_none_may_be_added(query, mode):
    call = Call(query)
    call.put("1.json", '{"id": 1}\n')
    call.run("schemaEvolutionMode=failOnNewColumns")
    call.put("2.json", '{"id": 2, "x": 5}\n')
    call.run("schemaEvolutionMode=failOnNewColumns", code=1, says=["schemaEvolutionMode", mode])
    call.run(f"schemaEvolutionMode={mode}")
    assert [row[0] for row in call.rows()] == [1, 2]
    assert ("x" in str(DeltaTable(str(query.table)).schema())) == (mode == "addNewColumns")


def test_an_offset_that_is_empty_is_named_by_verify_and_put_back_from_a_copy(query, capsys):
    call = Call(query, schema="id long")
    for number in range(2):
        call.put(f"{number}.json", f'{{"id": {number}}}\n')
        call.run()
    offset = query.checkpoint / "offsets" / "1"
    copy = offset.read_bytes()
    for damage in (b"", b"\0" * len(copy)):
        offset.write_bytes(damage)
        assert main(["verify", str(query.checkpoint)]) == 1
        assert "offsets/1" in capsys.readouterr().out
        call.run(code=1, says=["offsets/1", "put it back from a copy"])
    offset.write_bytes(copy)
    assert main(["verify", str(query.checkpoint)]) == 0
    call.put("2.json", '{"id": 2}\n')
    call.run()
    assert call.rows() == [(0,), (1,), (2,)]


def test_a_limit_on_the_size_of_files_names_the_file_and_the_limit(query):
    random = Random(1)
    noise = [random.randbytes(30).hex() for _ in range(5_000)]
    lines = "".join(f'{{"id": {number}, "text": "{text}"}}\n' for number, text in enumerate(noise))
    (query.source / "0.json").write_text(lines)
    query.landed.update(range(5_000))
    low, high = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, high))

    start = [sys.executable, "-m", "pyspark_sluice", *query._arguments("", "")]
    done = subprocess.run(start, preexec_fn=limit, capture_output=True, text=True, check=False)
    assert (done.returncode, "(EFBIG)" in done.stderr) == (1, True)
    assert "ulimit -f" in done.stderr
    assert str(query.source.parent) in done.stderr
    assert low == resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    assert query.run_here(schema="")[0] == 0
    assert query.in_table() == query.landed


@pytest.fixture
def store(server, monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": server.url,
    }.items():
        monkeypatch.setenv(name, value)
    yield server
    server.fault = None


def test_a_bucket_that_is_gone_is_what_is_missing(query, store):
    call = Call(query)
    query.source = "s3://no-such-lake/in"
    message = call.run(code=1, says=["the bucket of the path does not exist", "create the bucket"])
    assert "NoSuchBucket: " in message


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken"])
def test_keys_that_have_expired_are_refused_without_retries(query, store, code):
    store.fault = store.refuse("400 Bad Request", code)
    call = Call(query)
    query.checkpoint = "s3://lake/checkpoint"
    message = call.run(code=1, says=[f"400 ({code}: ", "Repair access"])
    assert "times in a row" not in message
