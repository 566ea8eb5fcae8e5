"""The code blocks of README and docs, and what is said about each of them in front of it.

A comment in front of a block says how it is kept true:

    <!-- from: FILE -->          it is in that file, which a test runs
    <!-- not run: REASON -->     it cannot be run here

A block without one is run by `spark/test_pages_run.py`, in order, with the others of its page. What
the page takes for granted is made by a comment that begins with `setup` and goes on as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
RUNNABLE = ("python", "sh")
PASSIVE = ("text", "json", "ini", "toml", "yaml", "docker", "{toctree}")
"""What is in a page to be looked at: shapes of data, and the site's own directive."""

NEXT_TO_THE_CODE = (
    "benchmarks/notes",
    "enumerator/coordinator",
    "reader/files/formats",
    "tests/protocol",
)
"""Folders with pages for people who change Sluice."""


@dataclass(frozen=True)
class Block:
    """A block, or the setup in front of one."""

    page: str
    line: int
    language: str
    code: str
    source: str | None = None
    """The file that it is from."""

    reason: str | None = None
    """Why it is not run."""

    @property
    def is_run(self) -> bool:
        return self.language in ("setup", *RUNNABLE) and not self.source and not self.reason

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def user_pages() -> list[Path]:
    """The pages of the site, without the description of the state."""
    return sorted((ROOT / "docs").glob("*.md"))


def pages() -> list[Path]:
    """Everything whose blocks are kept true."""
    internal = (sorted((ROOT / folder).glob("*.md")) for folder in NEXT_TO_THE_CODE)
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *user_pages(), *chain(*internal)]


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The blocks of a page, in order; an indented one has the language `indented`."""
    return tuple(_blocks(page))


def _blocks(page: Path) -> Iterator[Block]:
    mark = ""
    name = page.relative_to(ROOT).as_posix()
    # What is in a line takes longer to parse than where blocks begin.
    parser = MarkdownIt("commonmark").disable(["inline", "text_join"])
    for token in parser.parse(page.read_text(encoding="utf-8")):
        line = (token.map or [0])[0] + 1
        if token.type == "html_block":
            mark = token.content.strip()
            if setup := re.fullmatch(r"<!-- setup\n(.*)-->", mark, re.DOTALL):
                yield Block(name, line, "setup", setup[1])
            continue
        if token.type in ("fence", "code_block"):
            language = token.info.split(" ")[0] if token.type == "fence" else "indented"
            yield Block(
                name, line, language, token.content, _after("from", mark), _after("not run", mark)
            )
        mark = ""


def _after(word: str, mark: str) -> str | None:
    said = re.fullmatch(rf"<!-- {word}: (.*?) -->", mark, re.DOTALL)
    return said[1] if said else None
