"""What a coordinator writes into the log, and that each line says whose it is."""

import logging
import re

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT
from pyspark_sluice.checkpoint_meta.documents.reader_commit import ReturnedSplit
from pyspark_sluice.connector.query.driver import configure_logging
from pyspark_sluice.enumerator import BatchLimits, CoordinatorSettings
from pyspark_sluice.enumerator.api import Journal
from pyspark_sluice.masking import hide
from pyspark_sluice.tests.protocol.numbers import Harness


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG, "pyspark_sluice")
    return lambda level: [
        (record.name.removeprefix("pyspark_sluice."), record.getMessage())
        for record in caplog.records
        if record.levelname == level
    ]


def test_the_life_of_a_checkpoint_can_be_followed_with_its_state_and_epoch(lines):
    limits = BatchLimits(files=3)
    settings = CoordinatorSettings(
        parallelism=2, discovery_timeout=0.0, max_split_attempts=1, limits=limits
    )
    query = Harness([0, 1, 2], settings)
    first = query.coordinator.latest(NO_CHECKPOINT)
    query.acknowledge(first, 0, returned=[ReturnedSplit(index=1, reason="torn %s")])
    query.offer(5)
    query.coordinator.latest(first)
    assert lines("INFO") == [
        ("coordinator", "[memory epoch 1 checkpoint 0] opened: a new query"),
        ("checkpoint", "[memory epoch 1 checkpoint 1] cut and published: 3 splits for 2 readers"),
        ("checkpoint", f"[memory epoch 1 checkpoint 1] {first} is complete: 2 rows of 0 bytes"),
        ("checkpoint", "[memory epoch 1 checkpoint 2] cut and published: 1 splits for 1 readers"),
    ]
    assert [text.partition("] ")[2] for _, text in lines("DEBUG")] == [
        "3 files of 3 bytes; ended by its limit of files",
        "reader 0 has 2 splits, and 0 parts to continue",
        "reader 1 has 1 splits, and 0 parts to continue",
        "1 files of 1 bytes; ended by no limit",
        "reader 1 has 1 splits, and 0 parts to continue",
    ]
    assert lines("WARNING") == [
        (
            "reader",
            (
                f"[memory epoch 1 checkpoint 1] reader 0 returned 1 splits of {first}, of which 1 "
                "are quarantined: torn %s"
            ),
        ),
        (
            "reader",
            (
                "[memory epoch 1 checkpoint 1] reader 1 abandoned its 1 splits of "
                f"{first}: Spark stopped reading its rows (a limit downstream)"
            ),
        ),
    ]


def test_a_record_says_whose_it_is_and_tells_no_secret(caplog):
    hide({"secret": "s3cr3t-of-mine"})
    journal = Journal("/state/100%")
    journal.epoch, journal.checkpoint = 3, 7
    journal.warning("discovery", "failed: %s", OSError("with s3cr3t-of-mine"))
    (record,) = caplog.records
    assert record.getMessage() == "[/state/100% epoch 3 checkpoint 7] failed: with ***"
    found = (record.sluice_state, record.sluice_epoch, record.sluice_checkpoint)
    assert found == ("/state/100%", 3, 7)


def test_a_handler_is_added_only_where_nobody_has_configured_one(capsys):
    log, root = logging.getLogger("pyspark_sluice"), logging.getLogger()
    handlers, level = root.handlers[:], log.level
    try:
        log.setLevel(logging.NOTSET)
        configure_logging("info")
        assert (log.handlers, log.level) == ([], logging.INFO)
        root.handlers.clear()
        configure_logging("debug")
        configure_logging("debug")
        assert (len(log.handlers), log.level) == (1, logging.INFO)
        Journal("/state").info("checkpoint", "cut")
        told = capsys.readouterr().err
        assert re.search(
            r"INFO pyspark_sluice.checkpoint: \[/state epoch 0 checkpoint 0\] cut", told
        )
    finally:
        log.handlers.clear()
        log.setLevel(level)
        root.handlers[:] = handlers
