"""Reads files of npm's writers without a schema, outside of all tests: it needs Node.js.

`python -m pyspark_sluice.tests.interop.npm_writers` fetches the packages and prints each file whose
values are other ones than were written.
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

PACKAGES = "hyparquet-writer@0.17.0 apache-arrow@21.2.0 parquet-wasm@0.8.0 avsc@5.7.9"
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
}  # fmt: skip
"""Values by type, or by writer and type."""


def _found(path: Path) -> str:
    kind = path.suffix[1:]
    try:
        schema = inferred_schema([version(path)], ReaderOptions(file_format=kind))
        return str([row["v"] for row in read_rows([path], schema, file_format=kind)])
    except SluiceError as error:
        return "refused" if "column 'v'" in str(error) else str(error)


def _main() -> int:
    same, different = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(Path(__file__).with_suffix(".mjs"), folder)
        subprocess.run(["npm", "install", "--silent", *PACKAGES.split()], cwd=folder, check=True)
        subprocess.run(["node", "npm_writers.mjs"], cwd=folder, check=True)
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
    sys.exit(_main())
