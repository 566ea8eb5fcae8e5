"""Makes the virtual environment of this checkout and installs the project into it, editable.

Runs on the machine's own Python, so it uses nothing but the standard library.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Prepare the environment in the folder that the first argument names.

    The others are requirements that go before those of the project, such as an older PySpark; or
    `--only EXTRA` for the packages of an extra, without the project and what it needs itself.
    """
    venv, only = (ROOT / arguments[0]).resolve(), arguments[1:2] == ["--only"]
    try:
        _make(venv)
        if only:
            _pip(venv, _packages_of(arguments[2]))
            return 0
        _install(venv, arguments[1:])
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"sluice: `{command}` failed with status {error.returncode}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    _link(venv)
    _compile(venv)
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


def _install(venv: Path, first: list[str]) -> None:
    print("installing pyspark-sluice and its tools (the first time takes a minute)", flush=True)
    _pip(venv, ["--editable", f"{ROOT}[dev]", *first])


def _pip(venv: Path, what: list[str]) -> None:
    python = str(venv / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-compile", *what], check=True)
    # pip would do it in one process, and the packages' own tests with it.
    compile_all = [python, "-m", "compileall", "-qq", "-j", "0", "-x", "/tests?/"]
    subprocess.run([*compile_all, str(venv / "lib")], check=False)


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


def _compile(venv: Path) -> None:
    """What pip does with a package that is not editable: a process of Spark's starts faster."""
    rooms = [marker.parent for marker in ROOT.glob("*/__init__.py")]
    command = [str(venv / "bin" / "python"), "-m", "compileall", "-q"]
    subprocess.run([*command, *rooms, *ROOT.glob("*.py")], check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
