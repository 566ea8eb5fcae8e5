"""The log of a Delta table: the commits from which it derives, and types of columns in its JSON.

Application transactions survive a RESTORE, which takes later commits back. So a mark counts only if
no RESTORE came after its commit. Otherwise the mark of the version counts that the table was
restored to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..checkpoint_meta.stores.contract import StateStore, in_parallel
from ..reader.files.evolution.column_names import ColumnNames


@dataclass(frozen=True)
class DeltaCommit:
    """One version of a table as its log has it."""

    version: int
    operation: str
    parameters: Mapping[str, Any]
    transactions: Mapping[str, int]
    added: Collection[str]
    """Paths of data files, as the log has them."""

    changed: Collection[tuple[str, str]]
    """Files with their deletion vectors, added or removed."""

    @property
    def restored_version(self) -> int | None:
        """The version that a RESTORE names; None if it names a time."""
        number = str(self.parameters.get("version"))
        return int(number) if number.isdecimal() else None


class DeltaHistory:
    """The log of a table."""

    def __init__(self, log: StateStore) -> None:
        """`log` is the directory `_delta_log`."""
        self._log = log

    def restored(self, version: int, after: int) -> int | None:
        """The version that the newest RESTORE `after` a version led back to; None without one.

        Commits that the log does not have any more count as no RESTORE.

        Raises:
            FileNotFoundError: a RESTORE is there, and the log does not say where it led.
        """

        def restore_in(number: int) -> DeltaCommit | None:
            try:
                commit = self._commit(number)
            except FileNotFoundError:
                return None
            return commit if commit.operation == "RESTORE" else None

        restores = [each for each in in_parallel(restore_in, range(version, after, -1)) if each]
        return self._restored_by(restores[0]) if restores else None

    def applications(self, version: int) -> Collection[str]:
        """The names of applications with transactions up to a version, as far as the log has it."""
        try:
            start = int(json.loads(self._log.read("_last_checkpoint"))["version"])
        except FileNotFoundError:
            start = -1
        leaves = [
            leaf for leaf in self._log.list("") if leaf.startswith(f"{start:020}.checkpoint.")
        ]
        names = {name for leaf in leaves for name in self._in_checkpoint(leaf)}

        def added(number: int) -> Collection[str]:
            with suppress(FileNotFoundError):
                return self._commit(number).transactions
            return ()

        return names.union(*in_parallel(added, range(start + 1, version + 1)))

    def _in_checkpoint(self, leaf: str) -> Iterator[str]:
        data = self._log.read(leaf)
        if leaf.endswith(".json"):
            actions = map(json.loads, data.splitlines())
            transactions = [each["txn"] for each in actions if "txn" in each]
        else:
            table = pq.read_table(pa.BufferReader(data), columns=["txn"])
            columns = [column.drop_null() for column in table.columns]
            transactions = [each for column in columns for each in column.to_pylist()]
        return (each["appId"] for each in transactions)

    def commits(self, version: int) -> Iterator[DeltaCommit]:
        """The commits from which a version derives, newest first.

        Raises:
            FileNotFoundError: the log does not have the next one any more.
        """
        while version >= 0:
            commit = self._commit(version)
            if commit.operation == "RESTORE":
                version = self._restored_by(commit)
            else:
                yield commit
                version -= 1

    def _restored_by(self, restore: DeltaCommit) -> int:
        if restore.restored_version is not None:
            return restore.restored_version
        # By a time, in a zone that the log does not name: the newest version with the same files.
        version, difference = restore.version - 1, {*restore.changed}
        while difference:
            difference ^= {*self._commit(version).changed}
            version -= 1
        return version

    def _commit(self, version: int) -> DeltaCommit:
        lines = self._log.read(f"{version:020}.json").splitlines()
        actions = [
            (kind, body) for line in lines if line for kind, body in json.loads(line).items()
        ]
        info: Mapping[str, Any] = next((body for kind, body in actions if kind == "commitInfo"), {})
        files = {kind: {_file(b) for k, b in actions if k == kind} for kind in ("add", "remove")}
        return DeltaCommit(
            version,
            info.get("operation", ""),
            info.get("operationParameters") or {},
            {body["appId"]: body["version"] for kind, body in actions if kind == "txn"},
            [body["path"] for kind, body in actions if kind == "add"],
            files["add"] ^ files["remove"],
        )


def _file(action: Mapping[str, Any]) -> tuple[str, str]:
    return action["path"], json.dumps(action.get("deletionVector"), sort_keys=True)


# Column types: those of a table, merged with those of files ----------------------------------

_INTEGERS: Final = ("byte", "short", "integer")
"""Types that Parquet stores alike: files of one can be read as a wider one."""


def both(one: Any, other: Any, where: str, *, of_table: bool) -> Any:
    """A type in Delta's JSON with what a file's has in addition; new fields are nullable.

    Of a table (`of_table`) the fields stay nullable or not, otherwise both have to promise it.

    Raises:
        ValueError: the two do not fit; says where.
    """
    if one in (other, "void"):
        return other
    if isinstance(one, str) and isinstance(other, str):
        if one in _INTEGERS and other in _INTEGERS[: _INTEGERS.index(one)]:
            return one
    elif isinstance(one, dict) and isinstance(other, dict) and one["type"] == other["type"]:
        if one["type"] == "struct":
            fields = _fields(one["fields"], other["fields"], where, of_table=of_table)
            return {**one, "fields": fields}
        # Keys of maps are compared as a whole below: they have to be equal.
        inner = "elementType" if one["type"] == "array" else "valueType"
        below = both(one[inner], other[inner], f"{where}.{inner}", of_table=of_table)
        merged = {**one, inner: below}
        nullable = [key for key in one if key.lower().endswith("containsnull")]
        if all(merged[key] == other[key] for key in merged if key not in (inner, *nullable)):
            return {**merged, **dict.fromkeys(nullable, True)}
    place = where.lstrip(".") or "the rows"
    message = f"{place} is {_type_name(other)}, and {_type_name(one)} in the table"
    raise ValueError(message)


def _fields(one: Sequence[Any], other: Sequence[Any], where: str, *, of_table: bool) -> list[Any]:
    fields = {field["name"]: field for field in one}
    new_fields = {field["name"]: field for field in other}
    names = ColumnNames(fields)
    for name, field in new_fields.items():
        if name not in fields:
            if name in names:
                message = f"{where}.{name} is {names.find(name)} in the table"
                raise ValueError(message.lstrip("."))
            fields[name] = {**field, "nullable": True}
            continue
        kind = both(fields[name]["type"], field["type"], f"{where}.{name}", of_table=of_table)
        fields[name] = {**fields[name], "type": kind}
    if not of_table:
        for name, field in fields.items():
            promised = name in new_fields and not new_fields[name]["nullable"]
            fields[name] = {**field, "nullable": field["nullable"] or not promised}
    return list(fields.values())


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(kind["type"])
