"""Whether the process behind a claim runs: real processes, real namespaces, real copies."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.heartbeat import (
    ALIVE_SECONDS,
    HEARTBEAT_SECONDS,
    Heartbeat,
    look_at,
)
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.views.owner import owner_of
from pyspark_sluice.tests.patience import PATIENCE

HOLD = """
import sys
from pyspark_sluice.checkpoint_meta.documents.epochs import claim_epoch
from pyspark_sluice.checkpoint_meta.documents.heartbeat import Heartbeat
from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
import time
store = open_store(sys.argv[1])
Heartbeat(store, claim_epoch(store), time.time).beat()
print("held", flush=True)
sys.stdin.read()
"""
UNSHARE = ("unshare", "--pid", "--fork", "--kill-child")


@pytest.fixture
def hold(tmp_path):
    """Starts a process that claims a state and gives a heartbeat."""
    started = []

    def start(*wrapped):
        process = subprocess.Popen(
            [*wrapped, sys.executable, "-c", HOLD, str(tmp_path / "state")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=PATIENCE)


def claim(store, **changes):
    """The newest claim, changed and published as the next."""
    newest = max(store.list("epochs"))
    document = {**without_checksum(store.read(f"epochs/{newest}")), **changes}
    return {**document, "epoch": document["epoch"] + 1}


def life_after_the_last_beat(store, seconds):
    document = json.loads(store.read("epochs/0000000001.json"))
    (beat,) = store.list("heartbeats")
    at = without_checksum(store.read(f"heartbeats/{beat}"))["beat"]
    return look_at(store, document, at + seconds).life


def test_a_process_that_can_be_seen_runs_until_it_is_killed(hold, tmp_path):
    process = hold()
    store = open_store(str(tmp_path / "state"))
    assert owner_of(store).runs == "running"
    process.kill()
    process.wait(PATIENCE)
    assert owner_of(store).runs == "gone"


def test_a_recycled_process_id_is_not_the_process_that_has_claimed_the_state(tmp_path):
    store = open_store(str(tmp_path / "state"))
    claim_epoch(store)
    assert owner_of(store).runs == "running"
    store.publish("epochs/0000000002.json", with_checksum(claim(store, started="1")))
    assert owner_of(store).runs == "gone"


def test_a_query_in_another_container_of_the_same_host_name_lives_while_its_heart_beats(
    hold, tmp_path
):
    probe = [*UNSHARE, "true"]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False).returncode:
        pytest.skip("no process namespaces here")
    process = hold(*UNSHARE)
    store = open_store(str(tmp_path / "state"))
    owner = owner_of(store)
    assert owner.runs == "unknown"
    assert "its last heartbeat was" in str(owner)
    process.kill()
    process.wait(PATIENCE)
    assert life_after_the_last_beat(store, ALIVE_SECONDS - 1) == "unknown"
    assert life_after_the_last_beat(store, ALIVE_SECONDS + 1) == "gone"


def test_a_copied_claim_owns_nothing_as_soon_as_no_heart_beats_in_the_copy(hold, tmp_path):
    hold()
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    copy = open_store(str(tmp_path / "copy"))
    assert owner_of(open_store(str(tmp_path / "state"))).runs == "running"
    assert f"of the state at {tmp_path}/state" in str(owner_of(copy))
    assert life_after_the_last_beat(copy, ALIVE_SECONDS + 1) == "gone"


def test_one_heartbeat_is_kept_and_those_of_earlier_epochs_go():
    store, now = MemoryStateStore("/ck/sluice"), [1000.0]
    for epoch in (1, 2):
        heartbeat = Heartbeat(store, epoch, lambda: 1.0, lambda: now[0])
        for _ in range(5):
            heartbeat.beat()
            heartbeat.beat()
            now[0] += HEARTBEAT_SECONDS
    assert store.list("heartbeats") == ["0000000002-0000000005.json"]


def test_a_wall_clock_that_is_set_silences_no_heartbeat():
    store, wall, passed = MemoryStateStore("/ck/sluice"), [1_000_000.0], [50.0]
    heartbeat = Heartbeat(store, 1, lambda: wall[0], lambda: passed[0])
    for jump in (0.0, 7200.0, -7200.0, -3600.0):
        wall[0] += jump
        for _ in range(3):
            before = dict(store.objects)
            heartbeat.beat()
            assert store.objects != before
            wall[0] += HEARTBEAT_SECONDS
            passed[0] += HEARTBEAT_SECONDS
