"""The package, as a user ships it to a cluster whose Python lacks it."""

from __future__ import annotations

import configparser
import os
import site
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

from pyspark_sluice.tests.spark_home import quick_environment

ROOT = Path(__file__).resolve().parents[2]


def wheel_files() -> dict[str, Path]:
    """By their names in the wheel."""
    setup = configparser.RawConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    data = setup["options.package_data"]
    found = {}
    for package in setup["options"]["packages"].split():
        folder = ROOT.joinpath(*package.split(".")[1:])
        named = [folder / name for name in data.get(package, "").split()]
        for path in (*folder.glob("*.py"), *named):
            found[f"pyspark_sluice/{path.relative_to(ROOT)}"] = path
    return found


def write_zip(target: Path) -> Path:
    """One top folder of the import name."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, path in wheel_files().items():
            archive.write(path, name)
    return target


def lacking(home: Path) -> Path:
    """The interpreter of an environment that has everything but this package."""
    packages = home / "packages"
    packages.mkdir()
    for folder in site.getsitepackages():
        for entry in Path(folder).iterdir():
            if "sluice" not in entry.name and entry.suffix != ".pth":
                (packages / entry.name).symlink_to(entry)
    venv.create(home / "environment", with_pip=False, symlinks=True)
    (other,) = (home / "environment").glob("lib/python3*/site-packages")
    (other / "others.pth").write_text(f"{packages}\n")
    python = home / "environment" / "bin" / "python"
    looked = [str(python), "-c", "import pyarrow, pyspark, pydantic; import pyspark_sluice"]
    ran = subprocess.run(looked, env=bare(), capture_output=True, text=True, check=False)
    assert "No module named 'pyspark_sluice'" in ran.stderr, ran.stderr
    return python


def bare(**more: str) -> dict[str, str]:
    """The environment without what could help a Python to find the package."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYSPARK_", "SPARK_", "PYTHON", "SLUICE_"))
    }
    return {**kept, **quick_environment(), **more}


def pack(home: Path, python: Path) -> Path:
    """An environment that can be moved, as conda-pack and venv-pack make them.

    It is unpacked as `environment` next to the archive.
    """
    made = home / "made" / "environment"
    (made / "bin").mkdir(parents=True)
    wrapper = made / "bin" / "python"
    wrapper.write_text(
        "#!/bin/sh\n"
        'PYTHONPATH="$(cd "$(dirname "$0")/../lib" && pwd):$PYTHONPATH" '
        f'exec {python} "$@"\n'
    )
    wrapper.chmod(0o755)
    for name, path in wheel_files().items():
        target = made / "lib" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    packed = made.with_suffix(".tar.gz")
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(made, ".")
    return packed
