"""Processes that run one query: errors without their traceback, and fewer imports.

An error of the tree says what happened, where and the remedy; this package's frames around it, and
the exceptions it was made of, would only bury that. A `ProtocolError` is a bug of this package, so
it keeps them, as any other exception does, but for the secrets in them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, Final

from ...errors import ProtocolError, SluiceError, without_history
from ...masking import without_secrets

# What Spark's Python processes look at before they write an exception down for the JVM.
_HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Around every call of Spark's: our errors leave without their history.

    A process of Spark's ends with the exception that it hands over, so the switch concerns that
    one alone.
    """
    try:
        yield
    except SluiceError as error:
        # A bug: the way to it matters to those who have to find it.
        if isinstance(error, ProtocolError):
            without_secrets(error)
            raise
        if is_process_of_spark():
            os.environ[_HIDE] = "1"
        raise without_history(error) from None
    except Exception as error:
        shown = without_secrets(error)
        if shown is error:
            raise
        raise shown from shown.__cause__


def is_process_of_spark() -> bool:
    """True in a process that Spark has started for Python."""
    # Spark runs its workers by `python -m pyspark...`; a script or a notebook has no such spec.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


class _NotThere:
    # No subclass of `MetaPathFinder`: its module takes longer to import than this one. A None in
    # `sys.modules` would not do: pyarrow takes it for the module.
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Meanwhile pandas cannot be imported, where it is not loaded already."""
    finder = _NotThere()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def leave_pandas_out() -> None:
    """Let pyarrow look for pandas now, and find none.

    With the first list that it makes an array of, pyarrow imports pandas to see whether the list is
    a series: a quarter of a second before the first batch, more than all modules of this package
    take, and nothing here ever uses it.

    For a process of our own: until `to_pandas` or the like asks again, which finds it, pyarrow
    takes a series for any other sequence. Where the type of an array is left to its values pyarrow
    asks again, too, so types have to be said. Where pandas is loaded already nothing is changed.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    with without_pandas():
        # Any conversion makes pyarrow look for pandas; it remembers that the import failed.
        pa.array([], pa.null())


def import_late(*names: str) -> None:
    """Let these modules be imported when something of them is first used.

    For a process of our own, whose modules import them at their beginning: a run that finds nothing
    new uses nothing of `pyarrow.compute`, which is made of the documentation of three hundred
    functions, and takes as long as all of pyarrow otherwise. What is imported already stays.
    """
    for name in names:
        if name not in sys.modules:
            package, _, leaf = name.rpartition(".")
            sys.modules[name] = _LateModule(name)
            setattr(import_module(package), leaf, sys.modules[name])


class _LateModule(ModuleType):
    """A module that is imported when it is first used, and has all of it from then on."""

    def __getattr__(self, name: str) -> Any:
        # The import system and others ask for those of all modules.
        if name.startswith("__"):
            raise AttributeError(name)
        with _IMPORTING:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            # Also where an import has failed before: for want of files, say, it may fail once.
            vars(self).update(vars(import_module(self.__name__)))
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__} has no attribute {name}") from None


_IMPORTING: Final = RLock()


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
