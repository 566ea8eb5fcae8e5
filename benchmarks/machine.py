"""Names the machine and the versions, without which a figure says nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession


def describe(spark: SparkSession) -> str:
    """One line."""
    java = spark._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]  # noqa: SLF001
    return (
        f"{os.cpu_count()} cores ({_processor()}), {_memory():.0f} GiB memory, "
        f"{platform.system()} {platform.machine()}; Python {platform.python_version()}, "
        f"Spark {pyspark.__version__}, pyarrow {pa.__version__}, Java {java}"
    )


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "processor unknown"


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2**30
