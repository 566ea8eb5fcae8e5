"""Types of JSON records are the same, however the records are put into blocks."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from pyspark_sluice.reader.files.formats.json.inference import type_of_texts
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.tests.reader.files.formats.json.comparing import record

VALUES = [
    b"1", b"-1", b"9223372036854775807", b"9223372036854775808", b"12345678901234567890123", b"1.5",
    b"1e400", b"true", b'"x"', b"null", b"[]", b"[1]", b"[null]", b"[1.5]", b'["x"]', b"{}",
    b'{"x":1}', b'{"x":"1"}', b'{"x":{"y":1}}', b'[{"x":1}]', b'[{"x":true,"z":[2]}]', b"NaN",
]  # fmt: skip


@pytest.mark.parametrize("infer_column_types", [True, False])
def test_the_types_are_those_of_all_records_at_once(infer_column_types: bool) -> None:
    options = ReaderOptions(infer_column_types=infer_column_types)
    chance = random.Random(5)
    kinds = set()
    for _ in range(400):
        records = [b'{"a":%s}' % chance.choice(VALUES) for _ in range(chance.randint(1, 4))]
        if chance.random() < 0.3:
            records.append(record(chance, ["a", "b"]))
        expected = type_of_texts([records], options)
        assert type_of_texts([[each] for each in records], options) == expected, records
        assert type_of_texts([records, records, [], [b"", b"{"]], options) == expected
        kinds.add(str(expected))
    assert len(kinds) > (30 if infer_column_types else 8)


def test_fields_come_in_the_order_in_which_they_are_found() -> None:
    texts = [[b'{"b":1}'], [b'{"a":1,"b":2}', b'{"a":"x"}'], [b'{"c":[],"a\\"":1}']]
    kind = type_of_texts(texts, ReaderOptions(infer_column_types=True))
    assert kind == pa.struct(
        [("b", pa.int64()), ("a", pa.string()), ("c", pa.list_(pa.null())), ('a"', pa.int64())]
    )
