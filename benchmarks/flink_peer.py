"""Drains a directory with Flink's FileSource into its black hole and prints the seconds it took.

Run by an interpreter that has PyFlink, which cannot be installed next to PySpark:
`python flink_peer.py <path> <format> <columns in Flink's SQL>`. Imports nothing of Sluice.
"""

from __future__ import annotations

import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

PARALLELISM = "2"
"""As many tasks as the benchmark's Spark session has cores."""


def main(path: str, file_format: str, columns: str) -> None:
    """Time from the submission of the job to its end; the JVM is up before.

    Streaming mode, which on small files is the faster of Flink's two.
    """
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", PARALLELISM)
    tables.execute_sql(
        f"CREATE TABLE source ({columns}) WITH "
        f"('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = '{file_format}')"
    )
    tables.execute_sql(f"CREATE TABLE sink ({columns}) WITH ('connector' = 'blackhole')")
    begin = time.perf_counter()
    tables.execute_sql("INSERT INTO sink SELECT * FROM source").wait()
    print(time.perf_counter() - begin)


if __name__ == "__main__":
    main(*sys.argv[1:])
