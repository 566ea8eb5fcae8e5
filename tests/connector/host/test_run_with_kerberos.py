"""`sluice run`, alone and under Spark, with all of its files on an HDFS that asks for Kerberos."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.connector.host.query import Query
from pyspark_sluice.tests.patience import answers, wait_until
from pyspark_sluice.tests.thorough import HDFS

pytest.importorskip("hdfs_native")
pytestmark = HDFS

REALM = "SLUICE.TEST"
FEED = f"feed@{REALM}"
_NODE = f"nn/localhost@{REALM}"
_WEB = f"HTTP/localhost@{REALM}"

_CLIENT = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""

_SERVER = """
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principals
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
 }}
"""

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
    data = pa.BufferReader(storage.whole(storage.name(path)))
    # A thread of Arrow's that still holds the data when Python ends would abort the process.
    for row in pq.read_table(data, use_threads=False).to_pylist():
        print(row["id"])
"""

_OWNERS = """
import sys
from hdfs_native import Client
for status in Client(sys.argv[1]).list_status("/" + sys.argv[1].split("/")[3] + "/table"):
    print(status.owner)
"""


class Kdc:
    """The centre, with its principals; skips the test, by name, where a program is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for program in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit"):
            if not _program(program):
                pytest.skip(f"needs {program} of MIT's Kerberos (krb5-kdc, krb5-user on Debian)")
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        values = {"realm": REALM, "port": port, "folder": folder}
        self.configuration = folder / "krb5.conf"
        self.configuration.write_text(_CLIENT.format(**values))
        (folder / "kdc.conf").write_text(_SERVER.format(**values))
        self.environment = {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "not secret")
        self._process = subprocess.Popen(
            [_program("krb5kdc"), "-n"],
            env={**os.environ, **self.environment},
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: answers(port))

    def keytab(self, name: str, *principals: str, life: str = "1 day") -> Path:
        """Make principals, whose tickets live for so long; their keys in one file."""
        path = self.folder / f"{name}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-q", f'addprinc -randkey -maxlife "{life}" {principal}')
            self._run("kadmin.local", "-q", f"ktadd -k {path} {principal}")
        return path

    def cache(self, keytab: Path, principal: str) -> Path:
        """A credential cache, as `kinit` leaves it."""
        path = keytab.with_suffix(".cache")
        self._run("kinit", "-c", str(path), "-kt", str(keytab), principal)
        return path

    def _run(self, program: str, *arguments: str) -> None:
        command, environment = [_program(program), *arguments], {**os.environ, **self.environment}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def secured_hdfs(kdc: Kdc, folder: Path) -> MiniHdfs:
    """A NameNode and two DataNodes that take requests with a ticket only, and encrypt all data."""
    keytab = kdc.keytab("service", _NODE, _WEB)
    settings = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": "privacy",
        "hadoop.proxyuser.feed.hosts": "*",
        "hadoop.proxyuser.feed.users": "*",
        "dfs.data.transfer.protection": "privacy",
        "dfs.block.access.token.enable": "true",
        "dfs.web.authentication.kerberos.principal": _WEB,
        "dfs.web.authentication.kerberos.keytab": keytab,
        # The ports of DataNodes are not below 1024, and their pages have no certificate.
        "ignore.secure.ports.for.testing": "true",
        # Connections end soon, so that tickets are asked for again.
        "ipc.client.connection.maxidletime": "1000",
    }
    for node in ("namenode", "datanode"):
        settings |= {f"dfs.{node}.kerberos.principal": _NODE, f"dfs.{node}.keytab.file": keytab}
    java, *rest = mini_hdfs_command()
    command = [java, f"-Djava.security.krb5.conf={kdc.configuration}", *rest]
    return MiniHdfs(command, folder, "secured", *(f"{n}={v}" for n, v in settings.items()))


def _program(name: str) -> str:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


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


class SecuredQuery(Query):
    """One query below a directory of the cluster, and who asks."""

    def __init__(self, root, kdc, cluster, cache):
        super().__init__(root)
        self.home = f"hdfs://{cluster.authority}/{uuid.uuid4().hex}"
        self.source, self.output = f"{self.home}/in", self.home  # type: ignore[assignment]
        self.variables = {
            **kdc.environment,
            "HADOOP_CONF_DIR": str(cluster.configuration),
            "KRB5CCNAME": str(cache),
        }

    def start(self, *more, is_alone=True, **variables):
        self.checkpoint = f"{self.output}/ck"  # type: ignore[assignment]
        variables = {**self.variables, **variables}
        to = f"parquet:{self.output}/table"
        return super().start(*more, to=to, is_alone=is_alone, variables=variables)

    def put(self, *numbers):
        self._python(_LAND, self.home, *map(str, numbers))

    def ids(self):
        return Counter(int(line) for line in self._python(_READ, self.output).split())

    def owners(self):
        return set(self._python(_OWNERS, self.output).split())

    def _python(self, program, *arguments):
        command = [sys.executable, "-c", program, *arguments]
        environment = {**os.environ, **self.variables}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=120
        ).stdout


@pytest.fixture
def query(tmp_path, kdc, cluster, keytab):
    return SecuredQuery(tmp_path, kdc, cluster, kdc.cache(keytab, FEED))


def due(count):
    return Counter(range(10 * count))


def test_without_a_ticket_the_error_says_so_and_nothing_is_lost(query, tmp_path):
    query.put(0)
    assert query.run()[0] == 0
    query.put(1)
    code, _, errors = query.run(KRB5CCNAME=str(tmp_path / "none"))
    assert code == 1
    assert "GSS_S_NO_CRED" in errors
    assert "Repair access" in errors
    assert query.run("--workers", "2")[::2] == (0, "")
    assert query.ids() == due(2)


def test_tickets_of_a_keytab_are_renewed_while_a_run_goes_on(kdc, cluster, tmp_path):
    brief = f"brief@{REALM}"
    keytab = kdc.keytab("brief", brief, life="15 seconds")

    def land(number):
        kdc.cache(keytab, brief)
        query.put(number)

    query = SecuredQuery(tmp_path, kdc, cluster, keytab.with_suffix(".cache"))
    land(0)
    options = json.dumps({"kerberos_principal": brief, "kerberos_keytab": str(keytab)})
    process = query.start(
        f"--option=storageOptions={options}", "--every=1s", KRB5CCNAME=str(tmp_path / "none")
    )
    for number in (1, 2):
        time.sleep(15)
        assert process.poll() is None, process.communicate()
        land(number)
    time.sleep(5)
    os.killpg(process.pid, signal.SIGTERM)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    # What landed last, if it was not there in time.
    kdc.cache(keytab, brief)
    assert query.run()[::2] == (0, "")
    kdc.cache(keytab, brief)
    assert query.ids() == due(3)


def test_delegation_tokens_of_a_file_are_taken(query, cluster, tmp_path):
    query.put(0)
    tokens = tmp_path / "tokens"
    cluster.tell(f"tokens {tokens}")
    environment = {"KRB5CCNAME": str(tmp_path / "none"), "HADOOP_TOKEN_FILE_LOCATION": str(tokens)}
    assert query.run(**environment)[::2] == (0, "")
    assert query.ids() == due(1)


def test_a_query_of_spark_takes_a_ticket_and_a_keytab(query, kdc, keytab):
    in_jvm = f"-Djava.security.krb5.conf={kdc.configuration}"
    arguments = f"--driver-java-options {in_jvm} --conf spark.executor.extraJavaOptions={in_jvm}"
    spark = {"PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell"}
    # Spark's own part of the checkpoint asks with the ticket, Sluice's with the keytab.
    options = json.dumps({"kerberos_principal": FEED, "kerberos_keytab": str(keytab)})
    query.put(0, 1)
    code, _, errors = query.run(
        *("--spark", "local-cluster[1,1,1024]", f"--option=storageOptions={options}"),
        is_alone=False,
        **spark,
    )
    assert code == 0, errors
    assert query.ids() == due(2)


def test_a_user_acts_for_another_one(query):
    query.put(0)
    query.output += "-of-the-owner"
    assert query.run(HADOOP_PROXY_USER="owner")[::2] == (0, "")
    assert query.owners() == {"owner"}
    assert query.ids() == due(1)
