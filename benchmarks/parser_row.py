"""What each parser of CSV and JSON gains: the time of reading without it, as a multiple.

In this process, on one core, without Spark. Processor time, the least of several rounds in which
all take their turns, so that a busy machine changes little. What gains nothing for any shape is to
be deleted.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from pyspark_sluice.connector.source.schemas import arrow_schema
from pyspark_sluice.reader.api import ReaderContext
from pyspark_sluice.reader.files.formats import fast_then_exact
from pyspark_sluice.reader.files.formats.csv import multiline_csv
from pyspark_sluice.reader.files.formats.csv.fast_parser import CsvFast
from pyspark_sluice.reader.files.formats.csv.record_splitter import CsvTokens
from pyspark_sluice.reader.files.formats.json.fast_parsers import FastRecords, NestedRecords
from pyspark_sluice.reader.files.formats.json.json_rows import JsonRows
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.reader import FileSplitReader
from pyspark_sluice.reader.files.testing import whole

from .bench import Bench, Result
from .shapes import FLAT, SEED, SHAPES, Shape

_RUNS = 3
_ENOUGH = 0.3
"""Seconds of processor time after which a round ends; until then it reads again."""

_BYTES = 3_000_000
_NEVER = 1 << 60

Change = Callable[[list[bytes]], list[bytes]]
Switch = tuple[Any, str, Any]
"""An object, the name of one of its attributes, and the value that switches a parser off."""


@dataclass(frozen=True, slots=True)
class Case:
    """Some records in one format."""

    name: str
    shape: Shape
    change: Change = list
    """What becomes of the lines of the shape."""

    options: Mapping[str, str] = field(default_factory=dict)
    schema: str = ""
    per_file: int = 0
    """Lines of a file, if there are many."""


def parsers(bench: Bench) -> Iterator[Result]:
    """Each shape of CSV and JSON without one of the parsers, against all of them."""
    del bench
    for case in _CASES:
        switches = _OF_CSV if case.shape.file_format == "csv" else _OF_JSON
        with tempfile.TemporaryDirectory(prefix="sluice-parsers-") as folder:
            paths = _written(Path(folder), case)
            found = dict.fromkeys(("", *switches), float("inf"))
            for _ in range(_RUNS):
                for name in found:
                    with _without(*(switches[name] if name else ())):
                        found[name] = min(found[name], _seconds(case, paths))
        whole_time = found.pop("")
        note = ", ".join(f"{name} {took / whole_time:.2g}" for name, took in found.items())
        work = f"{case.shape.file_format}, {case.name}"
        yield Result(work, whole_time * 1000, None, "ms", "", f"without {note}")


def _seconds(case: Case, paths: list[Path]) -> float:
    ddl = case.schema or case.shape.schema
    schema = arrow_schema(cast(StructType, StructType.fromDDL(ddl)))
    given = {"fileFormat": case.shape.file_format, "timeZone": "UTC", "mode": "DROPMALFORMED"}
    options = ReaderOptions(**given, **{**case.shape.options, **case.options})
    splits, found = list(map(whole, paths)), list[float]()
    while sum(found) < _ENOUGH:
        begin, rows = time.process_time(), 0
        for item in FileSplitReader(schema, options, ReaderContext(1, 0, 0)).read(splits):
            rows += item.num_rows if isinstance(item, pa.RecordBatch) else 0
        found.append(time.process_time() - begin)
        assert rows
    return min(found)


def _written(folder: Path, case: Case) -> list[Path]:
    source = folder / "source"
    case.shape.write(source, np.random.default_rng(SEED), 30_000)
    data = source.read_bytes()
    last = data.rfind(b"\n", 0, _BYTES) + 1
    if case.shape.options.get("multiLine"):
        shutil.copyfile(source, folder / "0")
        return [folder / "0"]
    header, lines = [], data[: last or len(data)].splitlines(keepends=True)
    if case.shape.options.get("header"):
        header, lines = lines[:1], lines[1:]
    lines = case.change(lines)
    step = case.per_file or len(lines)
    paths = []
    for number, start in enumerate(range(0, len(lines), step)):
        paths.append(folder / str(number))
        paths[-1].write_bytes(b"".join(header + lines[start : start + step]))
    return paths


@contextmanager
def _without(*switches: Switch) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, value in switches:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield


def _refuse(*_: object, **__: object) -> None:
    """What a fast parser returns for records that it does not take."""


def _refuse_record(*_: object, **__: object) -> None:
    raise ValueError("switched off")


def _changed(kind: type, change: Callable[[Any], None]) -> Switch:
    """A class whose objects are changed once they are made."""
    make = kind.__init__  # type: ignore[misc]

    def made(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        change(self)

    return kind, "__init__", made


def _set(**values: object) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        for name, value in values.items():
            setattr(made, f"_{name}", value)

    return change


def _no_flat(records: Any) -> None:
    if not isinstance(records._strict, NestedRecords):  # noqa: SLF001
        records._strict = None  # noqa: SLF001


def _no_nested(records: Any) -> None:
    if isinstance(records._strict, NestedRecords):  # noqa: SLF001
        records._strict = None  # noqa: SLF001
    if records._maps:  # noqa: SLF001
        records._maps = records._intermediate = None  # noqa: SLF001


_OF_CSV: dict[str, tuple[Switch, ...]] = {
    "pyarrow": ((CsvFast, "parse", _refuse),),
    "pieces": ((fast_then_exact, "PIECE", _NEVER), (multiline_csv, "PIECE", _NEVER)),
    "two parts": ((fast_then_exact, "_LEAST", _NEVER),),
    "str.split": (_changed(CsvTokens, _set(splits=False)),),
}
_OF_JSON: dict[str, tuple[Switch, ...]] = {
    "msgspec": (_changed(FastRecords, _no_flat),),
    "arrow-json": (_changed(FastRecords, _no_nested),),
    "pyarrow": ((FastRecords, "_by_pyarrow", _refuse),),
    "text as written": (_changed(FastRecords, _set(written=None)),),
    "CPython": ((JsonRows, "_plain", _refuse_record),),
    "two parts": ((fast_then_exact, "_LEAST", _NEVER),),
}


def _every(count: int, change: Callable[[bytes], bytes]) -> Change:
    return lambda lines: [
        line if number % count else change(line) for number, line in enumerate(lines)
    ]


def _shape(kind: str, name: str) -> Shape:
    return next(shape for shape in SHAPES if (shape.file_format, shape.name) == (kind, name))


_RIDES, _QUOTED = _shape("csv", "rides"), _shape("csv", "flat, quoted")
_FLAT, _EVENTS = _shape("json", "flat"), _shape("json", "events")
_TRIMS = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
_BAD_NUMBER: Callable[[bytes], bytes] = b"x".__add__
_BAD_VALUE: Callable[[bytes], bytes] = lambda line: line.replace(b":", b":?", 1)  # noqa: E731
_STRINGS = "id string, name string, city string, amount string, active string"

_CASES = (
    Case("rides", _RIDES),
    Case("5 columns, strings quoted", _QUOTED),
    Case("60 columns", _shape("csv", "60 columns")),
    Case("300 columns", _shape("csv", "300 columns")),
    Case("text with quotes and line breaks", _shape("csv", "text with quotes and line breaks")),
    Case("files of 10 records, packed", _RIDES, per_file=10),
    Case("blanks around fields", _RIDES, _every(1, lambda s: s.replace(b",", b" , ")), _TRIMS),
    Case("1 of 1,000 malformed", _RIDES, _every(1000, _BAD_NUMBER)),
    Case("1 of 100 malformed", _RIDES, _every(100, _BAD_NUMBER)),
    Case("1 of 10 malformed", _RIDES, _every(10, _BAD_NUMBER)),
    Case(
        "1 of 1,000 with an odd quote", _RIDES, _every(1000, lambda s: s.replace(b",", b',a"', 1))
    ),
    Case(
        "a separator of two characters",
        _RIDES,
        _every(1, lambda s: s.replace(b",", b"||")),
        {"sep": "||", "header": "false"},
    ),
    Case("5 columns", _FLAT),
    Case("60 columns", _shape("json", "60 columns")),
    Case("300 columns", _shape("json", "300 columns")),
    Case("files of 10 records, packed", _FLAT, per_file=10),
    Case("nested events with a map", _EVENTS),
    Case("a decimal", _FLAT, schema=FLAT.replace("amount double", "amount decimal(10,2)")),
    Case("numbers in string columns", _FLAT, schema=_STRINGS),
    Case("1 of 1,000 malformed", _FLAT, _every(1000, _BAD_VALUE)),
    Case("1 of 10 malformed", _FLAT, _every(10, _BAD_VALUE)),
    Case("events, 1 of 1,000 malformed", _EVENTS, _every(1000, _BAD_VALUE)),
)
