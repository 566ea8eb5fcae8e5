"""A source is found by its name: ours, a class, or what an installed package announces."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_sluice.connector.options.model import SluiceOptions, parse_options
from pyspark_sluice.connector.source.file_source import ENTRY_POINTS, FileSource, load_source
from pyspark_sluice.errors import OptionError

SCHEMA = pa.schema([("value", pa.string())])


def _options(path: Path, source: str) -> SluiceOptions:
    texts = {"path": str(path / "in"), "checkpointlocation": str(path / "checkpoint")}
    return parse_options({**texts, "source": source}, streaming=True)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution in a directory of its own, with a good and a bad entry point."""
    site = tmp_path / "site"
    metadata = site / "announcing-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: announcing\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nannounced = announcing:Announced\nwrong = announcing:NUMBER\n"
        "broken = announcing:missing\n"
    )
    (site / "announcing.py").write_text(
        "from pyspark_sluice.connector.source.file_source import FileSource\n\n"
        "NUMBER = 5\n\n\n"
        "class Announced(FileSource):\n"
        "    pass\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "announcing", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("files", "FileSource"), ("announced", "Announced"), ("announcing:Announced", "Announced")],
)
def test_a_source_is_loaded_by_name_entry_point_and_class(
    installed: Path, name: str, kind: str
) -> None:
    source = load_source(_options(installed, name), SCHEMA)
    assert type(source).__name__ == kind
    assert isinstance(source, FileSource)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("unheard", "no entry point 'unheard'"),
        ("wrong", "5"),
        ("broken", "AttributeError"),
        ("announcing:missing", "AttributeError"),
        ("no_such_module:Source", "ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_loaded_is_named(installed: Path, name: str, found: str) -> None:
    with pytest.raises(OptionError, match="cannot load it") as caught:
        load_source(_options(installed, name), SCHEMA)
    assert found in str(caught.value)
    assert name in str(caught.value)
