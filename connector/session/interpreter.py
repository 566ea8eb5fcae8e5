"""Which Python Spark's own processes run: this one, unless somebody has said otherwise.

Spark looks for sources with the interpreter that PYSPARK_PYTHON or PYSPARK_DRIVER_PYTHON name in
the environment of its JVM, else with the first `python3` of the PATH. Where a virtual
environment is not activated that is another one, which does not have this package.

Not here: making the source known (`spark/registration.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

_VARIABLES = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

# Taken at import, since `use_this_interpreter` changes the environment afterwards.
_BEFORE = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}


def use_this_interpreter() -> None:
    """Let a session that is made from now on run this interpreter.

    Changes nothing where the environment names one, or where `python3` is this one anyway.
    """
    if sys.executable and not any(os.environ.get(name) for name in _VARIABLES):
        found = shutil.which("python3")
        if found is None or not is_same_environment(found):
            os.environ["PYSPARK_PYTHON"] = sys.executable


def interpreters_before() -> Mapping[str, str]:
    """What the environment said before this package was imported, by variable."""
    return _BEFORE


def run_this_interpreter_in(context: Any) -> None:
    """Let Python processes that a local SparkContext starts from now on run this interpreter."""
    if context.master.startswith("local") and not _is_configured(context):
        # The context keeps the name that it hands to all Python processes.
        context.pythonExec = sys.executable


def _is_configured(context: Any) -> bool:
    found = shutil.which(context.pythonExec)
    return context.pythonExec != "python3" or (found is not None and is_same_environment(found))


def is_same_environment(python: str) -> bool:
    """True for an interpreter of this environment; what links lead to is the same for many."""
    folders = (os.path.dirname(each) for each in (python, sys.executable))
    return len(set(map(os.path.realpath, folders))) == 1
