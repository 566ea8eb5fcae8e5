"""A key distribution centre of MIT's Kerberos on loopback, and a cluster of HDFS that needs it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.patience import wait_until

REALM = "SLUICE.TEST"
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
            **os.environ,
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        }
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "not secret")
        self._process = subprocess.Popen(
            [_program("krb5kdc"), "-n"], env=self.environment, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: _answers(port))

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
        command = [_program(program), *arguments]
        subprocess.run(command, env=self.environment, check=True, capture_output=True, timeout=60)

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


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
