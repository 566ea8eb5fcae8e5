"""`sluice runbook`: what to do about an error or an alert, out of the page in the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated

from ....errors import OptionError
from ..answer import Answer, Page
from ..arguments import argument

_PACKAGE = __name__.partition(".")[0]


def sections_about(words: str) -> str:
    """Return the sections of the runbook whose heading contains these words; the page for none.

    Raises:
        OptionError: no heading contains them.
    """
    page = files(_PACKAGE).joinpath("docs/runbook.md").read_text(encoding="utf-8")
    if not words:
        return page
    sections = list(_sections(page))
    chosen = [text for heading, text in sections if words.lower() in heading.lower()]
    if not chosen:
        headings = ", ".join(heading for heading, _ in sections)
        raise OptionError("the runbook has no such heading", "", words, f"one of: {headings}")
    return "\n".join(chosen)


def _sections(page: str) -> Iterator[tuple[str, str]]:
    """Yield each heading, and its text with the sections below it."""
    # Comments tell the tests of the documentation what to do with a block.
    page = re.sub(r"(?s)<!--.*?-->\n", "", page)
    headings = list(re.finditer(r"(?m)^(#{2,}) (.+)$", page))
    for number, heading in enumerate(headings):
        following = (later for later in headings[number + 1 :] if len(later[1]) <= len(heading[1]))
        end = next((later.start() for later in following), len(page))
        yield heading[2], page[heading.start() : end].rstrip() + "\n"


def runbook(
    words: Annotated[
        str, argument("WORDS", "Show the sections whose heading contains this: FencedError.")
    ] = "",
) -> Answer:
    """Show what to do about an error or an alert.

    Without an argument, show the whole page.
    """
    text = sections_about(words)
    return Answer({"sections": text}, [Page(text)])
