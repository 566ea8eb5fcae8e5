"""Spark's answers to the tests that compare with it: recorded in files, so that they need no JVM.

SPARK_ANSWERS says where they come from:

    recorded    the files `answers/MODULE-spark-LINE.json` next to the modules (the default), of
                the newest line, with an older Spark, too
    record      Spark, which also writes the files: `make answers`
    compare     Spark, whose answers have to be those of the files: `make thorough`
    ask         Spark alone: for a line of Spark without files
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import __version__ as SPARK  # noqa: N812
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = os.environ.get("SPARK_ANSWERS", "recorded")
LINE = ".".join(SPARK.split(".")[:2])
NEWEST_LINE = "4.3"
"""Of whose readers Sluice promises the rows, with an older Spark, too."""

LONGEST = 2000
"""Characters of a text in a file; of a longer one there are length and digest."""


class RefusedBySparkError(Exception):
    """What Spark answers if it fails: its condition, and the innermost cause."""


class LongText:
    """A text or bytes, known by length and digest."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, value: str | bytes) -> LongText:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        return cls(f"{type(value).__name__} {len(value)} {hashlib.sha256(data).hexdigest()[:16]}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | bytes):
            return LongText.of(other).text == self.text
        return isinstance(other, LongText) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<{self.text}>"


_CODECS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "$bytes": (bytes, lambda data: data.decode("latin-1"), lambda text: text.encode("latin-1")),
    "$time": (datetime, lambda time: _in_utc(time).isoformat(" "), datetime.fromisoformat),
    "$date": (date, date.isoformat, date.fromisoformat),
    "$decimal": (Decimal, str, Decimal),
    "$tuple": (tuple, lambda items: [*map(encoded, items)], lambda items: (*map(decoded, items),)),
    "$long": (LongText, lambda long: long.text, LongText),
}
"""Type, and what it is in JSON and back again. A subtype comes before its type."""


def _in_utc(time: datetime) -> datetime:
    return time.astimezone(UTC) if time.tzinfo else time


def encoded(value: Any) -> Any:
    """Return the value in types of JSON. Rows of the same columns name their columns once."""
    if isinstance(value, str | bytes) and len(value) > LONGEST:
        value = LongText.of(value)
    for tag, (kind, encode, _) in _CODECS.items():
        if isinstance(value, kind):
            return {tag: encode(value)}
    if isinstance(value, dict):
        return {name: encoded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        if len(value) > 1 and _have_the_same_names(value):
            return ["$rows", [*value[0]], *([*map(encoded, row.values())] for row in value)]
        return [*map(encoded, value)]
    assert value is None or isinstance(value, str | int | float), type(value)
    return value


def _have_the_same_names(rows: list[Any]) -> bool:
    return all(isinstance(row, dict) and [*row] == [*rows[0]] for row in rows)


def decoded(value: Any) -> Any:
    """Return what was encoded."""
    match value:
        case ["$rows", names, *rows]:
            return [dict(zip(names, map(decoded, row), strict=True)) for row in rows]
        case list():
            return [*map(decoded, value)]
        case dict() if value and value.keys() <= _CODECS.keys():
            [(tag, content)] = value.items()
            return _CODECS[tag][2](content)
        case dict():
            return {name: decoded(inner) for name, inner in value.items()}
    return value


def _digest(inputs: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr([*map(_content, inputs)]).encode()).hexdigest()[:12]


def _content(value: Any) -> Any:
    """A path counts as its files: their names, and what is in them."""
    if isinstance(value, Path):
        files = sorted(path for path in value.rglob("*") if path.is_file()) or [value]
        return [(str(path.relative_to(value.parent)), path.read_bytes()) for path in files]
    if isinstance(value, list | tuple):
        return [*map(_content, value)]
    return value.to_pylist() if isinstance(value, pa.Array | pa.Table) else value


class AnswerFile:
    """The answers for one module of tests."""

    def __init__(self, module: Path) -> None:
        line = NEWEST_LINE if SOURCE == "recorded" else LINE
        self.path = module.parent / "answers" / f"{module.stem}-spark-{line}.json"
        is_read = SOURCE in ("recorded", "compare") and self.path.exists()
        self._entries: dict[str, Any] = json.loads(self.path.read_text()) if is_read else {}

    def entry(self, key: str, digest: str) -> Any:
        """Return the recorded answer. A missing one, or one for other inputs, is a failure."""
        recorded, answer = self._entries.get(key, (None, None))
        reason = "has no answer" if recorded is None else "has an answer for other inputs"
        assert recorded == digest, (
            f"{self.path} {reason}: {key}, digest {digest}, found {recorded}. Record the answers "
            f"of Spark {LINE} with `make answers`, or ask Spark itself with SPARK_ANSWERS=ask."
        )
        return answer

    def add(self, key: str, digest: str, answer: Any) -> None:
        assert key not in self._entries, f"{key} is asked twice"
        self._entries[key] = [digest, answer]

    def write(self) -> None:
        """One line for each answer, or for each row of a long one."""
        self.path.parent.mkdir(exist_ok=True)
        entries = (
            f"{json.dumps(key)}: [{json.dumps(digest)}, {_lines(answer)}]"
            for key, (digest, answer) in sorted(self._entries.items())
        )
        self.path.write_text("{\n" + ",\n".join(entries) + "\n}\n")


def _lines(answer: Any) -> str:
    text = json.dumps(answer, separators=(",", ":"))
    if len(text) < 200 or not isinstance(answer, list):
        return text
    return "[\n " + ",\n ".join(json.dumps(row, separators=(",", ":")) for row in answer) + "\n]"


class SparkAnswers:
    """Asks questions to Spark for one test. An answer that is an error is raised."""

    def __init__(self, file: AnswerFile, test: str, session: Callable[[], SparkSession]) -> None:
        self._file, self._test, self._session = file, test, session
        self._asked = 0

    def __call__(self, question: Callable[[SparkSession], Any], *inputs: Any) -> Any:
        """Return what the question returns for Spark's session.

        Args:
            question: it reads files with Spark.
            inputs: all on which the answer depends: bytes, paths of files, options, schemas. For
                files whose bytes are not the same in each run, what is written into them.
        """
        self._asked += 1
        key = f"{self._test} {self._asked}" if self._asked > 1 else self._test
        digest = _digest(inputs)
        if SOURCE == "recorded":
            answer = self._file.entry(key, digest)
        else:
            answer = _answer(question, self._session())
            if SOURCE == "record":
                self._file.add(key, digest, answer)
            elif SOURCE == "compare":
                # As text, in which NaN is NaN and 1 is not 1.0.
                recorded = json.dumps(self._file.entry(key, digest))
                assert json.dumps(answer) == recorded, f"Spark answers otherwise: {key}"
        if isinstance(answer, dict) and "$error" in answer:
            raise RefusedBySparkError(answer["$error"])
        return decoded(answer)


def _answer(question: Callable[[SparkSession], Any], session: SparkSession) -> Any:
    try:
        return encoded(question(session))
    except (PySparkException, Py4JError) as error:
        return {"$error": error_text(error)}


def error_text(error: Exception) -> str:
    """The condition, and each cause without its stack; paths differ in each run."""
    lines = [line.strip() for line in str(error).splitlines()]
    causes = [line[11:] for line in lines if line.startswith("Caused by: ")]
    first = lines[1:2] if isinstance(error, Py4JError) else lines[:1]
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    parts = (condition or type(error).__name__, *(causes or first))
    # The numbers of stages and tasks depend on what the session has done before.
    named = (re.sub(r"(Job aborted due to stage failure).*", r"\1", part) for part in parts)
    return without_folders("; ".join(part[:160] for part in named))


def without_folders(text: str) -> str:
    """Return the text without paths, which differ in each run."""
    return re.sub(r"(file:)?(?<![\w/])/+[\w.-]+/[^\s,;()\[\]\"']*", "PATH", text)
