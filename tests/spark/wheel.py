"""The files of the wheel, as a user ships them to a cluster."""

from __future__ import annotations

import configparser
import zipfile
from pathlib import Path

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
