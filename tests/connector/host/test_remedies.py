"""Remedies that work: an error is met, what its text says is done, and the rows are right.

`met` has the places in the code that made these errors. The last test compares them with all places
that make one: those without a test of their remedy are listed by module, with the reason.
"""

from __future__ import annotations

import ast
import http.server
import re
import resource
import shlex
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from deltalake import DeltaTable

from pyspark_sluice import errors
from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow

MET: set[tuple[str, int]] = set()
"""Modules and lines that have made an error in a test of this module."""


@pytest.fixture
def query(tmp_path, monkeypatch):
    init = errors.SluiceError.__init__

    def noted(self, *parts):
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.endswith("errors.py"):
            frame = frame.f_back
        assert frame is not None
        MET.add((str(Path(frame.f_code.co_filename).resolve()), frame.f_lineno))
        init(self, *parts)

    monkeypatch.setattr(errors.SluiceError, "__init__", noted)
    return Query(tmp_path)


class Call:
    """The same call again and again, with options that are added to it."""

    def __init__(self, query, *arguments, fmt="json", schema=""):
        self.query, self.arguments, self.schema = query, ["--format", fmt, *arguments], schema

    def run(self, *options, code=0, says=(), apart=False):
        """Run; the message has all of `says`, which are parts of the remedy that is tried next.

        Before a command that needs a stopped query, the run has to be `apart` from this process.
        """
        flags = [flag for option in options for flag in ("--option", option)]
        run = self.query.run if apart else self.query.run_here
        answer, _, message = run(*self.arguments, *flags, schema=self.schema)
        assert answer == code, message
        assert [part for part in says if part not in message] == []
        return message

    def put(self, name, text):
        self.query.source.mkdir(exist_ok=True)
        (self.query.source / name).write_text(text)

    def rows(self):
        table = DeltaTable(str(self.query.table)).to_pyarrow_table()
        return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)

    def command(self, message, verb):
        """Run the command that a message names, as it is printed."""
        (line,) = set(re.findall(rf"`sluice ({verb} [^`]*)`", message))
        assert main(shlex.split(line)) == 0


def csv(query, *arguments, schema=""):
    call = Call(query, "--option", "header=true", *arguments, fmt="csv", schema=schema)
    call.put("1.csv", "ts,device\n1,a\n")
    call.run()
    return call


def test_a_file_of_another_separator_is_removed_or_replaced(query):
    call = csv(query)
    call.put("2.csv", "ts;device\n2;b\n")
    call.run(code=1, says=["sep=';'", "sluice waive", "repaired file of the same name"])
    call.put("2.csv", "ts,device\n2,b\n")
    call.run()
    assert call.rows() == [(1, "a"), (2, "b")]
    call.put("3.csv", "ts;device\n3;c\n")
    message = call.run(code=1, apart=True)
    (query.source / "3.csv").unlink()
    call.command(message, "waive")
    call.put("4.csv", "ts,device\n4,d\n")
    call.run()
    assert call.rows() == [(1, "a"), (2, "b"), (4, "d")]


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


def test_doubled_quotes_are_read_with_the_escape_that_the_message_names(query):
    call = Call(query, "--option", "header=true", fmt="csv")
    call.put("1.csv", 'id,text\n1,"a ""b"", c"\n')
    message = call.run(code=1, says=["quotes are doubled: set escape="])
    (character,) = re.findall(r"set escape=(.)", message)
    call.run(f"escape={character}")
    assert call.rows() == [(1, 'a "b", c')]


@pytest.mark.parametrize("option", ["", "failOnMissingPath=false"])
def test_a_path_that_does_not_exist_is_created_or_waited_for(query, option):
    call = Call(query, schema="id long")
    query.source.rmdir()
    call.run(code=1, says=["Create it", "failOnMissingPath=false"])
    if option:
        call.run(option)
    call.put("1.json", '{"id": 1}\n')
    call.run()
    assert call.rows() == [(1,)]


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


def test_options_are_corrected_as_the_message_says(query):
    call = Call(query)
    call.put("1.json", '{"id": 1}\n')
    call.run("maxFilesPerTriger=1", code=2, says=["maxFilesPerTrigger"])
    call.run("maxFilesPerTrigger=1")
    call.schema = "id lng"
    assert "writeSchema" not in call.run(code=2, says=["--schema"])
    call.schema = "id long"
    call.run()
    assert call.rows() == [(1,)]


def test_requeue_names_the_flag_that_finds_times_in_paths(query, capsys):
    call = Call(query, "--option", "recursiveFileLookup=true")
    folder = query.source / "2026-11-27"
    folder.mkdir()
    (folder / "a.json").write_text('{"id": 1}\n')
    call.run(apart=True)
    order = ["requeue", str(query.checkpoint), "--event-time", "2026-11-26..2026-11-29", "--yes"]
    assert main(order) == 2
    (pattern,) = re.findall(r"--event-time-pattern '(\S+)'", capsys.readouterr().err)
    assert main([*order, "--event-time-pattern", pattern]) == 0
    call.run()
    assert call.rows() == [(1,), (1,)]


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


class _Store(http.server.BaseHTTPRequestHandler):
    """A store that gives one answer to every request."""

    protocol_version = "HTTP/1.1"
    answer = (404, "NoSuchBucket", "The specified bucket does not exist")

    def log_message(self, *_):
        pass

    def _respond(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, code, text = self.answer
        body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", "0" if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body.encode())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _respond  # noqa: N815


@pytest.fixture
def store(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
    }.items():
        monkeypatch.setenv(name, value)
    yield _Store
    server.shutdown()


def test_a_bucket_that_is_gone_is_what_is_missing(query, store, monkeypatch):
    monkeypatch.setattr(store, "answer", (404, "NoSuchBucket", "No such bucket"))
    call = Call(query)
    query.source = "s3://no-such-lake/in"
    message = call.run(code=1, says=["the bucket of the path does not exist", "create the bucket"])
    assert "NoSuchBucket: No such bucket" in message


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken"])
def test_keys_that_have_expired_are_refused_without_retries(query, store, monkeypatch, code):
    monkeypatch.setattr(store, "answer", (400, code, "The token is old"))
    call = Call(query)
    query.checkpoint = "s3://lake/checkpoint"
    message = call.run(code=1, says=[f"400 ({code}: The token is old)", "Repair access"])
    assert "times in a row" not in message


_NAMES = {name for name in errors.__all__ if name.endswith(("Error", "Unavailable"))}

ELSEWHERE = {
    "tables/": "test_refusals.py and tests/tables follow what tables advise",
    "connector/cli/": "commands: their tests meet the error, and the corrected call is theirs, too",
    "connector/options/": "wrong calls: test_validation.py has each with the call that is right",
    "connector/": "wrong calls, and faults of the host: their tests meet the error alone",
    "checkpoint_meta/": "damage: test_verify.py and tests/protocol restore from copies and bases",
    "enumerator/": "faults of the protocol and of stores: the simulator goes on after them",
    "reader/files/": "data that does not fit: tests of formats meet each next to data that does",
    "reader/": "repeated attempts: tests/reader/test_task.py goes on after them",
    "errors.py": "builds errors for others",
}
"""Places whose remedy no test of this module follows, by the beginning of their module."""


def test_each_place_that_makes_an_error_is_met_here_or_listed():
    places = {
        (path.relative_to(ROOT).as_posix(), node.lineno, node.end_lineno or 0)
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0]
        in ("errors.py", "connector", "enumerator", "reader", "checkpoint_meta", "tables")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _NAMES
    }
    lines = {(Path(name).relative_to(ROOT).as_posix(), line) for name, line in MET}
    met = {(n, a, b) for n, a, b in places for m, line in lines if m == n and a <= line <= b}
    rest = Counter(
        next((start for start in ELSEWHERE if module.startswith(start)), module)
        for module, *_ in places - met
    )
    print(f"{len(places)} places make an error; {len(met)} are met here; {dict(rest)}")
    assert set(rest) <= set(ELSEWHERE)
    # Fewer only if single tests of this module run.
    if len(MET) > 8:
        assert len(met) >= 9
