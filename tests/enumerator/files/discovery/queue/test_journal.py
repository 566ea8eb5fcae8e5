"""Discovery by a journal of S3 Metadata: an Iceberg table of the columns that AWS documents."""

import itertools
import json
import logging
from datetime import datetime

import pyarrow as pa
import pyiceberg.catalog
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, LongType, MapType, NestedField, StringType, TimestampType
from pyiceberg.utils.config import Config

from pyspark_sluice.enumerator.files.discovery.queue import journal
from pyspark_sluice.enumerator.files.discovery.queue import message_receiver as inboxes
from pyspark_sluice.tests.enumerator.files.discovery.queue.conftest import Stream
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import Service
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow

TYPES = {
    "bucket": StringType(), "key": StringType(), "sequence_number": StringType(),
    "record_type": StringType(), "record_timestamp": TimestampType(), "version_id": StringType(),
    "is_delete_marker": BooleanType(), "size": LongType(), "last_modified_date": TimestampType(),
    "e_tag": StringType(), "storage_class": StringType(), "is_multipart": BooleanType(),
    "encryption_status": StringType(), "is_bucket_key_enabled": BooleanType(),
    "kms_key_arn": StringType(), "checksum_algorithm": StringType(),
    "object_tags": MapType(100, StringType(), 101, StringType()),
    "user_metadata": MapType(102, StringType(), 103, StringType()),
    "requester": StringType(), "source_ip_address": StringType(), "request_id": StringType(),
}  # fmt: skip
REQUIRED = ("bucket", "key", "sequence_number", "record_type", "record_timestamp")
SCHEMA = Schema(
    *(
        NestedField(number, name, kind, required=name in REQUIRED)
        for number, (name, kind) in enumerate(TYPES.items(), 1)
    )
)


class Journal(Service):
    """A bucket of moto, and a journal that the tests write."""

    def __init__(self, server, catalog):
        super().__init__(server, server)
        self.table = catalog.create_table("aws_s3_metadata.journal", SCHEMA)
        self._numbers = itertools.count(1)

    def record(self, bucket, key, kind="CREATE", **more):
        return {
            "bucket": bucket, "key": key, "record_type": kind,
            "sequence_number": f"{next(self._numbers):064x}",
            "record_timestamp": datetime(2026, 11, 29), **more,  # noqa: DTZ001
        }  # fmt: skip

    def commit(self, *records):
        rows = [dict.fromkeys(TYPES) | record for record in records]
        self.table.append(pa.Table.from_pylist(rows, schema=self.table.schema().as_arrow()))


@pytest.fixture
def service(server, tmp_path, monkeypatch):
    server.fault = None
    (tmp_path / "warehouse").mkdir()
    settings = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db"}
    settings["WAREHOUSE"] = f"file://{tmp_path}/warehouse"
    for name, value in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__AWS__{name}", value)
    properties = {name.lower(): value for name, value in settings.items()}
    catalog = load_catalog("aws", **properties)
    catalog.create_namespace("aws_s3_metadata")
    # The library has read the environment when it was imported.
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    monkeypatch.setattr(inboxes, "LONG_POLL", 1)
    monkeypatch.setattr(inboxes, "SHORT_POLL", 0)
    monkeypatch.setattr(journal, "_PAUSE", 0.05)
    yield Journal(server, catalog)
    catalog.close()


@pytest.fixture
def open_stream(service, bucket):
    streams = []

    def make(**options):
        url = "iceberg:aws.aws_s3_metadata.journal"
        streams.append(Stream(service, bucket, url, discoveryMode="journal", **options))
        return streams[-1]

    yield make
    for stream in streams:
        stream.discovery.close()


def restarted(open_stream, stream, **options):
    stream.discovery.close()
    again = open_stream(known=set(stream.ledger.paths), **options)
    again.discovery.resume(json.loads(json.dumps(stream.discovery.position())))
    return again


def test_what_was_there_is_listed_and_what_comes_is_in_the_journal(service, bucket, open_stream):
    stream = open_stream()
    stream.put("in/old")
    service.commit(service.record(bucket, "in/old"))
    assert stream.found() == ["in/old"]
    stream.put("in/new", "in/ä b", "out/x", "in/silent")
    service.commit(
        service.record(bucket, "in/new"),
        service.record(bucket, "in/old", "UPDATE_METADATA"),
        service.record(bucket, "out/x"),
    )
    service.commit(service.record(bucket, "in/ä b"), service.record("another", "in/x"))
    listed = service.store.requests.count("LIST")
    assert sorted(stream.found_within(count=2)) == ["in/new", "in/ä b"]
    assert service.store.requests.count("LIST") == listed


def test_deletions_are_known_and_cost_no_request(service, bucket, open_stream):
    stream = open_stream()
    stream.found()
    stream.put("in/there", "in/again")
    heads = service.store.requests.count("HEAD")
    service.commit(
        service.record(bucket, "in/gone"),
        service.record(bucket, "in/gone", "DELETE"),
        service.record(bucket, "in/again", "DELETE"),
        service.record(bucket, "in/again"),
        service.record(bucket, "in/there"),
        # An old version was deleted; the newest is there.
        service.record(bucket, "in/there", "DELETE", version_id="1"),
    )
    assert sorted(stream.found_within(count=2)) == ["in/again", "in/there"]
    assert service.store.requests.count("HEAD") == heads + 2


def test_a_restart_goes_on_behind_the_snapshot_whose_files_are_in_a_checkpoint(
    service, bucket, open_stream
):
    stream = open_stream()
    assert stream.found() == []
    first = stream.discovery.position()["journal"]
    stream.put("in/a", "in/b")
    service.commit(service.record(bucket, "in/a"))
    assert stream.found_within() == ["in/a"]
    assert stream.discovery.position()["journal"] == first, "no checkpoint has the file"
    stream.checkpoint(1)
    wait_until(lambda: stream.discovery.position()["journal"] != first)
    # It comes while no query runs.
    service.commit(service.record(bucket, "in/b"))
    again = restarted(open_stream, stream)
    listed = service.store.requests.count("LIST")
    assert again.found_within() == ["in/b"]
    assert service.store.requests.count("LIST") == listed


@pytest.mark.parametrize("is_running", [True, False])
def test_a_snapshot_that_has_expired_costs_one_full_listing_and_is_named(
    service, bucket, open_stream, caplog, is_running
):
    service.commit(service.record(bucket, "in/x"))
    stream = open_stream()
    assert stream.found() == []
    if is_running:
        wait_until(lambda: stream.discovery._receiver._was_empty)
        # It sees nothing of what follows until the snapshots are gone.
        stream.discovery._receiver.queue._lock.acquire()
    else:
        stream.discovery.close()
    stream.put("in/a", "in/b")
    service.commit(service.record(bucket, "in/a"))
    first, *_ = service.table.metadata.snapshots
    service.commit(service.record(bucket, "in/b"))
    service.table.maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    with caplog.at_level(logging.WARNING):
        if is_running:
            stream.discovery._receiver.queue._lock.release()
            again = stream
        else:
            again = restarted(open_stream, stream)
        assert sorted(again.found_within(count=2)) == ["in/a", "in/b"]
    if not is_running:
        assert f"has no snapshot {first.snapshot_id} any more" in caplog.text
        listed = service.store.requests.count("LIST")
        again.found()
        assert service.store.requests.count("LIST") == listed, "it lists once"


def test_a_table_that_is_not_there_is_named(service, bucket):
    url = "iceberg:aws.aws_s3_metadata.nothing"
    stream = Stream(service, bucket, url, discoveryMode="journal")
    with pytest.raises(Exception, match=r"queueUrl|iceberg:aws.aws_s3_metadata.nothing"):
        stream.found()
    stream.discovery.close()
