"""State in the object stores on loopback: lost answers, and two coordinators at once."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.stores.open_store import (
    LocalStateStore,
    ObjectStateStore,
    RetryingStateStore,
    StateStore,
    open_store,
)
from pyspark_sluice.enumerator import Coordinator, CoordinatorSettings
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.checkpoint_meta.storage.faulty_server import FaultyServer
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.protocol.numbers import NumberSource

pytestmark = pytest.mark.slow

pytest.importorskip("s3fs")


class DroppingProxy:
    """Passes everything on to a server; while armed it swallows the answer to one PUT."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._armed = threading.Event()
        self.puts = 0
        self.dropped = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self) -> None:
        """The next PUT reaches the server, and its answer reaches nobody."""
        self._armed.set()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            drop = threading.Event()
            for pump in (self._requests, self._answers):
                threading.Thread(target=pump, args=(client, server, drop), daemon=True).start()

    def _requests(
        self, client: socket.socket, server: socket.socket, drop: threading.Event
    ) -> None:
        while data := _received(client):
            if data.startswith(b"PUT "):
                self.puts += 1
                if self._armed.is_set():
                    self._armed.clear()
                    drop.set()
            if not _sent(server, data):
                break
        _end(server)

    def _answers(self, client: socket.socket, server: socket.socket, drop: threading.Event) -> None:
        while data := _received(server):
            if drop.is_set() and not data.startswith(b"HTTP/1.1 100"):
                self.dropped += 1
                break
            if not _sent(client, data):
                break
        _end(client)
        _end(server)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def _sent(connection: socket.socket, data: bytes) -> bool:
    """False where the other side has gone, as either may at any time."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


class Kept:
    """A bucket behind a proxy that loses answers."""

    def __init__(self, server: FaultyServer, bucket: str, proxy: DroppingProxy) -> None:
        self._server, self._bucket, self.proxy = server, bucket, proxy

    def url(self, name: str) -> str:
        return f"{self._server.scheme}://{self._bucket}/{name}"

    @property
    def options(self) -> dict[str, Any]:
        """Those of the server, at the proxy's address."""
        text = json.dumps(self._server.options)
        options: dict[str, Any] = json.loads(
            text.replace(f":{self._server.port}", f":{self.proxy.port}")
        )
        return options

    def open(self, name: str) -> StateStore:
        return open_store(self.url(name), self.options)


@pytest.fixture
def kept(any_server: FaultyServer, any_bucket: str) -> Iterator[Kept]:
    """On each of the stores."""
    proxy = DroppingProxy(any_server.port)
    yield Kept(any_server, any_bucket, proxy)
    proxy.close()


def test_a_put_whose_answer_was_lost_is_our_own_success(kept):
    store = kept.open("lost")
    before = kept.proxy.puts
    kept.proxy.arm()
    store.publish("readers/1/00000.json", b"mine")
    assert kept.proxy.dropped == 1
    assert kept.proxy.puts - before >= 2, "the client did not repeat the request"
    assert store.read("readers/1/00000.json") == b"mine"
    with pytest.raises(FileExistsError):
        store.publish("readers/1/00000.json", b"theirs")


def test_fsspec_s_client_of_s3_retries_silently_and_takes_our_own_object_for_another_s(
    server, bucket
):
    """What the test above relies on: without a comparison this would be a lost race."""
    proxy = DroppingProxy(server.port)
    store = ObjectStateStore(f"s3://{bucket}/silence", Kept(server, bucket, proxy).options)
    proxy.arm()
    with pytest.raises(FileExistsError):
        store.publish("1", b"mine")
    proxy.close()


def test_a_claim_whose_answer_was_lost_is_not_claimed_again(kept):
    store = kept.open("claims")
    kept.proxy.arm()
    assert claim_epoch(store) == 1
    assert store.list("epochs") == ["0000000001.json"]


@pytest.fixture(params=["local", "local without hard links"])
def make_local(request, tmp_path, monkeypatch):
    """A new handle on one state directory, as another driver would open it."""
    if "without" in request.param:

        def link(source, target):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    return lambda: RetryingStateStore(LocalStateStore(str(tmp_path / "state")))


def test_of_two_coordinators_that_start_at_once_one_stops(make_local):
    _of_two_coordinators_one_stops(make_local)


def test_of_two_coordinators_that_start_at_once_on_a_bucket_one_stops(kept):
    _of_two_coordinators_one_stops(lambda: kept.open("two"))


def _of_two_coordinators_one_stops(make_store):
    coordinators = [
        Coordinator(
            NumberSource([0, 1]),
            make_store(),
            CoordinatorSettings(parallelism=1, commit_patience=0),
        )
        for _ in range(2)
    ]
    both = threading.Barrier(2)

    def begin(coordinator):
        both.wait(PATIENCE)
        try:
            return coordinator.latest(NO_CHECKPOINT)
        except FencedError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(begin, coordinators))
    epochs = sorted(coordinator.epoch for coordinator in coordinators)
    assert epochs == [1, 2]
    older, newer = sorted(coordinators, key=lambda coordinator: coordinator.epoch)
    reference = outcomes[coordinators.index(newer)]
    assert reference.epoch == 2
    with pytest.raises(FencedError, match="epoch 2 claimed"):
        older._opened.background()
    older.close()
    newer.close()


def test_ten_claims_at_once_are_ten_epochs(make_local):
    _ten_claims_are_ten_epochs(make_local)


def test_ten_claims_at_once_on_a_bucket_are_ten_epochs(kept):
    _ten_claims_are_ten_epochs(lambda: kept.open("ten"))


def _ten_claims_are_ten_epochs(make_store):
    with ThreadPoolExecutor(10) as pool:
        claimed = list(pool.map(lambda _: claim_epoch(make_store()), range(10)))
    assert sorted(claimed) == list(range(1, 11))
