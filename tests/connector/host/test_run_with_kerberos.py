"""`sluice run` with files, state and table on an HDFS that asks for Kerberos."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter

import pytest

from pyspark_sluice.tests.connector.host.kdc import REALM, Kdc, secured_hdfs
from pyspark_sluice.tests.thorough import HDFS

pytest.importorskip("hdfs_native")
pytestmark = HDFS

FEED = f"feed@{REALM}"

_LAND = """
import json, sys
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
storage, root = open_storage(sys.argv[1], {})
for number in map(int, sys.argv[2:]):
    lines = (json.dumps({"id": number * 10 + i, "text": "row"}) for i in range(10))
    storage.create(f"{root}/in/{number:03}.json", "\\n".join(lines).encode())
"""

_READ = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark_sluice import tables
from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
storage, root = open_storage(sys.argv[1], {})
for path in tables.manifest(f"{sys.argv[1]}/table/_sluice").paths():
    for row in pq.read_table(pa.BufferReader(storage.whole(storage.name(path)))).to_pylist():
        print(row["id"])
"""

_OWNERS = """
import sys
from hdfs_native import Client
for status in Client(sys.argv[1]).list_status("/" + sys.argv[1].split("/")[3] + "/table"):
    print(status.owner)
"""


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    centre = Kdc(tmp_path_factory.mktemp("kdc"))
    yield centre
    centre.close()


@pytest.fixture(scope="module")
def cluster(kdc, tmp_path_factory):
    secured = secured_hdfs(kdc, tmp_path_factory.mktemp("hdfs"))
    yield secured
    secured.close()


@pytest.fixture(scope="module")
def keytab(kdc):
    return kdc.keytab("feed", FEED)


class SecuredQuery:
    """One query below a directory of the cluster, and who asks."""

    def __init__(self, kdc, cluster, cache):
        self.home = self.output = f"hdfs://{cluster.authority}/{uuid.uuid4().hex}"
        self.environment = {
            **kdc.environment,
            "HADOOP_CONF_DIR": str(cluster.configuration),
            "KRB5CCNAME": str(cache),
        }

    def land(self, *numbers):
        self._python(_LAND, self.home, *map(str, numbers))

    def ids(self):
        return Counter(int(line) for line in self._python(_READ, self.output).split())

    def owners(self):
        return set(self._python(_OWNERS, self.output).split())

    def _python(self, program, *arguments):
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True, timeout=120
        ).stdout

    def start(self, *more, **environment):
        command = [sys.executable, "-m", "pyspark_sluice", "run", f"{self.home}/in"]
        command += ["--to", f"parquet:{self.output}/table", "--checkpoint", f"{self.output}/ck"]
        command += ["--schema", "id long, text string", *more]
        return subprocess.Popen(
            command, env={**self.environment, **environment}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, *more, **environment):
        process = self.start(*more, **environment)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output, errors


@pytest.fixture
def query(kdc, cluster, keytab):
    return SecuredQuery(kdc, cluster, kdc.cache(keytab, FEED))


def due(count):
    return Counter(range(10 * count))


def test_a_ticket_in_the_cache_is_taken(query):
    query.land(0, 1)
    assert query.run()[::2] == (0, "")
    query.land(2)
    assert query.run("--workers", "2")[::2] == (0, "")
    assert query.ids() == due(3)


def test_without_a_ticket_the_error_says_so_and_nothing_is_lost(query, tmp_path):
    query.land(0)
    assert query.run()[0] == 0
    query.land(1)
    code, _, errors = query.run(KRB5CCNAME=str(tmp_path / "none"))
    assert code == 1
    assert "GSS_S_NO_CRED" in errors
    assert "Repair access" in errors
    assert query.run()[0] == 0
    assert query.ids() == due(2)


def test_a_state_belongs_to_its_owner(query, kdc, cluster):
    other = f"other@{REALM}"
    query.land(0)
    assert query.run()[0] == 0
    cache = kdc.cache(kdc.keytab("other", other), other)
    query.land(1)
    code, _, errors = query.run(KRB5CCNAME=str(cache))
    assert code == 1
    assert "Permission denied: user=other, access=WRITE" in errors


def test_tickets_of_a_keytab_are_renewed_while_a_run_goes_on(kdc, cluster, tmp_path):
    brief = f"brief@{REALM}"
    keytab = kdc.keytab("brief", brief, life="15 seconds")

    def land(number):
        kdc.cache(keytab, brief)
        query.land(number)

    query = SecuredQuery(kdc, cluster, keytab.with_suffix(".cache"))
    land(0)
    options = json.dumps({"kerberos_principal": brief, "kerberos_keytab": str(keytab)})
    process = query.start(
        f"--option=storageOptions={options}", "--every=1s", KRB5CCNAME=str(tmp_path / "none")
    )
    for number in range(1, 5):
        time.sleep(15)
        assert process.poll() is None, process.communicate()
        land(number)
    time.sleep(15)
    os.killpg(process.pid, signal.SIGTERM)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    # What landed last, if it was not there in time.
    kdc.cache(keytab, brief)
    assert query.run()[::2] == (0, "")
    kdc.cache(keytab, brief)
    assert query.ids() == due(5)


def test_delegation_tokens_of_a_file_are_taken(query, cluster, tmp_path):
    query.land(0)
    tokens = tmp_path / "tokens"
    cluster.tell(f"tokens {tokens}")
    environment = {"KRB5CCNAME": str(tmp_path / "none"), "HADOOP_TOKEN_FILE_LOCATION": str(tokens)}
    assert query.run(**environment)[::2] == (0, "")
    assert query.ids() == due(1)


def test_a_user_acts_for_another_one(query):
    query.land(0)
    query.output += "-of-the-owner"
    assert query.run(HADOOP_PROXY_USER="owner")[::2] == (0, "")
    assert query.owners() == {"owner"}
    assert query.ids() == due(1)
