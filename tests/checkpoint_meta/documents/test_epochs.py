"""Who owns a state directory, whether that process runs, and in which format the state is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_sluice.checkpoint_meta.documents import epochs
from pyspark_sluice.checkpoint_meta.documents.checksummed_json import (
    with_checksum,
    without_checksum,
)
from pyspark_sluice.checkpoint_meta.documents.epochs import (
    KEPT,
    check_not_fenced,
    claim_epoch,
    claim_of,
    open_format,
)
from pyspark_sluice.checkpoint_meta.documents.heartbeat import (
    ALIVE_SECONDS,
    HEARTBEAT_SECONDS,
    Heartbeat,
    beats_of,
    look_at,
)
from pyspark_sluice.checkpoint_meta.stores.open_store import RetryingStateStore, open_store
from pyspark_sluice.checkpoint_meta.stores.testing import MemoryStateStore
from pyspark_sluice.connector.query.owner import owner_of
from pyspark_sluice.errors import FencedError, StateCorruptError, StateError, StateVersionError
from pyspark_sluice.tests.patience import PATIENCE


@pytest.fixture
def store():
    return MemoryStateStore("/ck/sluice")


def test_a_new_directory_gets_its_format_and_keeps_it(store):
    for _ in range(2):
        open_format(store)
        assert store.objects == {"FORMAT": b'{"format": 1}\n'}


def test_a_directory_of_a_newer_release_is_refused_with_both_versions_named(store):
    store.publish("FORMAT", b'{"format": 4}\n')
    with pytest.raises(StateVersionError, match=r"found format version 4; expected at most .* 1"):
        open_format(store)


@pytest.mark.parametrize("content", [b"[]", b"{}", b"null", b'{"format": "x"}', b"\xff"])
def test_a_damaged_format_is_named(store, content):
    store.publish("FORMAT", content)
    with pytest.raises(StateCorruptError, match="/ck/sluice/FORMAT"):
        open_format(store)


@pytest.mark.parametrize("content", [b"", b'{"form', b'{"format": 1}'])
def test_a_format_that_is_cut_short_does_not_stop_a_restart(store, content, caplog):
    store.publish("FORMAT", content)
    open_format(store)
    assert "/ck/sluice/FORMAT is truncated" in caplog.text


def test_a_lost_format_is_restored_from_the_claims_and_never_made_newer(store, caplog):
    open_format(store)
    claim_epoch(store)
    store.delete("FORMAT")
    open_format(store)
    assert store.objects["FORMAT"] == b'{"format": 1}\n'
    assert "/ck/sluice/FORMAT is lost; restored from the claims" in caplog.text
    store.delete("FORMAT")
    newer = with_checksum(
        {**without_checksum(store.read("epochs/0000000001.json")), "format": 4, "epoch": 2}
    )
    store.publish("epochs/0000000002.json", newer)
    with pytest.raises(StateVersionError, match="found format version 4"):
        open_format(store)
    assert store.objects["FORMAT"] == b'{"format": 4}\n'


def test_an_epoch_is_claimed_by_one_thread_only(store):
    shared = RetryingStateStore(store)
    with ThreadPoolExecutor(8) as pool:
        claimed = pool.map(lambda _: claim_epoch(shared), range(8))
    assert sorted(claimed) == list(range(1, 9))


def test_superseded_claims_go_and_the_superseded_still_find_out(store):
    for number in range(1, 41):
        assert claim_epoch(store) == number
        check_not_fenced(store, number)
    assert len(store.list("epochs")) == KEPT
    with pytest.raises(FencedError, match=r"found epoch 40 claimed by process \d+ on .*epoch 1"):
        check_not_fenced(store, 1)


def test_a_number_that_is_free_only_because_it_was_deleted_is_not_claimed(store):
    for _ in range(5):
        claim_epoch(store)

    class Sleeper(MemoryStateStore):
        """Falls asleep between the listing and the claim, while forty others come and go."""

        def __init__(self):
            super().__init__(store.location)
            self.objects = store.objects
            self.slept = False

        def publish(self, name, data):
            if not self.slept:
                self.slept = True
                for _ in range(40):
                    claim_epoch(store)
            super().publish(name, data)

    assert claim_epoch(Sleeper()) == 46


@pytest.mark.parametrize("name", ["lost+found", "0000000009.json.tmp", "x.json", "²"])
def test_what_does_not_belong_into_the_directory_of_epochs_is_no_epoch(store, name):
    store.publish(f"epochs/{name}", b"")
    assert claim_epoch(store) == 1


@pytest.mark.parametrize("content", [b"", b'{"host": "a', b"[]", b"{}", b"\xff"])
def test_a_torn_claim_supersedes_all_the_same_and_blocks_nobody(store, content):
    first = claim_epoch(store)
    store.publish("epochs/0000000002.json", content)
    with pytest.raises(FencedError, match="epoch 2 claimed by a query whose claim cannot be"):
        check_not_fenced(store, first)
    assert claim_epoch(store) == 3


def test_a_store_that_creates_twice_is_refused_at_the_first_claim(store):
    class Careless(MemoryStateStore):
        """A server that ignores the condition of a write."""

        def publish(self, name, data):
            self.objects[name] = data

    with pytest.raises(StateError, match=r"allowed an object to be created twice.*If-None-Match"):
        claim_epoch(Careless())


def test_a_second_creation_is_tried_once_on_a_file_system_and_else_at_each_claim(
    store, tmp_path, monkeypatch
):
    monkeypatch.setattr(epochs, "_exclusive", set())

    def creations(claimed):
        names, real = [], claimed.publish

        def publish(name, data):
            names.append(name)
            real(name, data)

        with monkeypatch.context() as patch:
            patch.setattr(claimed, "publish", publish)
            claim_epoch(claimed)
        return len(names)

    places = [open_store(str(tmp_path / name)) for name in "ab"]
    assert [creations(each) for each in (*places, *places)] == [2, 1, 1, 1]
    assert [creations(store) for _ in range(2)] == [2, 2]


def test_a_damaged_claim_counts_by_its_name(store):
    epoch = claim_epoch(store, nonce="mine")
    claim = store.objects["epochs/0000000001.json"]
    for damaged in (b"\xff{", claim.replace(b"mine", b"mile")):
        store.objects["epochs/0000000001.json"] = damaged
        check_not_fenced(store, epoch, "mine")


def test_a_claim_that_an_old_listing_still_shows_is_gone(store, monkeypatch):
    epoch = claim_epoch(store, nonce="mine")
    store.delete("epochs/0000000001.json")
    monkeypatch.setattr(store, "list", lambda _: ["0000000001.json"])
    with pytest.raises(FencedError, match="no longer in the state directory"):
        check_not_fenced(store, epoch, "mine")


def test_a_claim_that_is_refused_for_ever_ends_by_name():
    class Refusing(MemoryStateStore):
        """Says of everything that it is there, and shows nothing."""

        def publish(self, name, data):
            raise FileExistsError(name)

    pauses: list[float] = []
    with pytest.raises(StateError, match="no number could be taken"):
        claim_epoch(Refusing(), sleep=pauses.append)
    assert len(pauses) == 32


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


@pytest.mark.parametrize("has_ended", [False, True])
def test_heartbeats_of_a_claim_that_a_restore_has_lost_say_nothing_of_the_next_one(has_ended):
    store = MemoryStateStore("/ck/sluice")
    lost = Heartbeat(store, 1, lambda: 1.0, nonce="lost")
    for _ in range(3):
        lost.beat(is_due=True)
    if has_ended:
        lost.end({})
    claim_epoch(store, nonce="new")
    elsewhere = {**claim_of(store, 1), "host": "other"}
    at = elsewhere["claimed"]
    assert look_at(store, elsewhere, at + 1).life == "unknown"
    before = beats_of(store, 1)
    Heartbeat(store, 1, lambda: at + ALIVE_SECONDS, nonce="new").beat()
    assert look_at(store, elsewhere, at + ALIVE_SECONDS + 1).life == "unknown"
    assert beats_of(store, 1) != before


def test_one_heartbeat_is_kept_and_those_of_earlier_epochs_go():
    store, now = MemoryStateStore("/ck/sluice"), [1000.0]
    for epoch in (1, 2):
        heartbeat = Heartbeat(store, epoch, lambda: 1.0, lambda: now[0])
        for _ in range(5):
            heartbeat.beat()
            heartbeat.beat()
            now[0] += HEARTBEAT_SECONDS
    assert store.list("heartbeats") == ["0000000002-0000000005.json"]
