"""A home of Spark whose Python processes start in half of the time.

They would import PySpark out of Spark's zip file, which holds no bytecode: each of them compiles it
again, a second and more, and a query starts several. Without the zip file they import what is
installed. What a newcomer starts has a test with the zip file (`spark/test_first_minute.py`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path


def use_a_quick_home() -> None:
    """For every Spark that this process and those below it start, unless one is chosen already."""
    found = find_spec("pyspark")
    if "SPARK_HOME" in os.environ or found is None or found.origin is None:
        return
    installed = Path(found.origin).parent
    home = Path(tempfile.mkdtemp(prefix="spark-home-"))
    # Links, which are not followed.
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "python" / "lib").mkdir(parents=True)
    for entry in installed.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)
    os.environ["SPARK_HOME"] = str(home)
