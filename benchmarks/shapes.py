"""Data in the shapes that land in real directories, made from a seed.

Not here: measuring them (`shape_rows.py`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

FILES = 4
"""Files of a shape, but for those of many small files."""

SMALL_FILES = 2_000
SEED = 20_260
_WORDS = (
    "sluice", "gate", "water", "canal", "lock", "river", "basin", "weir", "dam", "level", "flow",
    "meter", "pump", "valve",
)  # fmt: skip
_NAMES = np.array(["Łódź", "São Paulo", "Zürich", "Graz", "Utrecht", "Porto", "Oslo", "Kyoto"])
Rows = Iterator[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of data in one format."""

    name: str
    file_format: str
    schema: str
    rows: int
    write: Callable[[Path, np.random.Generator, int], None]
    """Writes that many rows into one file."""

    options: Mapping[str, str] = field(default_factory=dict)
    files: int = FILES

    def make(self, folder: Path) -> None:
        """All files of the shape; the same bytes every time."""
        share = self.rows // self.files
        for number in range(self.files):
            random = np.random.default_rng([SEED, number])
            self.write(folder / f"part-{number:05}.{self.file_format}", random, share)


# Taxi rides -----------------------------------------------------------------------------------

_RIDES = (
    "vendor int, picked_up timestamp_ntz, dropped_off timestamp_ntz, passengers int, "
    "distance double, rate int, stored string, `from` int, `to` int, payment int, "
    "fare decimal(10,2), tip decimal(10,2), tolls decimal(10,2), total decimal(10,2)"
)


def _rides(random: np.random.Generator, rows: int) -> pa.Table:
    start = np.datetime64("2024-01-01T00:00:00", "s") + random.integers(0, 31_536_000, rows)
    end = start + random.integers(60, 7200, rows)
    absent = random.random(rows) < 0.05
    cents = [random.integers(0, high, rows) for high in (9000, 2000, 700)]
    money = [_cents(c) for c in (*cents, cents[0] + cents[1] + cents[2])]
    columns = {
        "vendor": pa.array(random.integers(1, 3, rows), pa.int32()),
        "picked_up": pa.array(start.astype("datetime64[us]")),
        "dropped_off": pa.array(end.astype("datetime64[us]")),
        "passengers": pa.array(random.integers(1, 7, rows), pa.int32(), mask=absent),
        "distance": pa.array(np.round(random.gamma(2.0, 1.7, rows), 2)),
        "rate": pa.array(random.integers(1, 6, rows), pa.int32(), mask=absent),
        "stored": pa.array(np.where(random.random(rows) < 0.99, "N", "Y"), mask=absent),
        "from": pa.array(random.integers(1, 266, rows), pa.int32()),
        "to": pa.array(random.integers(1, 266, rows), pa.int32()),
        "payment": pa.array(random.integers(1, 5, rows), pa.int32()),
    }
    return pa.table(columns | dict(zip(("fare", "tip", "tolls", "total"), money, strict=True)))


def _cents(values: np.ndarray) -> pa.Array:
    whole = pa.array(values, pa.int64()).cast(pa.decimal128(19, 0))
    cent = pa.scalar("0.01").cast(pa.decimal128(3, 2))
    return pa.compute.multiply(whole, cent).cast(pa.decimal128(10, 2))


def _rides_csv(path: Path, random: np.random.Generator, rows: int) -> None:
    table = _rides(random, rows)
    for name in ("picked_up", "dropped_off"):
        index = table.schema.get_field_index(name)
        text = pa.compute.strftime(table[name].cast(pa.timestamp("s")), format="%Y-%m-%d %H:%M:%S")
        table = table.set_column(index, name, text)
    _plain_csv(path, table)


def _plain_csv(path: Path, table: pa.Table) -> None:
    plain = pa.csv.WriteOptions(quoting_style="none", quoting_header="none")
    pa.csv.write_csv(table, path, plain)


def _rides_parquet(path: Path, random: np.random.Generator, rows: int) -> None:
    pa.parquet.write_table(_rides(random, rows), path)


def _rides_orc(path: Path, random: np.random.Generator, rows: int) -> None:
    pa.orc.write_table(_rides(random, rows), path, compression="zstd")


def _rides_avro(path: Path, random: np.random.Generator, rows: int) -> None:
    import fastavro

    table = _rides(random, rows)
    money = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    local = {"type": "long", "logicalType": "local-timestamp-micros"}
    types: dict[pa.DataType, Any] = {
        pa.int32(): "int", pa.float64(): "double", pa.string(): "string",
        pa.timestamp("us"): local, pa.decimal128(10, 2): money,
    }  # fmt: skip
    fields = [{"name": f.name, "type": ["null", types[f.type]]} for f in table.schema]
    schema = {"type": "record", "name": "ride", "fields": fields}
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), table.to_pylist(), codec="deflate")


# Events as a code host publishes them ---------------------------------------------------------

_EVENTS = (
    "id string, type string, actor struct<id: long, login: string, avatar_url: string>, "
    "repo struct<id: long, name: string, url: string>, payload struct<action: string, "
    "ref: string, size: int, commits: array<struct<sha: string, message: string, "
    "author: struct<email: string, name: string>, distinct: boolean>>>, "
    "labels map<string, string>, public boolean, created_at timestamp"
)


def _events(random: np.random.Generator, rows: int) -> Rows:
    kinds = ("PushEvent", "CreateEvent", "IssuesEvent", "WatchEvent")
    for number in range(rows):
        pick = random.integers(0, 1 << 30, 8).tolist()
        actor, repo = pick[0] % 100_000, pick[1] % 50_000
        kind = kinds[pick[2] % 4]
        commits = [_commit(pick, n) for n in range(pick[3] % 4)] if kind == "PushEvent" else []
        payload: dict[str, Any] = {"action": None if commits else "started"}
        if commits:
            payload |= {"ref": "refs/heads/main", "size": len(commits), "commits": commits}
        yield {
            "id": str(30_000_000_000 + number),
            "type": kind,
            "actor": {
                "id": actor, "login": f"user-{actor}",
                "avatar_url": f"https://avatars.example.com/u/{actor}?",
            },
            "repo": {
                "id": repo, "name": f"user-{actor}/{_WORDS[repo % 14]}-{repo}",
                "url": f"https://api.example.com/repos/user-{actor}/{_WORDS[repo % 14]}-{repo}",
            },
            "payload": payload,
            "labels": {
                _WORDS[(repo + n) % 14]: _WORDS[(actor + n) % 14] for n in range(pick[4] % 4)
            },
            "public": True,
            "created_at": f"2024-{pick[5] % 12 + 1:02}-{pick[5] % 28 + 1:02}"
            f"T{pick[6] % 24:02}:{pick[6] % 60:02}:{pick[7] % 60:02}Z",
        }  # fmt: skip


def _commit(pick: Sequence[int], number: int) -> dict[str, Any]:
    word = _WORDS[(pick[5] + number) % 14]
    name = str(_NAMES[pick[6] % 8])
    return {
        "sha": f"{pick[number] * 7919:040x}",
        "message": f'Fix the "{word}" of {name}\n\nSee C:\\{word}\\{number} and </{word}>',
        "author": {"email": f"{word}@example.com", "name": name},
        "distinct": number % 2 == 0,
    }


def _events_json(path: Path, random: np.random.Generator, rows: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        for event in _events(random, rows):
            out.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")


def _events_parquet(path: Path, random: np.random.Generator, rows: int) -> None:
    text, big = pa.string(), pa.int64()
    author = pa.struct({"email": text, "name": text})
    commit = pa.struct({"sha": text, "message": text, "author": author, "distinct": pa.bool_()})
    payload = pa.struct(
        {"action": text, "ref": text, "size": pa.int32(), "commits": pa.list_(commit)}
    )
    schema = pa.schema(
        {
            "id": text, "type": text,
            "actor": pa.struct({"id": big, "login": text, "avatar_url": text}),
            "repo": pa.struct({"id": big, "name": text, "url": text}),
            "payload": payload, "labels": pa.map_(text, text), "public": pa.bool_(),
            "created_at": pa.timestamp("us", "UTC"),
        }
    )  # fmt: skip
    events = []
    for event in _events(random, rows):
        at = np.datetime64(event["created_at"].rstrip("Z"), "us").astype(np.int64)
        events.append({**event, "labels": list(event["labels"].items()), "created_at": int(at)})
    pa.parquet.write_table(pa.Table.from_pylist(events, schema), path)


def _events_avro(path: Path, random: np.random.Generator, rows: int) -> None:
    import fastavro

    def record(called: str, /, **fields: Any) -> dict[str, Any]:
        described = [{"name": field, "type": kind} for field, kind in fields.items()]
        return {"type": "record", "name": called, "fields": described}

    author = record("author", email="string", name="string")
    commit = record("commit", sha="string", message="string", author=author, distinct="boolean")
    commits = ["null", {"type": "array", "items": commit}]
    text, instant = ["null", "string"], {"type": "long", "logicalType": "timestamp-micros"}
    schema = record(
        "event", id="string", type="string",
        actor=record("actor", id="long", login="string", avatar_url="string"),
        repo=record("repo", id="long", name="string", url="string"),
        payload=record("payload", action=text, ref=text, size=["null", "int"], commits=commits),
        labels={"type": "map", "values": "string"}, public="boolean", created_at=instant,
    )  # fmt: skip
    events = (
        {**event, "created_at": datetime.fromisoformat(event["created_at"])}
        for event in _events(random, rows)
    )
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), events, codec="deflate")


def _rides_xml(path: Path, random: np.random.Generator, rows: int) -> None:
    with path.open("w", encoding="utf-8") as out:
        out.write("<rides>\n")
        for ride in _rides(random, rows).to_pylist():
            values = {name: value for name, value in ride.items() if value is not None}
            inner = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
            out.write(f"<ride>{inner}</ride>\n")
        out.write("</rides>\n")


# Wide rows ------------------------------------------------------------------------------------

_KINDS = ("long", "double", "string")


def _wide_schema(columns: int) -> str:
    return ", ".join(f"c{n} {_KINDS[n % 3]}" for n in range(columns))


def _wide(columns: int) -> Callable[[np.random.Generator, int], pa.Table]:
    def made(random: np.random.Generator, rows: int) -> pa.Table:
        def column(kind: str) -> pa.Array:
            if kind == "long":
                return pa.array(random.integers(0, 10_000_000, rows))
            if kind == "double":
                return pa.array(np.round(random.normal(100.0, 20.0, rows), 4))
            words = np.array(_WORDS)[random.integers(0, len(_WORDS), rows)]
            return pa.array(words, mask=random.random(rows) < 0.1)

        return pa.table({f"c{n}": column(_KINDS[n % 3]) for n in range(columns)})

    return made


def _as_csv(made: Callable[[np.random.Generator, int], pa.Table]) -> Any:
    return lambda path, random, rows: _plain_csv(path, made(random, rows))


def _as_parquet(made: Callable[[np.random.Generator, int], pa.Table]) -> Any:
    return lambda path, random, rows: pa.parquet.write_table(made(random, rows), path)


def _as_json(made: Callable[[np.random.Generator, int], pa.Table]) -> Any:
    def write(path: Path, random: np.random.Generator, rows: int) -> None:
        with path.open("w", encoding="utf-8") as out:
            for batch in made(random, rows).to_batches(10_000):
                for row in batch.to_pylist():
                    given = {name: value for name, value in row.items() if value is not None}
                    out.write(json.dumps(given, separators=(",", ":")) + "\n")

    return write


# Five flat columns ----------------------------------------------------------------------------

FLAT = "id long, name string, city string, amount double, active boolean"


def flat(random: np.random.Generator, rows: int) -> pa.Table:
    """Rows of `FLAT`."""
    ids = random.integers(0, 1 << 40, rows)
    return pa.table(
        {
            "id": ids,
            "name": pa.array([f"user {n % 100_000}" for n in ids.tolist()]),
            "city": pa.array(_NAMES[random.integers(0, len(_NAMES), rows)]),
            "amount": np.round(random.random(rows) * 1000, 2),
            "active": random.random(rows) < 0.5,
        }
    )


def _flat_quoted(path: Path, random: np.random.Generator, rows: int) -> None:
    pa.csv.write_csv(flat(random, rows), path, pa.csv.WriteOptions(quoting_style="needed"))


# Text that needs its quotes, and logs -----------------------------------------------------------

_REVIEWS = "id long, title string, body string, stars int"


def _reviews(path: Path, random: np.random.Generator, rows: int) -> None:
    picks = random.integers(0, 14, (rows, 6)).tolist()
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        for number, (a, b, c, d, e, stars) in enumerate(picks):
            one, two, three = _WORDS[a], _WORDS[b], _WORDS[c]
            body = f'The {one}, the {two}\nand a "{three}" of {_WORDS[d]}, {_WORDS[e]}.'
            writer.writerow([number, f'"{one}", {two}' if a % 2 else one, body, stars % 5 + 1])


def _log(path: Path, random: np.random.Generator, rows: int) -> None:
    picks = random.integers(0, 1 << 20, (rows, 4)).tolist()
    with path.open("w", encoding="utf-8") as out:
        for a, b, c, d in picks:
            out.write(
                f"10.{a % 256}.{b % 256}.{c % 256} - - [02/Jan/2024:{a % 24:02}:{b % 60:02}:"
                f'{c % 60:02} +0000] "GET /{_WORDS[d % 14]}/{d} HTTP/1.1" 200 {b} "-" "agent/1.0"\n'
            )


_HEADER = {"header": "true"}
_MANY_LINES = {"multiLine": "true", "escape": '"'}


def _shape(
    name: str, file_format: str, schema: str, rows: int, write: Any, **options: str
) -> Shape:
    return Shape(name, file_format, schema, rows, write, options)


SHAPES: Sequence[Shape] = (
    Shape("rides", "csv", _RIDES, 3_000_000, _rides_csv, _HEADER),
    Shape("flat, quoted", "csv", FLAT, 6_000_000, _flat_quoted, _HEADER),
    Shape("60 columns", "csv", _wide_schema(60), 600_000, _as_csv(_wide(60)), _HEADER),
    Shape("300 columns", "csv", _wide_schema(300), 120_000, _as_csv(_wide(300)), _HEADER),
    Shape("text with quotes and line breaks", "csv", _REVIEWS, 2_400_000, _reviews, _MANY_LINES),
    _shape("flat", "json", FLAT, 4_500_000, _as_json(flat)),
    _shape("events", "json", _EVENTS, 600_000, _events_json),
    _shape("60 columns", "json", _wide_schema(60), 300_000, _as_json(_wide(60))),
    _shape("300 columns", "json", _wide_schema(300), 60_000, _as_json(_wide(300))),
    _shape("logs", "text", "value string", 1_500_000, _log),
    _shape("flat", "parquet", FLAT, 4_000_000, _as_parquet(flat)),
    _shape("rides", "parquet", _RIDES, 2_000_000, _rides_parquet),
    _shape("events", "parquet", _EVENTS, 200_000, _events_parquet),
    _shape("60 columns", "parquet", _wide_schema(60), 300_000, _as_parquet(_wide(60))),
    _shape("300 columns", "parquet", _wide_schema(300), 60_000, _as_parquet(_wide(300))),
    # Spark reads what other writers call a timestamp as one under any declaration.
    _shape("rides", "orc", _RIDES.replace("timestamp_ntz", "timestamp"), 2_000_000, _rides_orc),
    _shape("rides", "avro", _RIDES, 400_000, _rides_avro),
)

DECODED: Sequence[Shape] = (
    SHAPES[-1],
    _shape("events", "avro", _EVENTS, 200_000, _events_avro),
    _shape("rides", "xml", _RIDES, 200_000, _rides_xml, rowTag="ride"),
)
"""Formats with one decoder for most of it, and another one for the rest."""

SMALL: Sequence[Shape] = tuple(
    Shape(f"{rows // SMALL_FILES} {name} a file", kind, schema, rows, write, options, SMALL_FILES)
    for name, kind, schema, rows, write, options in (
        ("rides", "csv", _RIDES, 20_000, _rides_csv, _HEADER),
        ("events", "json", _EVENTS, 20_000, _events_json, {}),
        ("lines", "text", "value string", 20_000, _log, {}),
        ("rides", "parquet", _RIDES, 20_000, _rides_parquet, {}),
    )
)
