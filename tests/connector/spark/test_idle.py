"""What Spark's thread does while there is nothing to read: it waits for news, but never long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.query import driver
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.protocol.opened import opened

_LONG = 60.0
"""Seconds of patience; what takes half of them has waited them out."""


@contextmanager
def _soon():
    began = time.monotonic()
    yield
    assert time.monotonic() - began < _LONG / 2


@pytest.fixture
def stream(begin, monkeypatch):
    monkeypatch.setattr(driver, "_IDLE_SECONDS", _LONG)
    made = begin()
    made.land("a.json")
    assert made.until(1) == [0]
    return made


def test_the_first_question_without_news_is_answered_at_once(begin, monkeypatch):
    monkeypatch.setattr(driver, "_IDLE_SECONDS", _LONG)
    with _soon():
        assert begin().batch() == []


def test_a_question_that_waits_is_answered_when_a_file_comes(stream):
    with _soon():
        stream.batch()
        threading.Timer(0.2, stream.land, ["b.json"]).start()
        assert stream.batch() == [1]


def test_a_question_that_waits_ends_when_another_query_takes_the_state_over(
    stream, tmp_path, monkeypatch
):
    store = open_store(str(tmp_path / "state" / "source"), {})
    threads = opened(stream.reader._driver.coordinator).threads
    waits, wait_for = threading.Event(), threads.wait_for

    def told(*arguments):
        waits.set()
        return wait_for(*arguments)

    with _soon(), ThreadPoolExecutor(1) as pool:
        stream.batch()
        monkeypatch.setattr(threads, "wait_for", told)
        asked = pool.submit(stream.batch)
        assert waits.wait(_LONG / 4)
        claim_epoch(store)
        with pytest.raises(FencedError):
            asked.result(timeout=_LONG)


def test_no_question_waits_while_other_sources_of_the_query_have_batches(stream):
    with _soon():
        for _ in range(3):
            assert stream.batch() == []
            # Spark tells every source that a batch has ended, whosesoever rows it had.
            stream.reader.commit(stream.at)


def test_a_run_that_ends_does_not_wait_for_news(stream):
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="new in Spark 4.2")
    with _soon():
        for _ in range(3):
            assert stream.reader.latestOffset(stream.at, limits.ReadAllAvailable()) == stream.at


def test_an_idle_query_is_asked_seldom(begin):
    stream = begin()
    stream.batch()
    began = time.monotonic()
    for _ in range(10):
        stream.batch()
    assert time.monotonic() - began > 10 * driver._IDLE_SECONDS * 0.9
