"""README, docs, messages and comments use the words that a reader would search for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from pyspark_sluice.tests.pages import pages

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = (
    "checkpoint_meta",
    "connector",
    "enumerator",
    "reader",
    "tables",
    "tests",
    "benchmarks",
    "examples",
    "tools",
)

WORDS = {
    r"virtual machines?": "the JVM",
    r"(of|by) (yours|ours)": "your, a ... that Sluice writes",
    r"should (it|they|this|that) not": "if it does not ..., see",
    r"on from here|where the data go": "next steps; writing to a sink",
    r"in silence": "no silent data loss; silently",
    r"a (third|tenth|fiftieth|hundredth) of spark's|spark's time": "50 times faster",
    r"by what is seen first": "find your symptom",
    r"(is|are|was|were|be|being|been) told": "is reported; the reader learns; pass (a value)",
    r"stands?|stood": "is in, is at, means",
    r"anew|once more": "again",
    r"(let|lets|letting) go|go of": "delete, release, prune",
    r"whoever|whomever|whatever comes|whatever": "anyone who; any",
    r"lest": "so that ... not",
    r"thus": "so",
    r"besides?": "next to; also",
    r"wherever": "where",
    r"there (is|are) none|(?-i:is none|are none)": "there is no ...; is not a column",
    r"through with|is through|are through": "has finished",
    r"has come to": "progress",
    r"does not get done|get done": "timed out",
    r"the place is in use": "the target directory is not empty",
    r"(go|goes|going|went|gone) on from": "resumes from",
    r"for good|in vain": "permanently; without effect",
    r"message alone|not the way it took": "the error message without the traceback",
    r"(hold|holds|held|hang|hangs) together": "both limits apply",
    r"a mixture|a way|a half|(?-i:halves)": "say what it is",
    r"(?<!there[ ])is no (date|hour|time ?zone|timestamp|object|event|number)": "is not a",
    r"between which there is": "is not before",
    r"places? apart|keep [a-z ]+ apart": "a separate directory; exclude",
    r"did not want": "did not read",
    r"too late for (?:its|their) place": "too late for its event time",
    r"to go on with|goes on with version": "to continue with",
    r"(?:can|cannot) be read on": "resume reading",
    r"give (?:it|them) (?:one|another)(?= ?[:.])": "set its ...",
    r"(?:it|which|that) does not know it": "does not support it",
    r"sign of life": "heartbeat",
    r"(?:the one that|what) is meant": "the expected one",
    r"it (?:does|do) not exist here": "Sluice does not have it",
}
"""Idiom -> what to write. A pattern is matched as whole words, in any case, across line ends."""

PATTERN = re.compile(
    rf"\b(?:{'|'.join(rf'(?:{words})' for words in WORDS)})\b".replace(" ", r"\s+"), re.IGNORECASE
)


def idioms(text: str) -> list[str]:
    """Every occurrence of the list in `text`."""
    return [match.group() for match in PATTERN.finditer(text)]


@pytest.mark.parametrize(
    "page",
    [
        *sorted((ROOT / "checkpoint_meta").glob("*.md")),
        ROOT / "CHANGELOG.md",
        ROOT / "setup.cfg",
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
        *pages(),
        *sorted((ROOT / "examples").rglob("*.md")),
        *sorted((ROOT / "tools").glob("*.sh")),
        *sorted((ROOT / "tests/protocol/model").glob("*.pml")),
    ],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_documentation_uses_plain_words(page):
    lines = page.read_text(encoding="utf-8")
    found = [
        f"line {lines.count(chr(10), 0, m.start()) + 1}: {m.group()}"
        for m in PATTERN.finditer(lines)
    ]
    assert found == []


def test_code_uses_plain_words():
    # Literals (errors, log lines, descriptions of options, help texts), docstrings, comments.
    found = [
        f"{path.relative_to(ROOT)}:{line}: {idiom}"
        for path in _modules()
        for line, text in (*_words(path).literals, *_comments(path))
        for idiom in idioms(text)
    ]
    assert found == []


def test_names_use_plain_words():
    # A test is named as a sentence, and others of modules, classes and functions are read as one.
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in _modules()
        for name in (path.stem, *_words(path).names)
        if idioms(_spelled_out(name))
    ]
    assert found == []


def test_no_docstring_is_a_fragment():
    # "Of the query." says nothing in help(), which shows it without the name above it.
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in _modules()
        if path.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "examples", "tools")
        for line, text in _words(path).docstrings
        if re.match(r"(Of|Its)\b", text)
    ]
    assert found == []


def test_commands_and_the_report_count_things_with_the_function_that_knows_the_singular():
    nouns = "batches|bytes|checkpoints|columns|files|objects|offsets|ranges|rows|splits|versions"
    literals = [
        f"{path.relative_to(ROOT)}:{noun.lineno}"
        for package in ("cli", "report")
        for path in sorted((ROOT / "connector" / package).rglob("*.py"))
        for text in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(text, ast.JoinedStr)
        for count, noun in pairwise(text.values)
        if isinstance(count, ast.FormattedValue) and isinstance(noun, ast.Constant)
        if re.match(rf" (?:{nouns})\b", str(noun.value))
    ]
    assert literals == []


def test_the_list_finds_an_idiom_across_a_line_end_and_spares_longer_words():
    assert idioms("The JVM understands standalone Athus.") == []
    assert idioms("Read it once\n    more: it Stands there.") == ["once\n    more", "Stands"]


def _modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))
    yield from sorted(ROOT.glob("*.py"))


def _spelled_out(name: str) -> str:
    """`test_is_read` and `IsRead` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ")


class _Words(NamedTuple):
    """What is written in a module, with lines."""

    docstrings: list[tuple[int, str]]
    """Texts that are statements: of modules, classes, functions and fields."""
    literals: list[tuple[int, str]]
    names: list[str]
    """Of classes and functions."""


@cache
def _words(path: Path) -> _Words:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    in_tests = ROOT / "tests" in path.parents
    words = _Words([], [], [])
    for node in nodes:
        # What tests pass as data, and what they quote of other programs, may be anything.
        is_checked = not in_tests or id(node) in docstrings
        if is_checked and isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.literals.append((node.lineno, node.value))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            words.docstrings.append((node.lineno, str(node.value.value)))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            words.names.append(node.name)
    return words


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    """Comments, those of consecutive lines as one."""
    above = -1
    block: list[str] = []
    # A tokenizer would take as long as all else here, for the few texts that look like a comment.
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if comment := re.search(r"(?:^ *|  )#(.*)", line):
            if block and number != above + 1:
                yield above, " ".join(block)
                block.clear()
            above = number
            block.append(comment[1].lstrip("# "))
    if block:
        yield above, " ".join(block)
