"""Writes files with packages that the project does not use; runs in an environment of their own.

`python foreign_writers.py WRITER FOLDER` reads each `N.arrow` in the folder, and writes the table
in it as `N.written`. Nothing is written where the writer refuses a table.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa


def _by_fastparquet(table: pa.Table, source: Path, path: Path) -> None:
    fastparquet = import_module("fastparquet")

    del source
    fastparquet.write(str(path), table.to_pandas())


def _by_datafusion(table: pa.Table, source: Path, path: Path) -> None:
    datafusion = import_module("datafusion")

    del source
    written = path.with_suffix(".parquet")
    datafusion.SessionContext().from_arrow(table).write_parquet(str(written))
    found = [written] if written.is_file() else list(written.glob("*"))
    found[0].rename(path)


def _by_pyorc(table: pa.Table, source: Path, path: Path) -> None:
    pyorc = import_module("pyorc")

    del source
    fields = ",".join(f"{field.name}:{_orc_type(field.type)}" for field in table.schema)
    kind, is_record = f"struct<{fields}>", pyorc.StructRepr.DICT
    with path.open("wb") as sink, pyorc.Writer(sink, kind, struct_repr=is_record) as writer:
        for row in table.to_pylist():
            writer.write({name: _orc_value(value) for name, value in row.items()})


def _orc_value(value: Any) -> Any:
    is_map = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if is_map else value


def _orc_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{_orc_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{_orc_type(kind.key_type)},{_orc_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{_orc_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    instant = pa.timestamp("us", "UTC")
    return _ORC[kind] if kind != instant else "timestamp with local time zone"


_ORC = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
}


def _by_chdb(form: str) -> Any:
    def write(table: pa.Table, source: Path, path: Path) -> None:
        chdb = import_module("chdb")

        del table
        given = f"SELECT * FROM file('{source}', 'Arrow')"
        path.write_bytes(chdb.query(f"{given} SETTINGS session_timezone = 'UTC'", form).bytes())

    return write


WRITERS: dict[str, Any] = {
    "fastparquet": _by_fastparquet,
    "datafusion": _by_datafusion,
    "pyorc": _by_pyorc,
    "chdb": _by_chdb("Parquet"),
    "chdb, ORC": _by_chdb("ORC"),
    "chdb, Arrow": _by_chdb("Arrow"),
    "chdb, Avro": _by_chdb("Avro"),
}


def _main(writer: str, folder: str) -> None:
    for source in sorted(Path(folder).glob("*.arrow")):
        table = pa.ipc.open_file(source.read_bytes()).read_all()
        path = source.with_suffix(".written")
        try:
            WRITERS[writer](table, source, path)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - each has its own
            path.unlink(missing_ok=True)
            print(source.stem, "not written:", str(error)[:200])


if __name__ == "__main__":
    _main(*sys.argv[1:])
