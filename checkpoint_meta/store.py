"""The one door to durable state: create-only publish, read, list, delete.

Not here: what the objects mean (`layout.py`, `checkpoint.py`, `reader_commit.py`).
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from typing_extensions import override

from ..errors import StateError
from .urls import local_path, storage_url

T = TypeVar("T")


class StateStore(ABC):
    """Named immutable objects. Names are relative, with `/` between directory and leaf.

    An object appears whole or not at all, and never changes once it is there.
    """

    @property
    @abstractmethod
    def location(self) -> str:
        """The root as the user would write it; for messages."""

    @abstractmethod
    def publish(self, name: str, data: bytes) -> None:
        """Create `name` with `data`; durable when this returns.

        Raises:
            FileExistsError: `name` is there already, whatever its content.
        """

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The whole content of `name`.

        Raises:
            FileNotFoundError: there is no such object.
        """

    @abstractmethod
    def list(self, directory: str) -> list[str]:
        """Leaf names directly in `directory`, sorted; empty where there is none."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove `name`, an object or a directory of objects; nothing happens if it is gone."""


class LocalStateStore(StateStore):
    """State on a local (or locally mounted) file system.

    Temporary file, fsync, hard link, fsync of the directory: a crash leaves the object whole or
    leaves a temporary file that nobody reads.
    """

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    @property
    @override
    def location(self) -> str:
        return str(self._root)

    @override
    def publish(self, name: str, data: bytes) -> None:
        target = self._root / name
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileNotFoundError:
            self._make_directory(target.parent)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # A link, unlike a rename, fails where the target exists.
            os.link(temporary, target)
        finally:
            os.unlink(temporary)
        _sync_directory(target.parent)

    def _make_directory(self, directory: Path) -> None:
        missing = [directory, *directory.parents]
        directory.mkdir(parents=True, exist_ok=True)
        # A new directory is durable once its parent is.
        for parent in missing[1:]:
            _sync_directory(parent)
            if parent == self._root.parent:
                break

    @override
    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    @override
    def list(self, directory: str) -> list[str]:
        try:
            names = os.listdir(self._root / directory)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if not name.startswith("."))

    @override
    def delete(self, name: str) -> None:
        target = self._root / name
        with contextlib.suppress(FileNotFoundError):
            if target.is_dir():
                for child in target.iterdir():
                    child.unlink(missing_ok=True)
                target.rmdir()
            else:
                target.unlink()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ObjectStateStore(StateStore):
    """State on any fsspec file system whose `pipe_file` can create conditionally."""

    def __init__(self, url: str, storage_options: Mapping[str, Any]) -> None:
        options = {"use_listings_cache": False, **storage_options}
        self._fs, self._root = fsspec.url_to_fs(url, **options)
        self._url = url

    @property
    @override
    def location(self) -> str:
        return self._url

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @override
    def publish(self, name: str, data: bytes) -> None:
        try:
            self._fs.pipe_file(self._path(name), data, mode="create")
        except (TypeError, NotImplementedError) as error:
            raise StateError(
                "the file system cannot create an object only if it is absent",
                self._url,
                f"{type(self._fs).__name__}: {error}",
                "support for pipe_file(path, data, mode='create')",
                "Point stateLocation at a local path or at an object store with conditional puts.",
            ) from error

    @override
    def read(self, name: str) -> bytes:
        data: bytes = self._fs.cat_file(self._path(name))
        return data

    @override
    def list(self, directory: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            paths = self._fs.ls(self._path(directory), detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)

    @override
    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._path(name), recursive=True)


class RetryingStateStore(StateStore):
    """Retries passing faults of another store, with back-off, and raises the last one by name.

    A publish whose answer was lost may have succeeded: the retry then finds the object, and it is
    ours exactly if its content is.
    """

    def __init__(
        self,
        inner: StateStore,
        attempts: int = 4,
        first_delay: float = 0.1,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._first_delay = first_delay
        self._sleep = sleep

    @property
    @override
    def location(self) -> str:
        return self._inner.location

    def _retry(self, verb: str, name: str, action: Callable[[int], T]) -> T:
        delay = self._first_delay
        for attempt in range(self._attempts):
            try:
                return action(attempt)
            except (FileExistsError, FileNotFoundError):
                raise
            except OSError as error:
                if attempt + 1 == self._attempts:
                    raise StateError(
                        f"the state store failed to {verb} {self._attempts} times in a row",
                        f"{self.location}/{name}",
                        repr(error),
                        "a store that answers",
                        "Repair access to the state directory, then restart: nothing is lost.",
                    ) from error
                self._sleep(delay)
                delay *= 3
        raise AssertionError

    @override
    def publish(self, name: str, data: bytes) -> None:
        def action(attempt: int) -> None:
            try:
                self._inner.publish(name, data)
            except FileExistsError:
                if attempt == 0 or self._inner.read(name) != data:
                    raise

        self._retry("publish", name, action)

    @override
    def read(self, name: str) -> bytes:
        return self._retry("read", name, lambda _: self._inner.read(name))

    @override
    def list(self, directory: str) -> list[str]:
        return self._retry("list", directory, lambda _: self._inner.list(directory))

    @override
    def delete(self, name: str) -> None:
        self._retry("delete", name, lambda _: self._inner.delete(name))


def open_store(url: str, storage_options: Mapping[str, Any] | None = None) -> StateStore:
    """The store for a path or URL, with retries; nothing is created or checked yet."""
    path = local_path(url)
    inner: StateStore = (
        LocalStateStore(path)
        if path is not None
        else ObjectStateStore(storage_url(url), storage_options or {})
    )
    return RetryingStateStore(inner)
