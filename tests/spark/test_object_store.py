"""A query of Spark with data and state in a bucket, which is away at times; and what it shows."""

import contextlib
import io
import itertools
import json
from collections import Counter

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.s3_server import as_json
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END

MARK = "MARKED/secret+of=the&test"
"""Looked for where anybody could read it; its marks are written in other ways in URLs."""

SHOWN_AS = (MARK, "MARKED", "secret+of", "secret%2Bof")


class Bucket:
    """Lands rows in a bucket, and drains them into a lake."""

    def __init__(self, server, bucket, lake):
        self.server, self.name, self.lake = server, bucket, lake
        # The server takes any.
        self.options = {**server.options, "secret": MARK}
        self.usual = {
            "fileFormat": "json",
            "stateLocation": f"s3://{bucket}/state",
            "storageOptions": as_json(self.options),
            "checkpointLocation": str(lake.checkpoint),
            "maxFilesPerTrigger": "2",
        } | FOR_RUNS_THAT_END

    def put(self, name, ids):
        lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
        self.server.put(self.name, f"in/{name}", lines.encode())
        self.lake.landed.update(ids)

    def frame(self, **options):
        reader = self.lake.spark.readStream.format("sluice").schema("id long, text string")
        return reader.options(**{**self.usual, **options}).load(f"s3://{self.name}/in")

    def start(self, **options):
        writer = self.frame(**options).writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(self.lake.checkpoint))
        return self.lake.run(writer, str(self.lake.sink))

    def drain(self):
        query = self.start()
        assert query.awaitTermination(PATIENCE)
        self.lake.check_exactly_once()
        return [str(progress) for progress in query.recentProgress]

    def objects(self, prefix):
        return {key: self.server.get(self.name, key) for key in self.server.keys(self.name, prefix)}


@pytest.mark.thorough("stores that fail and masked secrets have tests without Spark")
def test_a_bucket_is_ingested_once_on_bad_days_too_and_no_secret_is_shown(
    server, bucket, lake, capfd
):
    on = Bucket(server, bucket, lake)
    for name, ids in {"a/0": range(10), "a/1": range(10, 20), "b/2": range(20, 30)}.items():
        on.put(f"{name}.json", ids)
    on.put("b/_hidden.json", range(0))
    before = len(server.names)
    shown = [_explained(on.frame()), *on.drain()]
    asked = Counter(server.own_names(before))
    assert (asked["GET in"], asked["HEAD in"]) == (3, 0), "one request for each file"
    names = Counter(key.split("/")[2] for key in on.objects("state/"))
    assert (names["checkpoints"], names["epochs"]) == (2, 1)

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
    shown += on.drain()
    server.fault = None
    assert next(numbers) > 20, "the faults have hardly been met"

    # What fails says what, and no secret.
    server.put(bucket, "in/d/broken.json", b'{"id": ')
    for options in ({}, {"storageOptions": as_json({**on.options, "sekret": MARK})}):
        query = on.start(**options)
        with pytest.raises(Exception, match=r"broken\.json|sekret") as caught:
            query.awaitTermination(PATIENCE)
        plan = str(query._jsq.explainInternal(True))
        shown += [str(caught.value), str(query.exception()), plan]
    shown += [data.decode(errors="replace") for data in on.objects("state/").values()]
    files = [path for path in lake.checkpoint.rglob("*") if path.is_file()]
    shown += [path.read_bytes().decode(errors="replace") for path in files]
    shown += capfd.readouterr()
    assert len(shown) > 20
    for text in shown:
        assert not any(secret in text for secret in SHOWN_AS), text[:2000]


def _explained(frame):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        frame.explain(extended=True)
    return text.getvalue() + frame._jdf.queryExecution().toString()
