"""Object stores on loopback: data and state both in a bucket, on good days and on bad ones."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import time
from collections import Counter
from urllib.parse import parse_qs, quote

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END

MARK = "MARKED/secret+of=the&test"
"""Looked for where anybody could read it; its marks are written in other ways in URLs."""

SHOWN_AS = (MARK, "MARKED", "secret+of", "secret%2Bof")


def secrets_of(options):
    """What nobody may read of the options that a server gives."""
    shown = set(SHOWN_AS)
    if "token" in options:
        shown |= set(options["token"]["private_key"].splitlines()[1:-1])
    if "sas_token" in options:
        (signature,) = parse_qs(options["sas_token"])["sig"]
        shown |= {signature, quote(signature, safe="")}
    return shown


class Bucket:
    """Lands rows in a bucket, and drains them into a lake."""

    def __init__(self, server, bucket, lake, state=None):
        self.server, self.name, self.lake = server, bucket, lake
        self.options = server.options
        if "secret" in self.options:
            # moto takes any.
            self.options["secret"] = MARK
        self.usual = {
            "fileFormat": "json",
            "stateLocation": state or f"{server.scheme}://{bucket}/state",
            "storageOptions": as_json(self.options),
            "checkpointLocation": str(lake.checkpoint),
            "discoveryInterval": "1000",
        } | FOR_RUNS_THAT_END

    def put(self, name, ids):
        lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
        key = f"in/{name}"
        self.server.put(self.name, key, lines.encode())
        self.lake.landed.update(ids)
        return key

    def frame(self, **options):
        reader = self.lake.spark.readStream.format("sluice").schema("id long, text string")
        return reader.options(**{**self.usual, **options}).load(
            f"{self.server.scheme}://{self.name}/in"
        )

    def start(self, trigger, **options):
        writer = self.frame(**options).writeStream.format("parquet").trigger(**trigger)
        writer = writer.option("checkpointLocation", str(self.lake.checkpoint))
        return self.lake.run(writer, str(self.lake.sink))

    def drain(self, **options):
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(PATIENCE)
        return query

    def objects(self, prefix):
        return {key: self.server.get(self.name, key) for key in self.server.keys(self.name, prefix)}


@pytest.mark.parametrize(
    "any_server",
    [
        "s3",
        *(
            pytest.param(name, marks=pytest.mark.thorough("the same stream on S3"))
            for name in ("google", "azure")
        ),
    ],
    indirect=True,
)
def test_a_bucket_is_ingested_once_with_its_state_in_the_bucket_on_bad_days_too(
    any_server, any_bucket, lake, capfd
):
    server = any_server
    on = Bucket(server, any_bucket, lake)
    for name, ids in {"a/0": range(10), "a/1": range(10, 20), "b/2": range(20, 30)}.items():
        on.put(f"{name}.json", ids)
    on.put("b/_hidden.json", range(0))
    plans = [_explained(on.frame())]
    query = on.drain(maxFilesPerTrigger="2")
    told = [str(progress) for progress in query.recentProgress]
    lake.check_exactly_once()
    names = Counter(key.split("/")[2] for key in on.objects("state/"))
    assert names["checkpoints"] == 2
    assert names["epochs"] == 1

    # Every fifth request is throttled, every seventh write is done and its answer lost.
    numbers = itertools.count(1)

    def bad_day(environ, respond):
        number = next(numbers)
        if number % 5 == 0:
            return server.slow_down(environ, respond)
        if number % 7 == 0 and environ["REQUEST_METHOD"] == "PUT":
            return server.lose_answer(environ, respond)
        return None

    for i in range(6):
        on.put(f"c/{i}.json", range(100 + 10 * i, 110 + 10 * i))
    server.fault = bad_day
    server.away_for(3.0)
    query = on.drain(maxFilesPerTrigger="2")
    server.fault = None
    assert next(numbers) > 20, "the faults have hardly been met"
    told += [str(progress) for progress in query.recentProgress]
    lake.check_exactly_once()

    # What fails says what, and no secret.
    server.put(any_bucket, "in/d/broken.json", b'{"id": ')
    for options in ({}, {"storageOptions": as_json({**on.options, "sekret": MARK})}):
        query = on.start({"availableNow": True}, **options)
        with pytest.raises(Exception, match=r"broken\.json|sekret") as caught:
            query.awaitTermination(PATIENCE)
        plans += [str(caught.value), str(query.exception()), _explained_query(query)]
    told += [data.decode(errors="replace") for data in on.objects("state/").values()]
    told += [
        path.read_bytes().decode(errors="replace")
        for path in lake.checkpoint.rglob("*")
        if path.is_file()
    ]
    told += list(capfd.readouterr())
    assert len(told) > 20
    secrets = secrets_of(on.options)
    # Spark shows options in plans, and plans in errors, unless it finds a word such as token or
    # secret in them: those of Azure have none with an account key, as the documentation says.
    told += plans if server.scheme != "abfss" else []
    for text in told:
        assert not any(secret in text for secret in secrets), text[:2000]


@pytest.mark.thorough("a count of requests; those of listings are counted without Spark")
def test_requests_of_a_trigger_are_few(server, bucket, lake, until):
    on = Bucket(server, bucket, lake)
    on.put("0.json", range(10))
    query = on.start({"processingTime": "100 milliseconds"})
    until(lambda: sum(lake.ingested().values()) == 10, "first row")
    query.processAllAvailable()

    def listings(after):
        return [name for name in server.names[after:] if "LIST" in name and "prefix=in" in name]

    written = len(server.requests)
    until(lambda: len(listings(written)) >= 2, "listings after the last write")
    before, began = len(server.requests), time.monotonic()
    until(lambda: len(listings(before)) >= 4, "listings while idle")
    idle, seconds = Counter(server.requests[before:]), time.monotonic() - began
    # A second: one listing of the data, and one of the epochs with a look at the own claim.
    assert set(idle) <= {"LIST", "GET"}, idle
    assert idle["LIST"] <= 2 * seconds + 4
    assert idle["GET"] <= seconds + 2
    before = len(server.requests)
    for i in range(1, 11):
        on.put(f"{i}.json", range(10 * i, 10 * i + 10))
    until(lambda: sum(lake.ingested().values()) == 110, "rows of ten files")
    query.processAllAvailable()
    query.stop()
    busy = Counter(server.own_names(before))
    print(f"requests while idle, {seconds:.0f} s:", dict(idle))
    print("requests for ten files:", dict(busy))
    assert busy["GET in"] == 10, "one request for each file"
    assert "HEAD in" not in busy
    lake.check_exactly_once()


def _explained(frame):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        frame.explain(extended=True)
    return text.getvalue() + frame._jdf.queryExecution().toString()


def _explained_query(query):
    return str(query._jsq.explainInternal(True))
