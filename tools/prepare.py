"""Makes the virtual environment of this checkout and installs the project into it, editable.

Runs on the machine's own Python, so it uses nothing but the standard library.
"""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

UV_FOR_PIP = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""The variables by which uv takes what this machine has set for pip."""


def main(arguments: list[str]) -> int:
    """Prepare the environment in the folder that the first argument names.

    The others are requirements that go before those of the project, such as an older PySpark; or
    `--only EXTRA` for the packages of an extra, without the project and what it needs itself; or
    `--extras EXTRAS` for the project with these, instead of all that its tests need.
    """
    venv, *chosen = (ROOT / arguments[0]).resolve(), *arguments[1:]
    try:
        _make(venv)
        if chosen[:1] == ["--only"]:
            install(venv, _packages_of(chosen[1]))
            return 0
        print("installing pyspark-sluice and what it needs (a minute or two)", flush=True)
        extras, first = (chosen[1], []) if chosen[:1] == ["--extras"] else ("dev", chosen)
        install(venv, ["--editable", f"{ROOT}[{extras}]", *first])
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"sluice: `{command}` failed with status {error.returncode}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    _link(venv)
    return 0


def _make(venv: Path) -> None:
    if _has_pip(venv):
        return
    print(f"making {venv.name} with Python {sys.version.split()[0]}", flush=True)
    # Debian and Ubuntu ship the module venv without the ensurepip that it calls.
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=False, stdout=-3)
    if made.returncode == 0 and _has_pip(venv):
        return
    other = subprocess.run(
        [sys.executable, "-m", "virtualenv", "--clear", venv], check=False, stdout=-3, stderr=-3
    )
    if other.returncode != 0 or not _has_pip(venv):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        msg = (
            f"{sys.executable} cannot make a virtual environment with pip. On Debian and Ubuntu: "
            f"sudo apt-get install python{version}-venv"
        )
        raise RuntimeError(msg)


def _has_pip(venv: Path) -> bool:
    python = venv / "bin" / "python"
    if not python.exists():
        return False
    check = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", check], check=False, stderr=-3).returncode == 0


def install(venv: Path, packages: list[str]) -> None:
    """With uv, which takes a third of the time; with pip where uv cannot be had, or fails."""
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    uv = [str(venv / "bin" / "uv"), "pip", "install", "--quiet", "--python", python]
    # PySpark comes as source; to compress its wheel is most of the work, and for nothing.
    uv += ["--config-settings-package", "pyspark:--build-option=--compression=stored"]
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], check=True, stdout=-1, text=True
    )
    settings = {**settings_of_uv(listed.stdout), **os.environ}
    if subprocess.run([*pip, "uv"], check=False, stderr=-3).returncode == 0:
        if subprocess.run([*uv, *packages], check=False, env=settings).returncode == 0:
            return
        print("sluice: uv has failed, as above; now with pip", file=sys.stderr, flush=True)
    subprocess.run([*pip, *packages], check=True)


def settings_of_uv(listed: str) -> dict[str, str]:
    """Read what `pip config list` has printed; the environment goes before files."""
    settings: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, equals, value = line.partition("=")
        name = UV_FOR_PIP.get(key.rpartition(".")[2])
        if equals and name is not None:
            values = str(ast.literal_eval(value)).split()
            settings[name] = ("," if name == "UV_FIND_LINKS" else " ").join(values)
    if "UV_INDEX" in settings:
        # As pip does: the newest of all indexes.
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return settings


def _packages_of(extra: str) -> list[str]:
    setup = configparser.RawConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options.extras_require"][extra].splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _link(venv: Path) -> None:
    """Give the root its import name on a path of its own, under any folder name.

    mypy needs that, and so does Spark, which finds sources by looking through the path: an
    editable install alone can be imported, but not found.
    """
    link = venv / "typing" / "pyspark_sluice"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(ROOT, target_is_directory=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "pyspark_sluice_checkout.pth").write_text(f"{link.parent}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
