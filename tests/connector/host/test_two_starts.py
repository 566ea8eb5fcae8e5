"""Two starts on one checkpoint: who owns it, who waits, and what a dead owner owns."""

import os
import signal
import subprocess
import time

import pytest

from pyspark_sluice.checkpoint_meta.documents import heartbeat
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.heartbeat import ALIVE_SECONDS
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.connector.cli.commands.status import status_of
from pyspark_sluice.connector.query import start_check
from pyspark_sluice.connector.query.owner import owner_of
from pyspark_sluice.errors import FencedError
from pyspark_sluice.tests.patience import wait_until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("more", [(), ("--every", "1s")], ids=["once", "daemon"])
def test_a_start_next_to_a_live_owner_leaves_no_trace_and_a_dead_one_owns_nothing(query, more):
    query.land("0.json", range(10))
    process = query.start("--every", "1s")
    wait_until(lambda: query.logged("commits") == [0])
    claims = sorted((query.checkpoint / "sluice/source/epochs").iterdir())
    code, _, errors = query.run_here(*more)
    assert (code, errors.count("\n")) == (75, 1)
    assert f"process {process.pid} on " in errors
    assert sorted((query.checkpoint / "sluice/source/epochs").iterdir()) == claims
    os.killpg(process.pid, signal.SIGKILL)
    # It dies while the start looks, and is a zombie then: nobody has asked how it ended.
    query.land("1.json", range(10, 20))
    assert query.run_here()[0] == 0
    assert query.in_table() == query.landed
    process.communicate(timeout=60)


def test_a_process_that_takes_its_time_to_die_is_waited_for(query):
    store = open_store(str(query.checkpoint / "sluice/source"))
    query.land("0.json", range(10))
    with subprocess.Popen(["sleep", "2"]) as dying:
        claim = claim_epoch(store)
        place = query.checkpoint / f"sluice/source/epochs/{claim:010d}.json"
        process = {"pid": dying.pid, "started": heartbeat._started(dying.pid)}
        place.write_bytes(with_checksum({**without_checksum(place.read_bytes()), **process}))
        assert owner_of(store).runs == "running"
        assert query.run_here()[0] == 0


def test_a_start_waits_for_the_owner_to_end(query):
    query.land("0.json", range(10))
    owner = query.batches(every=0.1)
    assert next(owner).rows == 10
    query.land("1.json", range(10, 20))
    waiting = query.start("--wait", "2m")
    said = waiting.stderr.readline()
    assert "waiting up to 120 s for the owner to end" in said
    # What ends in this process says so: the process itself goes on.
    owner.close()
    assert waiting.communicate(timeout=60)[1] == ""
    assert waiting.returncode == 0
    assert query.in_table() == query.landed


def test_of_starts_at_once_one_reads_and_the_others_end_with_75(query):
    query.land("0.json", range(200_000))
    processes = [query.start() for _ in range(3)]
    ends = [process.communicate(timeout=120) for process in processes]
    codes = sorted(process.returncode for process in processes)
    assert set(codes) <= {0, 75}, ends
    assert codes[0] == 0
    assert query.in_table() == query.landed


def test_an_owner_on_another_host_lives_as_long_as_its_heart_beats(query, monkeypatch):
    query.land("0.json", range(10))
    owner = query.batches(every=0.1)
    assert next(owner).rows == 10
    epochs = query.checkpoint / "sluice/source/epochs"
    claim = without_checksum(max(epochs.iterdir()).read_bytes())
    elsewhere = {**claim, "host": "elsewhere", "epoch": claim["epoch"] + 1}

    def claim_elsewhere(seconds_ago):
        at = {"claimed": time.time() - seconds_ago}
        place = epochs / f"{elsewhere['epoch']:010d}.json"
        place.write_bytes(with_checksum({**elsewhere, **at}))

    claim_elsewhere(ALIVE_SECONDS - 10)
    code, _, errors = query.run_here()
    assert (code, "elsewhere: whose processes are not visible from here" in errors) == (75, True)
    # A clock that is ahead does not make an owner live for ever.
    claim_elsewhere(-3600)
    monkeypatch.setattr(start_check, "ALIVE_SECONDS", 1.0)
    query.land("1.json", range(10, 20))
    assert query.run_here("--wait", "60s")[0] == 0
    with pytest.raises(FencedError):
        list(owner)
    assert query.in_table() == query.landed


def test_a_driver_that_was_killed_owns_nothing_although_its_python_process_runs(query):
    store = open_store(str(query.checkpoint / "sluice/source"))
    claim_epoch(store, parent={"pid": os.getpid(), "started": "1"})
    assert "the driver that has started it is no longer running" in str(owner_of(store))
    query.land("0.json", range(10))
    assert query.run_here()[0] == 0


def test_a_short_run_leaves_its_figures(query):
    query.land("0.json", range(10))
    assert query.run_here()[0] == 0
    (query.source / "0.json").write_text('{"id": 1, "text": "changed"}\n')
    assert query.run_here()[0] == 0
    store = open_store(str(query.checkpoint / "sluice/source"))
    assert status_of(store)["files_skipped"]
    assert "it has ended" in str(owner_of(store))
