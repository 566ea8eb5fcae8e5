"""Reads files of npm's and Go's writers without a schema, outside of all tests.

`python -m pyspark_sluice.tests.interop.writers_of_others npm`, or `go`, fetches the packages and
prints each file whose values are other ones than were written. It needs Node.js, or Go.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark_sluice.errors import SluiceError
from pyspark_sluice.reader.files.options import ReaderOptions
from pyspark_sluice.reader.files.schemas.inference import inferred_schema
from pyspark_sluice.reader.files.testing import read_rows, version

NPM = "hyparquet-writer@0.17.0 apache-arrow@21.2.0 parquet-wasm@0.8.0 avsc@5.7.9"
GO = (
    "github.com/apache/arrow-go/v18@v18.8.0 github.com/hamba/avro/v2@v2.31.0 "
    "github.com/parquet-go/parquet-go@v0.32.0"
)
EXPECTED = {
    "bool": "[True, None, False]", "boolean": "[True, None, False]", "int32": "[-5, None]",
    "int64": f"[{2**62}, None]", "float": "[1.5, None]", "double": "[2.5, None]",
    "string": "['é', None, '']", "json": "['{\"a\":1}', None]", "uuid": "refused",
    "byte_array": "[b'\\xff\\x00']", "float16": "[1.5]", "half": "[1.5]", "int8": "[-128, None]",
    "uint64": f"[Decimal('{2**64 - 1}')]", "text": "['é', None]", "dictionary": "['a', None, 'a']",
    "date": "[datetime.date(2020, 2, 29)]", "list": "[[1, None], []]", "fixed": "[[1, 2]]",
    "timestamp": "datetime.datetime(2020, 2, 29, 12, 0, 0, 123000",
    "struct": "[{'x': 1}, None]", "map": "[[('k', 1)]]",
    "avsc.bool": "[True]", "avsc.int": "[-5]", "avsc.long": "[5]", "avsc.double": "[2.5]",
    "avsc.text": "['é']", "avsc.bytes": "[b'\\xff']", "avsc.enum": "['B']",
    "avsc.list": "[[1, 2]]", "avsc.nameless": "[{'x': 1}]",
    "arrow-go.decimal": "[Decimal('-1.25'), None]", "decimal32": "[Decimal('-1.25'), None]",
    "arrow-go.date": "[datetime.date(2020, 2, 29), None]", "fixedlist": "[[1, None], None]",
    "arrow-go.half": "[1.5, None]", "arrow-go.list": "[[1, None], None, []]",
    "listview": "[[1, None], None, []]", "arrow-go.map": "[[('k', 1)], None]",
    "micros": "[datetime.datetime(2020, 2, 29, 12, 0, 0, 123456",
    "time": "datetime.time(1, 2, 3, 4)",
    "view": "['longer than twelve bytes', None]", "hamba.bool": "[True, False]",
    "bytes": "[b'\\xff", "hamba.decimal": "[Decimal('-1.25')]", "hamba.double": "[2.5]",
    "hamba.enum": "['B']", "hamba.fixed": "[b'\\x01\\x02\\x03']", "hamba.float": "[1.5]",
    "int": "[5, -5]", "hamba.list": "[[1, 2]]", "long": f"[{2**62}, None]",
    "millis": "[datetime.datetime(2020, 2, 29, 12, 0, 0, 123000", "hamba.struct": "[{'x': 1}]",
    "parquet-go.float": "[1.5]", "parquet-go.int8": "[-128, 127]", "uint8": "[255]",
    "parquet-go.list": "[[1, 2], []]", "tagged": "refused", "parquet-go.text": "['', None, 'é']",
    "parquet-go.struct": "[{'x': 1, 'y': None}, {'x': 2, 'y': 'a'}]", "uint32": f"[{2**32 - 1}]",
    "structs": "[[{'x': 1, 'y': 'a'}]]",
    "parquet-go.timestamp": "[datetime.datetime(2020, 2, 29, 12, 0, 0, 123456",
}  # fmt: skip
"""Values by type, or by writer and type."""


def _found(path: Path) -> str:
    kind = path.suffix[1:]
    try:
        schema = inferred_schema([version(path)], ReaderOptions(file_format=kind))
        return str([row["v"] for row in read_rows([path], schema, file_format=kind)])
    except SluiceError as error:
        is_type = "column 'v'" in str(error) or "column 'uuid'" in str(error)
        return "refused" if is_type else str(error)


def _main(language: str) -> int:
    same, different = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = Path(__file__).with_suffix(".go" if language == "go" else ".mjs")
        shutil.copy(program, folder)
        for call in (
            ["go mod init writers", f"go get {GO}", "go mod tidy", f"go run {program.name}"]
            if language == "go"
            else [f"npm install --silent {NPM}", f"node {program.name}"]
        ):
            subprocess.run(call.split(), cwd=folder, check=True)
        # The program and the lists of packages have names of two parts.
        for path in sorted(folder.glob("*.*.*")):
            writer, kind, _ = path.name.split(".")
            expected = EXPECTED.get(f"{writer}.{kind}", EXPECTED.get(kind, "a known type"))
            found = _found(path)
            same += expected in found
            if expected not in found:
                different += 1
                print(f"{path.name}: {found} instead of {expected}")
    print(f"{same} as expected, {different} others")
    return different


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
