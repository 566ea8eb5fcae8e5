"""`make fuzz`: reads generated files of the text formats for a given time.

Prints each new difference, and in the end, or when it is interrupted,
how many readings were compared; fails if a difference is not documented.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from pyspark_sluice.tests.reader.readings.generate import FORMATS, group_of
from pyspark_sluice.tests.reader.readings.machine import Findings, Machine
from pyspark_sluice.tests.reader.readings.of_spark import read_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """Run until the time is over; 1 if there are differences that are not documented."""
    asked = _arguments()
    spark = _session()
    machine = Machine(partial(read_by_spark, spark), Random(asked.seed), failing=4)
    findings = Findings()
    print(f"seed {asked.seed}", flush=True)
    started = time.monotonic()
    with suppress(KeyboardInterrupt):
        _compare(machine, findings, asked)
    print(f"\n{(time.monotonic() - started) / 60:.0f} minutes")
    _print_counts(machine.counts, findings)
    spark.stop()
    return 1 if findings.undocumented else 0


def _compare(machine: Machine, findings: Findings, asked: argparse.Namespace) -> None:
    until = time.monotonic() + asked.minutes * 60
    numbers = count() if asked.group is None else [asked.group]
    for number in numbers:
        for file_format in asked.formats:
            if time.monotonic() > until:
                return
            group = group_of(file_format, asked.seed, number, asked.files)
            again = f'make fuzz FUZZ="--formats {file_format} --seed {asked.seed} --group {number} '
            source = f'{again}--files {asked.files}"'
            for text in findings.take(machine.differences(group), source):
                print(text, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=[*FORMATS])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--group", type=int, default=None, help="one group only, by its number")
    parser.add_argument("--files", type=int, default=80, help="files of a group")
    return parser.parse_args()


def _session() -> SparkSession:
    from pyspark_sluice.tests.spark_home import use_a_quick_home

    use_a_quick_home()
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    # Every record that Spark fails for would be a page of its log.
    session.sparkContext.setLogLevel("OFF")
    return session


def _print_counts(counts: Counter[str], findings: Findings) -> None:
    print(f"{counts.total()} readings compared")
    print("; ".join(f"{reading} {times}" for reading, times in counts.most_common()))
    print(f"documented differences met: {findings.documented.total()}")
    for row, times in findings.documented.most_common():
        print(f"  {times:>6}  {row}")
    print(f"kinds of undocumented differences: {len(findings.undocumented)}")


if __name__ == "__main__":
    sys.exit(main())
