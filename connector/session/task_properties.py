"""Properties that the host of a query passes to its tasks: Spark's local properties, or our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_properties: Mapping[str, str] | None = None
"""Those of the embedded host, of which one process runs one task at a time."""


@contextmanager
def task_properties(properties: Mapping[str, str]) -> Iterator[None]:
    """Run a task of the embedded host with these properties."""
    global _properties  # noqa: PLW0603 - of the process, as Spark's are of its thread
    before, _properties = _properties, properties
    try:
        yield
    finally:
        _properties = before


def task_property(name: str) -> str | None:
    """The property of the task that this code runs in; None without one, and outside of tasks."""
    if _properties is not None:
        return _properties.get(name)
    context = spark_task()
    value: str | None = context.getLocalProperty(name) if context else None
    return value


def spark_task() -> Any:
    """The `TaskContext` of Spark; None outside of its tasks."""
    # A task of Spark has imported it. The embedded host needs no PySpark.
    module = sys.modules.get("pyspark.taskcontext")
    return module.TaskContext.get() if module else None
