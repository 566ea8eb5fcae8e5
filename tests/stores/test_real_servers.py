"""Ten scenarios, and the contract of storage, on real servers: `make stores`.

A server that lets several writers create one object is refused at the start, which is right.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pyspark_sluice import run
from pyspark_sluice.checkpoint_meta.storage.contract import PART
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store, race
from pyspark_sluice.errors import StateError
from pyspark_sluice.tests.checkpoint_meta.storage.storage_suite import StorageSuite
from pyspark_sluice.tests.connector.host.query import keywords
from pyspark_sluice.tests.stores.servers import KINDS, RealServer

pytestmark = [
    pytest.mark.thorough("servers of other projects, which Go and Maven build"),
    pytest.mark.skipif(
        "STORES" not in os.environ, reason="`make stores` builds servers of other projects"
    ),
]

LIMITS = {
    "test_stretches_of_a_flat_listing_are_exact": (
        ("MinIO", "versitygw", "s3proxy"), "keys are paths: an object has no keys below it",
    ),
    "test_what_was_replaced_after_a_look_is_neither_deleted_nor_moved": (
        ("MinIO", "gofakes3"), "If-Match of a deletion is ignored",
    ),
    "test_an_object_that_is_replaced_after_a_look_is_neither_read_as_old_nor_deleted": (
        ("MinIO", "gofakes3"), "If-Match of a deletion is ignored",
    ),
}  # fmt: skip
"""Test -> the servers that cannot pass it, and why; docs/buckets.md says so."""

CHOSEN = [name for name in KINDS if os.environ.get("STORES", "all") in ("all", name)]


@pytest.fixture(scope="module", params=CHOSEN)
def real(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[RealServer]:
    server = RealServer(request.param, tmp_path_factory.mktemp("store"))
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _within_its_limits(request, real):
    servers, reason = LIMITS.get(request.node.originalname, ((), ""))
    if real.name in servers:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def kept(real):
    """Why this server cannot hold state, empty if it can."""
    name = _bucket(real)
    try:
        race(open_store(f"s3://{name}/race", real.options), 8)
    except (AssertionError, StateError) as error:
        return str(error).splitlines()[0][:120]
    return ""


def _bucket(real):
    name = f"lake-{uuid.uuid4().hex[:12]}"
    real.client.create_bucket(Bucket=name)
    return name


class TestContract(StorageSuite):
    @pytest.fixture
    def location(self, real, kept):
        if kept:
            pytest.skip(kept)
        return f"s3://{_bucket(real)}/lake", real.options


class Query:
    """Files, state and table in one bucket."""

    def __init__(self, real):
        self.real, self.bucket = real, _bucket(real)
        self.root = f"s3://{self.bucket}"
        self.options = {
            "path": f"{self.root}/in",
            "fileFormat": "json",
            "schema": "id LONG",
            "checkpointLocation": f"{self.root}/ck",
            "storageOptions": json.dumps(real.options),
        }

    def put(self, key, *ids):
        body = "".join(f'{{"id": {number}}}\n' for number in ids).encode()
        self.real.client.put_object(Bucket=self.bucket, Key=f"in/{key}", Body=body)

    def run(self, **options):
        return run(**keywords({**self.options, **options}), to=f"delta:{self.root}/table")

    def process(self):
        """The same as a process of its own."""
        call = [sys.executable, "-m", "pyspark_sluice", "run", self.options["path"]]
        call += [
            "--to",
            f"delta:{self.root}/table",
            "--checkpoint",
            self.options["checkpointLocation"],
        ]
        call += ["--schema", "id LONG", "--workers", "1"]
        call += ["--option", f"storageOptions={self.options['storageOptions']}"]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ids(self):
        """What is in the table, by another client."""
        options = {
            "AWS_ENDPOINT_URL": self.real.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.real.options["key"],
            "AWS_SECRET_ACCESS_KEY": self.real.options["secret"],
        }  # fmt: skip
        table = DeltaTable(f"{self.root}/table", storage_options=options)
        return sorted(table.to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def query(real, kept):
    if kept:
        pytest.skip(kept)
    return Query(real)


def test_it_is_refused_at_the_start_if_it_lets_two_writers_create_one_object(real, kept):
    if not kept:
        pytest.skip("it does not")
    query = Query(real)
    query.put("1.json", 1)
    outcomes = []
    for _ in range(3):
        with suppress(StateError):
            query.run()
            outcomes.append(query.ids())
    # The trial is a race: a server that loses some of them may win one.
    assert [ids for ids in outcomes if ids != [1]] == []


def test_a_restart_reads_only_what_is_new(query):
    query.put("1.json", 1, 2)
    assert query.run().rows == 2
    query.put("2.json", 3)
    assert query.run().rows == 1
    assert query.run().rows == 0
    assert query.ids() == [1, 2, 3]


def test_odd_keys_are_read(query):
    keys = ["a b.json", "ä+%20.json", "d=1/e,f;g.json", "x'y&z=.json", "~t.json/1.json", "ü/ö.json"]
    for number, key in enumerate(keys):
        query.put(key, number)
    query.run(ignoredPathSegmentRegex="^[._]")
    assert query.ids() == list(range(len(keys)))


def test_an_incremental_listing_finds_what_is_new(query):
    for number in range(5):
        query.put(f"2026/{number:02}.json", number)
    query.run(discoveryMode="incremental")
    query.put("2026/05.json", 5)
    query.run(discoveryMode="incremental")
    assert query.ids() == list(range(6))


def test_files_of_one_name_small_and_large_are_archived_and_none_is_lost(query):
    bodies = {f"{folder}/1.json": f'{{"id": {n}}}'.encode() for n, folder in enumerate("ab")}
    bodies["b/large.json"] = b'{"id": 2' + b" " * PART + b"}\n"
    bodies["a/large.json"] = b'{"id": 3' + b" " * PART + b"}\n"
    for key, body in bodies.items():
        query.real.client.put_object(Bucket=query.bucket, Key=f"in/{key}", Body=body)
    cleaning = {
        "path": f"{query.root}/in/a,{query.root}/in/b",
        "cleanSource": "archive", "sourceArchiveDir": f"{query.root}/old",
        "cleanSourceRetention": "0s", "cleanSourceWhileRetained": True,
    }  # fmt: skip
    for number in range(4, 7):
        query.run(**cleaning)
        query.put(f"a/{number}.json", number)
    query.run(**cleaning)
    storage, name = open_storage(query.root, query.real.options)
    archived = [storage.whole(f"{name}{key}") for key in _keys(storage, name, "old/")]
    left = [key for key in _keys(storage, name, "in/") if key.endswith(("1.json", "large.json"))]
    assert left == []
    assert [body for body in bodies.values() if body not in archived] == []


def _keys(storage, name, prefix):
    return [key[len(name) :] for key in storage.files(f"{name}{prefix}") if "probe" not in key]


def test_an_object_that_is_replaced_after_a_look_is_neither_read_as_old_nor_deleted(query):
    storage, name = open_storage(f"{query.root}/in/x", query.real.options)
    query.put("x", 1)
    mark = storage.look(name).mark
    query.put("x", 2)
    with pytest.raises(OSError, match=r"recondition|412"):
        storage.read(name, etag=mark)
    with suppress(OSError):
        storage.delete(name, mark)
    assert storage.exists(name), "a condition of a deletion is ignored"


def test_of_four_starts_at_once_one_reads(query):
    query.put("1.json", *range(100))
    started = [query.process() for _ in range(4)]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    codes = sorted(process.returncode for process in started)
    assert codes[0] == 0, outputs
    assert query.ids() == list(range(100)), (codes, outputs)


def test_eight_kills_lose_and_double_nothing(query):
    dice = random.Random(7)
    for number in range(8):
        query.put(f"{number}.json", *range(number * 10, number * 10 + 10))
        process = query.process()
        time.sleep(dice.uniform(0.5, 3.0))
        process.kill()
        process.communicate()
    query.run(wait=90)
    assert query.ids() == list(range(80))


def test_two_thousand_objects_are_read_once(query):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: query.put(f"{number:04}.json", number), range(2000)))
    query.run()
    assert query.ids() == list(range(2000))


def test_doctor_says_what_the_query_meets(query, capsys):
    from pyspark_sluice.connector.cli.app import main

    query.put("1.json", 1)
    place = ["doctor", f"{query.root}/ck", "--path", f"{query.root}/in", "--json"]
    main([*place, "--storage-options", query.options["storageOptions"]])
    findings = json.loads(capsys.readouterr().out)["findings"]
    verdicts = {one["what"]: one["verdict"] for one in findings}
    for what in ("state from the driver", "files of the path"):
        assert verdicts[what] == "ok", findings


def test_what_the_server_does_is_a_row_of_the_page(real, kept, capsys):
    """Prints it: docs/buckets.md has the table."""
    s3, bucket = real.client, _bucket(real)

    def status(call, **arguments):
        try:
            call(Bucket=bucket, **arguments)
        except Exception as error:  # noqa: BLE001 - the answer is what is asked for
            return (
                getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            )
        return 200

    s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    create = status(s3.put_object, Key="a", Body=b"2", IfNoneMatch="*")
    read = status(s3.get_object, Key="a", IfMatch='"0"')
    deletion = status(s3.delete_object, Key="a", IfMatch='"0"')
    s3.put_object(Bucket=bucket, Key="b/c", Body=b"1")
    below = status(s3.put_object, Key="b/c/d", Body=b"1")
    slashes = status(s3.put_object, Key="e//f", Body=b"1")
    listed = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]
    odd = [f"`{key}` {'listed' if key in listed else 'not listed'}" for key in ("b/c/d", "e//f")]
    winners = []
    for _ in range(10):
        name = uuid.uuid4().hex
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda at, name=name: status(
                    s3.put_object, Key=name, Body=b"%d" % at, IfNoneMatch="*"
                ),
                range(8),
            )
            winners.append(sum(answer == 200 for answer in answers))
    storage, root = open_storage(f"s3://{bucket}", real.options)
    large = storage._try_to_copy(f"{root}x/y") if not kept else "-"
    row = (
        f"| {real.name} {real.version} | {create} | {max(winners)} of 8 | {read} | {deletion} | "
        f"{'yes' if large is True else 'no'} | {below}, {slashes}: {', '.join(odd)} | "
        f"{kept or 'holds state and tables'} |"
    )
    with capsys.disabled():
        print(f"\n{row}")
    table = os.environ.get("STORES_TABLE")
    if table:
        Path(table).parent.mkdir(parents=True, exist_ok=True)
        with Path(table).open("a") as file:
            file.write(f"{row}\n")
