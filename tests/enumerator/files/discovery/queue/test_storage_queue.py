"""A Storage Queue of Azurite: receipts, credentials, and errors that name no secret."""

import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from pyspark_sluice.enumerator.files.discovery.queue.storage_queue import StorageQueue
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tests.checkpoint_meta.storage.azure_server import ACCOUNT, KEY, AzureQueueServer
from pyspark_sluice.tests.enumerator.files.discovery.queue.services import StorageQueues

pytestmark = pytest.mark.slow

OPTIONS = {"account_name": ACCOUNT, "account_key": KEY}


@pytest.fixture
def service(azurite_queues):
    server = AzureQueueServer(azurite_queues)
    yield StorageQueues(server, server)
    server.close()


@pytest.fixture
def url(service):
    return service.make_queue()


def test_what_was_kept_can_be_kept_again_and_deleted(service, url):
    queue = StorageQueue(url, OPTIONS, 30)
    for number in range(40):
        service.send(url, str(number))
    held = [*queue.receive(0), *queue.receive(0)]
    assert sorted(int(message.body) for message in held) == list(range(40))
    queue.keep(held)
    queue.keep(held[:20])
    assert service.left(url) == (0, 40)
    assert queue.delete(held) == 40
    assert service.left(url) == (0, 0)
    assert queue.delete(held) == 0


def test_a_message_that_another_receiver_has_is_not_deleted(service, url):
    ours, other = StorageQueue(url, OPTIONS, 1), StorageQueue(url, OPTIONS, 30)
    service.send(url, "text")
    held = ours.receive(0)
    ours.keep(held)
    (taken,) = other.receive(10)
    ours.keep(held)
    assert ours.delete(held) == 0
    assert service.left(url) == (0, 1)
    assert other.delete([taken]) == 1


def test_what_is_released_can_be_received_at_once(service, url):
    queue = StorageQueue(url, OPTIONS, 30)
    service.send(url, "text")
    held = queue.receive(0)
    queue.keep(held)
    queue.release(held)
    (again,) = queue.receive(0)
    assert again.identity == held[0].identity
    assert queue.delete([again]) == 1


def test_an_empty_queue_is_asked_until_the_wait_is_over(service, url):
    began = time.monotonic()
    assert StorageQueue(url, OPTIONS, 30).receive(2) == []
    assert time.monotonic() - began > 1.9
    assert 2 <= service.queues.requests.count("ReceiveMessage") <= 4


def signature(url):
    from azure.storage.queue import QueueSasPermissions, generate_queue_sas

    return generate_queue_sas(
        ACCOUNT,
        url.rpartition("/")[2],
        KEY,
        permission=QueueSasPermissions(read=True, add=True, update=True, process=True),
        expiry=datetime.now(UTC) + timedelta(days=1),
        protocol="https,http",
    )


def test_a_signature_may_do_what_it_permits_and_no_error_has_it(service, url):
    token = signature(url)
    queue = StorageQueue(url, {"account_name": ACCOUNT, "sas_token": f"?{token}"}, 30)
    queue.send("text")
    (held,) = queue.receive(0)
    assert queue.delete([held]) == 1
    wrong = StorageQueue(url, {"account_name": ACCOUNT, "sas_token": token[:-12] + "A" * 12}, 30)
    with pytest.raises(PermissionError) as refused:
        wrong.receive(0)
    service.queues.away()
    with pytest.raises(OSError, match="q-") as away:
        queue.receive(0)
    service.queues.back()
    for error in (refused.value, away.value):
        assert "sig=" not in str(error)
        assert token[-30:-12] not in str(error)
        assert error.__suppress_context__


def test_without_a_key_an_identity_is_used():
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    url = "https://account.queue.core.windows.net/q"
    secret = {"tenant_id": "t", "client_id": "c", "client_secret": "s"}
    assert isinstance(StorageQueue(url, secret, 30)._credential(), ClientSecretCredential)
    assert isinstance(StorageQueue(url, {}, 30)._credential(), DefaultAzureCredential)
    with_key = StorageQueue(url, {"account_key": KEY}, 30)._credential()
    assert with_key == {"account_name": "account", "account_key": KEY}


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.storage.queue", None)
    with pytest.raises(OptionError, match=r"\.\[azure\]"):
        StorageQueue("https://account.queue.core.windows.net/q", {}, 30)
