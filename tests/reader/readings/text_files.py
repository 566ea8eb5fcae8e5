"""Random text, in files whose names have odd characters: lines, own separators, whole files."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.model import Group

ODD_NAMES = (" ", "%", "+", "é", "#", "a b", "%20", "[x]", "{y}", "~", "&", "=", "'", "^", "中")
SCHEMA = pa.schema([pa.field("value", pa.string())])
METADATA = pa.struct([("file_path", pa.string()), ("file_name", pa.string())])
NAMED = SCHEMA.append(pa.field("_metadata", METADATA))
PIECES = (
    *(
        "a",
        "b",
        " ",
        "|",
        "\n",
        "\r",
        "\r\n",
        "é",
        "\ufeff",
        "\U0001f600",
        "||",
        "\t",
        "\\",
        "\x00",
    ),
)


def group(chance: Random, files: int) -> Group:
    """Files of one separator, encoding and codec."""
    drawn = {
        "lineSep": chance.choice(["|", "||", "\\n", "|\n", "a", "\r", "\\t", "é", "\\r\\n"]),
        "encoding": chance.choice(["UTF-16LE", "ISO-8859-1", "US-ASCII", "UTF-16BE", "UTF-8"]),
        "wholetext": "true",
    }
    likely = {"lineSep": 0.5, "encoding": 0.3, "wholetext": 0.15}
    options = {k: v for k, v in drawn.items() if chance.random() < likely[k]}
    encoding = options.get("encoding", "utf-8")
    made = tuple(
        "".join(chance.choices(PIECES, k=chance.randint(0, 12))).encode(encoding, "replace")
        for _ in range(files)
    )
    names = tuple(chance.choice(ODD_NAMES) for _ in range(files)) if chance.random() < 0.5 else ()
    suffix = "" if names else chance.choice(["", "", "", ".gz", ".bz2", ".deflate"])
    schema = NAMED if names else SCHEMA
    return Group("text", schema, options, made, suffix, names=names)
