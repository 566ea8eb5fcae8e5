"""Every code block of README and docs that is not taken from a program runs, page by page."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pyspark_sluice.tests.pages import Block, blocks, pages
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.thorough import sampled

BLOCKS = [block for page in pages() for block in blocks(page)]
RUN = [block for block in BLOCKS if block.is_run]
SHOWN = {
    str(command): output.code
    for command, output in itertools.pairwise(BLOCKS)
    if (command.page, command.language, output.language) == (output.page, "sh", "text")
}
"""Commands -> the output that their page shows directly after them."""

PAGES = {page: list(group) for page, group in itertools.groupby(RUN, lambda block: block.page)}


@pytest.mark.parametrize(
    "page",
    sampled(PAGES, ["README.md"].__contains__, reason="what other pages show has tests of its own"),
)
def test_the_code_of_a_page_runs(spark, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    places = {name: str(tmp_path / name) for name in ("landing", "checkpoint", "table")}
    names = {"spark": spark, **places}
    for block in PAGES[page]:
        if block.language == "sh":
            # What a setup has named, too.
            _shell(block, {name: value for name, value in names.items() if type(value) is str})
        else:
            exec(compile(block.code, str(block), "exec"), names)


def _shell(block: Block, places: dict[str, str]) -> None:
    # The shell finds what a person has after activating the environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", block.code],
        env={**os.environ, **places, "PATH": path},
        check=False, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, f"{block}: {ran.stderr}"
    assert ran.stdout.strip(), f"{block}: it said nothing"
    if shown := SHOWN.get(str(block)):
        assert _without_figures(ran.stdout) == _without_figures(shown)


def _without_figures(text: str) -> str:
    """Sizes and times differ from run to run, and the home of the files."""
    return re.sub(r"\d[\d.,]*|/\S+/", "0", text)
