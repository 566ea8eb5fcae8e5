"""Avro's two decoders: the same rows and refusals, for any schema and any damage.

fastavro's is the one that the fast one is held against; files are put together here, from rows that
fastavro wrote.
"""

from __future__ import annotations

import io
import itertools
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.files.file_split import FileSplit
from pyspark_sluice.errors import SplitReadError
from pyspark_sluice.reader.files.evolution.type_growth import fitted_field
from pyspark_sluice.reader.files.formats.avro import format as avro
from pyspark_sluice.reader.files.formats.avro.format import as_spark
from pyspark_sluice.reader.files.formats.avro.plain_blocks import PlainBlocks
from pyspark_sluice.reader.files.formats.avro.schema import AvroSchema
from pyspark_sluice.reader.files.formats.registry import make_format
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.testing import version
from pyspark_sluice.reader.files.values.convert import Misfit

_SYNC = b"between the rows"
_INTS = st.integers(-(2**31), 2**31 - 1)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_BYTES = st.binary(max_size=12)
_TEXTS = st.text(max_size=8)

# Types without names inside: schema, and the values that fastavro writes without logical types.
_SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", _INTS),
    ("long", _LONGS),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("bytes", _BYTES),
    ("string", _TEXTS),
    ({"type": "int", "logicalType": "date"}, st.integers(-700_000, 2_900_000)),
    ({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999)),
    ({"type": "long", "logicalType": "timestamp-micros"}, st.integers(-(10**15), 10**15)),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, st.integers(-(10**12), 10**12)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, _BYTES),
    ({"type": "string", "logicalType": "uuid"}, _TEXTS),
]


class _Maker:
    """Draws a schema and the values of it, with a new name for each named type."""

    def __init__(self, draw: Any, *, all_plain: bool) -> None:
        self._draw, self._all_plain = draw, all_plain
        self._names = map("n{}".format, itertools.count())
        self._defined: list[tuple[str, st.SearchStrategy[Any]]] = []

    def kind(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        """Return a schema with its values."""
        nested = ["array", "map", "record", "nullable"] if depth else []
        odd = [] if self._all_plain else ["union", "fixed"]
        choice = self._draw(st.sampled_from(["simple"] * 3 + ["words", "enum", *nested, *odd]))
        return getattr(self, f"_{choice}")(depth)

    def _simple(self, _: int) -> tuple[Any, st.SearchStrategy[Any]]:
        if self._defined and self._draw(st.booleans()):
            return self._draw(st.sampled_from(self._defined))
        # A null by itself is not plain within a map.
        return self._draw(st.sampled_from(_SIMPLE[self._all_plain :]))

    def _words(self, _: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return self._sized(self._draw(st.sampled_from([4, 8, 12, 16, 20])))

    def _fixed(self, _: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return self._sized(self._draw(st.integers(0, 20)))

    def _sized(self, size: int) -> tuple[Any, st.SearchStrategy[Any]]:
        schema = {"type": "fixed", "name": next(self._names), "size": size}
        logical = self._draw(st.sampled_from(["", "decimal", "uuid"]))
        if logical == "decimal" and 0 < size <= 16:
            schema |= {"logicalType": logical, "precision": max(1, int(2.4 * size) - 1)}
        elif logical == "uuid":
            schema["logicalType"] = logical
        return self._named(schema, st.binary(min_size=size, max_size=size))

    def _enum(self, _: int) -> tuple[Any, st.SearchStrategy[Any]]:
        symbols = self._draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True))
        schema = {"type": "enum", "name": next(self._names), "symbols": symbols}
        return self._named(schema, st.sampled_from(symbols))

    def _named(self, schema: Any, values: st.SearchStrategy[Any]) -> Any:
        self._defined.append((schema["name"], values))
        return schema, values

    def _array(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        items, values = self.kind(depth - 1)
        return {"type": "array", "items": items}, st.lists(values, max_size=3)

    def _map(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        inner, values = self.kind(depth - 1)
        return {"type": "map", "values": inner}, st.dictionaries(_TEXTS, values, max_size=3)

    def _record(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return self._named(*self.record(depth))

    def record(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        """Return a record's schema with its values."""
        name = next(self._names)
        fields = self._draw(
            st.lists(
                st.sampled_from(["a", "b", "Ab", "value"]), min_size=1, max_size=4, unique=True
            )
        )
        parts = {field: self.kind(max(0, depth - 1)) for field in fields}
        described = [{"name": field, "type": schema} for field, (schema, _) in parts.items()]
        values = st.fixed_dictionaries({field: made for field, (_, made) in parts.items()})
        return {"type": "record", "name": name, "fields": described}, values

    def _nullable(self, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        inner, values = self.kind(depth - 1)
        if inner == "null" or isinstance(inner, list):
            return inner, values
        union = ["null", inner] if self._draw(st.booleans()) else [inner, "null"]
        return union, st.none() | values

    def _union(self, _: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return self._draw(
            st.sampled_from([
                (["int", "long"], _LONGS),
                (["float", "null", "double"], st.none() | st.floats()),
                (["string"], _TEXTS),
                (["string", "int"], _INTS),
            ])
        )  # fmt: skip


@st.composite
def _written(draw: Any, *, all_plain: bool = False) -> tuple[Any, list[list[bytes]]]:
    """A schema, and the rows of each block."""
    schema, values = _Maker(draw, all_plain=all_plain).record(draw(st.integers(1, 4)))
    blocks = draw(st.lists(st.lists(values, min_size=1, max_size=4), min_size=1, max_size=3))
    return schema, [[_row(schema, value) for value in block] for block in blocks]


def _row(schema: Any, value: Any) -> bytes:
    sink = io.BytesIO()
    parsed = fastavro.parse_schema(_without_logical_types(schema))
    fastavro.schemaless_writer(sink, parsed, value)
    return sink.getvalue()


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {k: v for k, v in schema.items() if k not in ("logicalType", "precision", "scale")}
        return {key: _without_logical_types(value) for key, value in kept.items()}
    return [*map(_without_logical_types, schema)] if isinstance(schema, list) else schema


def _long(number: int) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, "long", number)
    return sink.getvalue()


def _sized(data: bytes) -> bytes:
    return _long(len(data)) + data


def _block(count: int, data: bytes) -> bytes:
    return _long(count) + _sized(data) + _SYNC


def _head(schema: Any) -> bytes:
    text = json.dumps(schema).encode()
    return b"Obj\x01" + _long(1) + _sized(b"avro.schema") + _sized(text) + _long(0) + _SYNC


def _file(schema: Any, blocks: list[list[bytes]]) -> bytes:
    return _head(schema) + b"".join(_block(len(rows), b"".join(rows)) for rows in blocks)


class _Decoders:
    """Reads a file by both decoders."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path, self._patch = directory / "one.avro", monkeypatch
        self.fast_calls: list[bool] = []
        columns = PlainBlocks.columns

        def counted(plain: PlainBlocks, blocks: Any) -> Any:
            found = columns(plain, blocks)
            self.fast_calls.append(found is not None)
            return found

        monkeypatch.setattr(PlainBlocks, "columns", counted)

    def both(self, data: bytes) -> tuple[str, str]:
        """Return what the fast and the exact decoder make of a file: rows, or an error's text."""
        self._path.write_bytes(data)
        self.fast_calls.clear()
        fast = self._read()
        with self._patch.context() as patch:
            patch.setattr(avro, "plain_schema", lambda _: None)
            return fast, self._read()

    def _read(self) -> str:
        file, options = version(self._path), ReaderOptions(fileFormat="avro")
        try:
            reader = make_format(options, _columns(self._path))
            batches = [part.batch for part in reader.decode(FileSplit(file, 0, file.size))]
        except SplitReadError as error:
            return str(error)
        for batch in batches:
            batch.validate(full=True)
        # Of not-a-numbers none equals itself, so texts are compared.
        return repr([row for batch in batches for row in batch.to_pylist()])


def _columns(path: Path) -> pa.Schema:
    """Return the columns that have a type."""
    with path.open("rb") as stream:
        schema = AvroSchema(fastavro.reader(stream).metadata["avro.schema"])
    fields = []
    for name in schema.fields:
        with suppress(Misfit, TypeError):
            fields += map(fitted_field, as_spark(pa.struct([(name, schema.column(name).final)])))
    return pa.schema(fields)


@pytest.fixture
def decoders(tmp_path, monkeypatch):
    return _Decoders(tmp_path, monkeypatch)


_EXAMPLES = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@_EXAMPLES
@given(written=_written())
def test_both_decoders_give_the_same_rows_of_any_schema(decoders, written):
    fast, exact = decoders.both(_file(*written))
    assert fast == exact


@_EXAMPLES
@given(written=_written(all_plain=True))
def test_what_the_schema_allows_is_decoded_fast(decoders, written):
    fast, exact = decoders.both(_file(*written))
    assert fast == exact
    has_columns = fast != repr([{}] * sum(map(len, written[1])))
    if has_columns and any(map(any, written[1])):
        assert decoders.fast_calls == [True]


@_EXAMPLES
@given(written=_written(), data=st.data())
def test_both_decoders_give_the_same_rows_or_refusal_of_a_damaged_block(decoders, written, data):
    schema, blocks = written
    count, rows = len(blocks[0]), bytearray(b"".join(blocks[0]))
    match data.draw(st.sampled_from(["change", "cut", "more", "count"])):
        case "change" if rows:
            at = data.draw(st.integers(0, len(rows) - 1))
            rows[at] = data.draw(st.integers(0, 255))
        case "cut" if rows:
            del rows[data.draw(st.integers(0, len(rows) - 1)) :]
        case "more":
            rows += data.draw(st.binary(min_size=1, max_size=3))
        case _:
            count += data.draw(st.sampled_from([-1, 1, 2]))
    rest = b"".join(_block(len(more), b"".join(more)) for more in blocks[1:])
    fast, exact = decoders.both(_head(schema) + _block(count, bytes(rows)) + rest)
    assert fast == exact


@_EXAMPLES
@given(written=_written(), data=st.data())
def test_both_decoders_refuse_a_file_that_is_cut_off_or_has_a_wrong_marker(decoders, written, data):
    schema, blocks = written
    head, whole = _head(schema), _file(schema, blocks)
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(len(head) + 1, len(whole) - 1))]
    else:
        damaged = whole[:-1] + b"!"
    fast, exact = decoders.both(damaged)
    assert fast == exact
    assert "not a readable Avro file" in fast or damaged in _prefixes(schema, blocks)


_ODD: dict[str, tuple[Any, bytes]] = {
    "a key twice": ({"type": "map", "values": "int"}, _long(2) + b"\x02a\x02\x02a\x04\x00"),
    "a key twice among many keys": (
        {"type": "map", "values": "int"},
        _long(41) + b"".join(_sized(b"%d" % (at % 40)) + b"\x02" for at in range(41)) + b"\x00",
    ),
    "text that is not UTF-8": ("string", b"\x02\xff"),
    "an int beyond 32 bits": ("int", _long(2**40)),
    "a symbol that is not there": ({"type": "enum", "name": "e", "symbols": ["a"]}, _long(1)),
    "a symbol before the first": ({"type": "enum", "name": "e", "symbols": ["a"]}, _long(-1)),
    "a boolean of 2": ("boolean", b"\x02"),
    "a branch that is not there": (["null", "int"], b"\x04\x02"),
    "a number of eleven bytes": ("long", b"\xff" * 10 + b"\x01"),
    "a block of an array with its size": (
        {"type": "array", "items": "int"},
        b"\x03\x04\x02\x04\x00",
    ),
}


@pytest.mark.parametrize("kind", _ODD)
def test_both_decoders_agree_on_odd_bytes(decoders, kind):
    schema, data = _ODD[kind]
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "type": schema}]}
    fast, exact = decoders.both(_file(record, [[data, data]]))
    assert fast == exact


@pytest.mark.parametrize("more", [_long(0), _long(0) * 3, _long(1) + _long(7)])
def test_bytes_behind_the_rows_of_a_block_are_seen(decoders, more):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    # They look like the end of an array, or like more of its elements.
    fast, exact = decoders.both(_head(schema) + _block(1, _long(1) + more))
    assert fast == exact
    assert "a block of more rows than it declares" in fast
    assert decoders.fast_calls == [False]


def _prefixes(schema, blocks):
    return [_file(schema, blocks[:count]) for count in range(len(blocks) + 1)]
