"""The packaging metadata fits the tree."""

from __future__ import annotations

import configparser
import email
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark_sluice
from pyspark_sluice.tests.repository import ROOT

IMPORTED = re.compile(r"(?m)^ *(?:from|import) ([a-z][\w.]*)(?: import .*| as \w+)?(?: *#.*)?$")
NOT_SHIPPED = {"benchmarks", "build", "docs", "examples", "tests", "tools"}


def _setup() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def test_every_package_of_the_tree_is_listed():
    found = {"pyspark_sluice"}
    for marker in ROOT.glob("*/**/__init__.py"):
        parts = marker.parent.relative_to(ROOT).parts
        if parts[0] not in NOT_SHIPPED and not parts[0].startswith("."):
            found.add(".".join(("pyspark_sluice", *parts)))
    assert set(_setup()["options"]["packages"].split()) == found


def test_pip_never_replaces_the_pyspark_of_a_platform():
    setup = _setup()
    assert "pyspark" not in setup["options"]["install_requires"]
    extras = setup["options.extras_require"].items()
    asks = {name for name, lines in extras if re.search(r"^pyspark\b(?!-)", lines, re.MULTILINE)}
    assert asks == {"spark", "connect"}


def test_every_imported_library_is_declared():
    setup = _setup()
    extras = setup["options.extras_require"]
    shipped = [extras[name] for name in extras if name not in ("dev", "demo", "docs", "recipes")]
    declared = "\n".join([setup["options"]["install_requires"], *shipped])
    names = {
        re.split(r"[<>=;\[]", line)[0].strip().replace("-", "_") for line in declared.splitlines()
    }
    # Several distributions share the name azure, and others google and so on.
    shared = ("azure_", "google_", "openlineage_", "opentelemetry_")
    names |= {name.partition("_")[0] for name in names if name.startswith(shared)}
    imported = {
        # Several distributions share the name arro3.
        module.replace("arro3.", "arro3_").split(".")[0]
        for package in setup["options"]["packages"].split()
        for path in ROOT.joinpath(*package.split(".")[1:]).glob("*.py")
        for module in IMPORTED.findall(path.read_text(encoding="utf-8"))
    }
    assert {"pyarrow", "typer"} <= imported
    # Spark's own bridge comes with Spark, and half of boto3 is called botocore.
    # And grpcio is called grpc.
    known = {"py4j", "botocore", "grpc", "pydantic_core", "pyspark_sluice"}
    assert imported - set(sys.stdlib_module_names) - known <= names


def test_a_package_index_shows_the_readme_and_the_supported_versions_of_python(tmp_path):
    checkout = tmp_path / "checkout"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", *NOT_SHIPPED)
    shutil.copytree(ROOT, checkout, ignore=left_out)
    program = (
        "from setuptools.build_meta import prepare_metadata_for_build_wheel as made; made('..')"
    )
    subprocess.run([sys.executable, "-c", program], cwd=checkout, check=True, capture_output=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    shown = email.message_from_string(metadata.read_text(encoding="utf-8"))
    assert str(shown.get_payload()).strip() == (ROOT / "README.md").read_text("utf-8").strip()
    assert "Programming Language :: Python :: 3.11" in shown.get_all("Classifier", [])


def test_package_data_is_there():
    for package, names in _setup()["options.package_data"].items():
        folder = ROOT.joinpath(*package.split(".")[1:])
        for name in names.split():
            assert (folder / name).is_file(), f"{package} lacks {name}"


def test_the_tests_run_against_this_checkout():
    assert Path(str(pyspark_sluice.__file__)).resolve().parent == ROOT
