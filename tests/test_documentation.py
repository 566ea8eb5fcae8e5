"""The documentation is true: tables are current, the quick start runs as it stands."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _options_table():
    spec = importlib.util.spec_from_file_location("options_table", ROOT / "tools/options_table.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["README.md", "docs/options.md"])
def test_the_options_tables_are_current(name):
    tool = _options_table()
    path = ROOT / name
    assert path.read_text() == tool.updated(path, tool.documents()[path]), (
        "run: python tools/options_table.py"
    )


def test_every_option_is_in_the_whole_table_once():
    tool = _options_table()
    shown = [name for names in tool.groups().values() for name in names]
    assert sorted(shown) == sorted(tool.SluiceOptions.model_fields)


def test_every_document_that_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_every_file_that_is_named_anywhere_is_there():
    # In docstrings, too: beside the file, or below any folder that it is in.
    missing = []
    for path in _texts():
        folders = [folder for folder in path.parents if folder.is_relative_to(ROOT)]
        names = re.findall(r"`([\w./-]+\.(?:py|md))`", path.read_text(encoding="utf-8"))
        lost = [n for n in names if not any((folder / n).exists() for folder in folders)]
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in lost]
    assert missing == []


def _texts():
    for path in [*ROOT.rglob("*.py"), *ROOT.rglob("*.md")]:
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            yield path


def test_the_example_is_the_quick_start():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert (ROOT / "examples" / "quickstart.py").read_text() == code
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_the_page_of_a_newcomer_begins_with_the_error_of_a_newcomer():
    text = (ROOT / "docs" / "it-does-not-start.md").read_text()
    assert "DATA_SOURCE_NOT_FOUND" in re.findall(r"^## (.*)$", text, re.MULTILINE)[0]
