"""OpenSSH's sshd on loopback, for one user: the one who runs the tests."""

from __future__ import annotations

import getpass
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

from pyspark_sluice.tests.patience import answers, wait_until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class SshServer:
    """Its files are those of this machine."""

    def __init__(self, home: Path) -> None:
        assert SSHD is not None
        self.port = random.SystemRandom().randrange(10_000, 32_000)
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True
            )
        public = (home / "host.pub").read_text().split()[:2]
        (home / "known").write_text(f"[127.0.0.1]:{self.port} {' '.join(public)}\n")
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": home / "host",
            "PidFile": "none",
            "AuthorizedKeysFile": home / "user.pub",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "Subsystem": "sftp internal-sftp",
            "MaxStartups": "100",
        }
        (home / "conf").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with (home / "log").open("w") as log:
            self._process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(home / "conf")], stderr=log
            )
        wait_until(lambda: answers(self.port), (home / "log").read_text)
        self.authority = f"{getpass.getuser()}@127.0.0.1:{self.port}"
        self.options = {"key_filename": str(home / "user"), "known_hosts": str(home / "known")}

    def cut(self) -> None:
        """End all sessions."""
        found = subprocess.run(
            ["ps", "--ppid", str(self._process.pid), "-o", "pid="],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        for pid in found.stdout.split():
            os.kill(int(pid), signal.SIGKILL)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
