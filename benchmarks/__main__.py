"""Prints the table: `make bench`, or `python -m benchmarks [row ...]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from . import rows
from .bench import Bench, Result
from .data import Data
from .machine import describe
from .streams import session

_HEAD = "\n| work | Sluice | peer | ratio | |\n|---|---|---|---|---|"


def main() -> int:
    """Measure the chosen rows; a row that fails is named and does not stop the others."""
    arguments = _arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # What pip installs is compiled; else each process of a query compiles the package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    spark = session(arguments.packages)
    bench = Bench(
        spark, Data(arguments.data), arguments.runs, not arguments.alone, arguments.flink,
        arguments.packages,
    )  # fmt: skip
    print(describe(spark), flush=True)
    has_head = failed = False
    for name in arguments.rows or rows.USUAL:
        try:
            for result in rows.ALL[name](bench):
                # Rows of text have a table of their own.
                if not has_head and isinstance(result, Result):
                    print(_HEAD, flush=True)
                has_head = isinstance(result, Result)
                print(_line(result) if isinstance(result, Result) else result, flush=True)
        except Exception as error:  # noqa: BLE001 a row may fail in any way Spark can
            failed = True
            print(f"| {name} | failed: {str(error).splitlines()[0][:200]} | | | |", flush=True)
            print(error, file=sys.stderr)
    spark.stop()
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    listed = "\n".join(f"  {name:10} {made.__doc__}" for name, made in rows.ALL.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\nrows:\n{listed}\n\nwithout any: {' '.join(rows.USUAL)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("rows", nargs="*", metavar="row", help=f"of {' '.join(rows.ALL)}")
    cache = Path(tempfile.gettempdir()) / "sluice-benchmarks"
    parser.add_argument("--data", type=Path, default=cache, help="where the files are kept")
    parser.add_argument("--runs", type=int, default=5, help="of which the median is taken")
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--flink", default="", help="a Python interpreter that has PyFlink")
    parser.add_argument("--packages", default="", help="of Maven, for Spark, such as its Avro")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.rows if name not in rows.ALL]
    if unknown:
        parser.error(f"no such row: {' '.join(unknown)}")
    return arguments


def _line(result: Result) -> str:
    own = _figure(result.sluice, result.unit)
    if result.peer is None:
        return f"| {result.work} | {own} | | | {result.note} |"
    ratio = f"{result.peer / result.sluice:.2f}" if result.sluice else ""
    peer = f"{_figure(result.peer, result.unit)} ({result.peer_name})"
    return f"| {result.work} | {own} | {peer} | {ratio} | {result.note} |"


def _figure(value: float, unit: str) -> str:
    digits = 1 if unit == "%" else 2 if unit == "s" or (unit == "ms" and value < 10) else 0
    return f"{value:,.{digits}f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
