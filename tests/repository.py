"""Where the files of the project are, for tests that look at them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent


def files(pattern: str) -> Iterator[Path]:
    """Those with a name like this, but for what tools keep in hidden folders."""
    yield from ROOT.glob(pattern)
    for folder in ROOT.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            yield from folder.rglob(pattern)


def tool(name: str) -> ModuleType:
    """The module of `tools/`, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
