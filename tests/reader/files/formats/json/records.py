"""Records that try what readers of JSON differ in; surrogate escapes mean bytes as such."""

from __future__ import annotations

import random
from collections.abc import Sequence

# fmt: off
NUMBERS = [
    '1', '-1', '0', '-0', '-0.0', '0.0', '1.0', '1.5', '1e2', '1E400', '1e-400', '01', '-01',
    '+1', '.5', '5.', '1.e1', '0x1', '1_000', '127', '128', '200', '255', '256', '-129', '32768',
    '2147483648', '9223372036854775807', '9223372036854775808',
    '12345678901234567890123456789012345678', "1" * 39, "9" * 38, "9" * 39, "-" + "9" * 38,
    "1" * 200, '1.255', '1.245', '-1.255', '99999999.99', '99999999.995', '16777217', '0.1',
    '1e38', '3.4028236e38', '1e39', '1.17549435e-38', 'NaN', '-NaN', 'Infinity', '-Infinity',
    '+Infinity', 'INF', '-INF', '+INF', 'nan', 'null', 'true', 'false', 'tru', 'True', 'nul',
    'nulll', 'truex', 'true1',
]
TEXTS = [
    '""', '"text"', '"1"', '"1.5"', '"-0"', '"1_000"', '"1e2"', '"+1.5"', '" 1"', '"1."', '".5"',
    '"NaN"', '"Infinity"', '"+INF"', '"-INF"', '"INF"', '"-Infinity"', '"true"', '"null"',
    '"aGk="', '"aGk"', '"aA=="', '"a"', '"aGkh"', '"aGkhaGk="', '"aGk=aGk="', '"aG k="',
    ' "a\\nGk="', '"aGk=\\n"', '"!!"', '"a=="', '"====" ', '"2024-01-02"', '"2024-02-30"',
    '"2024-1-2"', '"2024"', '"5"', '"-5"', '"20240102"', '"123456789"', '"2024-01-02T03:04:05Z"',
    '"2024-01-02 03:04:05.123456789"', '"2024-01-02T03:04:05+02:00"', '"2024-01-02 03:04"',
    '"2024-03-31 02:30:00"', '"2024-01-02T03:04:05.1"', '"\\u0041"', '"\\ud83d\\ude00"',
    '"\\ud83d"', '"\\ude00x"', '"x\\ud83dy"', '"\\uD83d\\u0041"', '"\\q"', '"\\u12"', '"\\u12g4"',
    '"a\tb"', '"a\x01b"', '"\\u0000"', '"\xe9\u4e2d\U0001f600"', '"a\\"b"', '"\\\\"', "'single'",
    '\'si"ng\'', "'a\\'b'", '"open', '"\\', '"\udc80"', '"x\udcff"', '"x\udcff,"', '"\udcc3("',
    '"\udced\udca0\udc80"', '"\udcf0\udc9f"',
]
NESTED = [
    '[]', '{}', '[1]', '[1,2]', '[1,null]', '[1,"x",3]', '[1,{"b":5}]', '["x"]', '[null]',
    '[[1]]', '{"x":1}', '{"x":1,"s":"p"}', '{"x":"1"}', '{"x":1,"x":2}', '{"x":1,"x":"q"}',
    '{"x":1,"x":null}', '{"s":{"k" : [1, 2]}}', '{ "x" : 1 }', '{"n":{"x":1,"z":"q"},"x":3}',
    '{"n":{"x":tru},"x":3}', '{"x":tru}', '{"x":1,"y":["p",2,{"q":-0}]}', '{"y":["\\ud83d"]}',
    '{"\\ud83d":1}', '{"k":1,"k":2}', '{"k":"x","j":2}', '{"k":null}',
    '{"k":{"x":1},"j":{"x":"q","s":"ok"}}', '[{"x":1},{"x":"q","s":"ok"}]', '[{"x":1},null]',
    '[{"x":1},5]', '[1,]', '[,1]', '[1 2]', '{"x":1,}', '{,}', '{"x"}', '{"x":}', '{"x":1 "s":2}',
    '{x:1}', '[', '{', '[1', '{"x":1', '[1}', '{"x":1]', '{"s":"\udcff"}', '{"s":"\udcff","x":1}',
    '["\udcff"]', '{"y":["\udcff","x"]}', '[1e400,1]', '["\\ud83d",{"a":1}]',
    '{"a":[1, {"b" :-0}],  "a":2}', '[12345678901234567890123456789012345678901234567890]',
    '{"x":1111111111111111111111111111111111111111,"s":1111111111111111111111111111111111111111}',
    '/*c*/1', '//x',
]
ODD = [
    '', 'null', '[]', '[{"a":1}]', '[{"a":1},{"a":"x"}]', '[{"a":1},null]', '[[{"a":1}]]',
    '[{"a":1},{"b":tru}]', '[{"a":1},', '5', '"x"', '{', '}', '{"a":', '1}', '"', '//', 'tru',
    'nan', '\ufeff{"a":1}', '\x00', '[null]', '[1]', '{"a":1,"a":2}', '{"a":1,"a":"x"}',
    '{"s":1,"s":[1]}', '{"o":{"x":1},"o":{"s":"q"}}', "{'a':1}", '{a:1}', '{"a" :1}', '{"a":1,}',
    '{"z":tru,"a":1}', '{"z":{"y":tru},"a":1}', '{"a":1,"z":"\udcff"}', '{"\udcff":1,"a":2}',
    '{"\\u0061":7}', '{"\\q":7}', '{"_corrupt_record":"x","a":1}',
]
# fmt: on


def record(chance: random.Random, names: Sequence[str]) -> bytes:
    """One record with some of these columns, in which a value may be anything."""
    if chance.random() < 0.08:
        return chance.choice(ODD).encode("utf-8", "surrogateescape")
    fields = [
        _field(chance, chance.choice(names)) for _ in range(chance.choice([1, 1, 2, 2, 3, 4]))
    ]
    return ("{" + ",".join(fields) + "}").encode("utf-8", "surrogateescape")


def _field(chance: random.Random, name: str) -> str:
    value = chance.choice(chance.choices([NUMBERS, TEXTS, NESTED], [35, 30, 35])[0])
    before, after = chance.choice(["", "", "", " ", "\t"]), chance.choice(["", "", "", " "])
    return f'"{name}"{after}:{before}{value}{after}'
