"""The books of a query: declared, found, read, rejected, skipped, waiting, and in the table.

Left is what the sender declares, or the files themselves as another reader counts them; right are
the data files of the table. What the query itself has counted is between the two.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from ...checkpoint_meta.files.file_columns import Flags, Numbers
from ...checkpoint_meta.index.fingerprints import Names, SeenKeys, names_of
from ...checkpoint_meta.storage.contract import at_once
from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import join
from ...errors import MissingPathError, OptionError
from ..query.file_rows import UNKNOWN
from .sides import READ, REJECTED, RETRACTED, SKIPPED, WAITING, InTable, KnownToState, Listed

_SUMS: Final = (".md5", ".sha256")
_JSON: Final = (".json", ".jsonl", ".ndjson")
_RECORDS: Final = (".csv", *_JSON)
_SUM_LINE: Final = re.compile(r"\\?(?P<digest>[0-9a-fA-F]+)\s+\*?(?P<name>.+)")
_COLUMNS: Final = ("name", "path", "rows", "bytes", "md5", "sha256")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A file that the sender says it has delivered."""

    path: str
    """As the query names its files."""

    rows: int | None = None
    bytes: int | None = None
    digests: tuple[tuple[str, str], ...] = ()
    """Pairs of an algorithm, md5 or sha256, and the hexadecimal digest of the content."""


def deliveries(
    place: str, roots: Sequence[str], storage_options: Mapping[str, Any]
) -> list[Delivery]:
    """The files that the lists at `place` declare.

    Args:
        place: a file, a pattern with `*`, or a directory whose `*.md5` and `*.sha256` count.
        roots: the loaded paths, to which the names in a list are relative.
        storage_options: of the store.

    Raises:
        MissingPathError: there is no such list.
        OptionError: a list does not parse.
    """
    storage, name = open_storage(place, storage_options)
    lists = list(_lists(storage, name))
    if not lists:
        raise MissingPathError(
            "there is no list of deliveries", place, "nothing", "a file, a pattern or a directory"
        )
    return [d for leaf in lists for d in _read(storage.url(leaf), storage.whole(leaf), roots)]


def _lists(storage: Any, name: str) -> Iterator[str]:
    fixed = re.split(r"[*?\[]", name, maxsplit=1)[0]
    if fixed != name:
        leaves = storage.files(fixed.rpartition("/")[0])
        yield from sorted(leaf for leaf in leaves if fnmatchcase(leaf, name))
    elif name.endswith((*_SUMS, *_RECORDS)):
        if storage.exists(name):
            yield name
    else:
        yield from sorted(leaf for leaf in storage.files(name) if leaf.endswith(_SUMS))


def _read(url: str, data: bytes, roots: Sequence[str]) -> Iterator[Delivery]:
    try:
        text = data.decode("utf-8-sig")
        rows = _sums(url, text) if url.endswith(_SUMS) else _records(url, text)
        for row in rows:
            yield _delivery(row, roots)
    except (ValueError, csv.Error) as error:
        raise OptionError(
            "--expect: the list of deliveries does not parse",
            url,
            str(error),
            "CSV with a header or JSON lines with the columns name or path, and where known rows, "
            "bytes, md5, sha256; or lines of md5sum or sha256sum in *.md5 and *.sha256",
        ) from error


def _sums(url: str, text: str) -> Iterator[Mapping[str, Any]]:
    algorithm = url.rpartition(".")[2]
    for line in filter(str.strip, text.splitlines()):
        match = _SUM_LINE.fullmatch(line.strip())
        if match is None:
            # A digest alone is that of the file beside it.
            digest, name = line.strip(), url.removesuffix(f".{algorithm}")
            yield {"path": name, algorithm: digest}
            continue
        yield {"path": join(url.rpartition("/")[0], match["name"]), algorithm: match["digest"]}


def _records(url: str, text: str) -> Iterator[Mapping[str, Any]]:
    if url.endswith(_JSON):
        for line in filter(str.strip, text.splitlines()):
            row = json.loads(line)
            yield row if isinstance(row, dict) else {}
        return
    reader = csv.DictReader(io.StringIO(text), strict=True)
    if not {"name", "path"} & {*(reader.fieldnames or ())}:
        message = f"columns {reader.fieldnames}"
        raise ValueError(message)
    yield from reader


def _delivery(row: Mapping[str, Any], roots: Sequence[str]) -> Delivery:
    if not (row.get("name") or row.get("path")):
        message = f"a line without name and path: {row!r}"
        raise ValueError(message)
    path = row["path"] if row.get("path") else join(roots[0], row["name"])
    storage, name = open_storage(path, {})
    counts = {key: int(row[key]) for key in ("rows", "bytes") if row.get(key) not in (None, "")}
    digests = tuple((key, str(row[key]).lower()) for key in ("md5", "sha256") if row.get(key))
    return Delivery(storage.url(name), counts.get("rows"), counts.get("bytes"), digests)


# The books -----------------------------------------------------------------------------------

NAMED: Final = 100
"""Files that are named of each difference."""

ENTRIES: Final = ("declared", "found", "read", "rejected", "skipped", "waiting", "table")

_CLASSES: Final = {"read": READ, "rejected": REJECTED, "skipped": SKIPPED, "waiting": WAITING}


@dataclass
class Difference:
    """One kind of difference, or what could not be compared."""

    what: str
    count: int
    names: Sequence[str] = ()
    """Paths, or where nobody knows it the key in the table; at most `NAMED`."""

    unverified: bool = False
    """True if it says what could not be compared."""


@dataclass
class Books:
    """The result of an audit."""

    files: dict[str, int | None]
    rows: dict[str, int | None]
    """None where that is not known."""

    directories: list[dict[str, Any]]
    differences: list[Difference] = field(default_factory=list)

    @property
    def balance(self) -> bool:
        """True if nothing differs, and all was compared."""
        return not self.differences


@dataclass(frozen=True)
class Sides:
    """All that is compared, in columns: a file a position."""

    keys: SeenKeys
    directory: Numbers
    directories: Sequence[str]
    state: KnownToState
    listed: Listed
    table: InTable | None
    """None if the table has no column of files."""

    declared: Sequence[Delivery] | None
    """None without a list."""

    is_partial: bool
    """True if the list is one of some files only."""

    def _at(self, keys: SeenKeys) -> Numbers:
        return keys.find(self.keys.names)

    def close(
        self,
        recounted: Callable[[SeenKeys], Numbers] | None,
        path_of: Callable[[Names], Sequence[str]],
        storage_options: Mapping[str, Any],
    ) -> Books:
        """Compare.

        Args:
            recounted: the rows of files by another reader, UNKNOWN where it cannot read one.
            path_of: the paths of some fingerprints, or their keys.
            storage_options: of the store of the input.
        """
        in_state = self._at(self.state.keys)
        known, here = in_state >= 0, self._at(self.listed.keys) >= 0
        left_out = (self._at(self.listed.left_out) >= 0) & ~known & ~here
        kind = _placed(in_state, self.state.kind, WAITING)
        is_retracted = known & (kind == RETRACTED)
        found = (known & ~is_retracted) | here | left_out
        # A file that is there, and whose rows an order has taken back.
        kind = np.where(left_out | (here & (kind == RETRACTED)), SKIPPED, kind)
        good = _placed(in_state, self.state.good, 0)
        bad = _placed(in_state, self.state.bad, 0)
        filtered = _placed(in_state, self.state.filtered, 0)
        is_declared, left = self._left(found, recounted)
        table = None
        if self.table is not None:
            table = _placed(self._at(self.table.keys), self.table.rows, 0)

        books = Books({}, {}, [])

        def note(what: str, mask: Flags, *, unverified: bool = False) -> None:
            at = np.flatnonzero(mask)
            if len(at):
                some = path_of(self.keys.names.take(at[:NAMED]))
                books.differences.append(Difference(what, len(at), some, unverified))

        if self.declared is not None:
            note("declared, not found", is_declared & ~found)
            if not self.is_partial:
                note("found, not declared", found & ~is_declared & (kind != SKIPPED))
            books.differences += _contents(self.declared, self.listed, storage_options)
        # What is left out has no rows for the query, and may have none for another reader.
        counts = found & ((left != UNKNOWN) | (kind != SKIPPED))
        if recounted is not None:
            note("files that DuckDB does not count", counts & (left == UNKNOWN), unverified=True)
        is_read = found & (kind == READ)
        rows_known, counted = left != UNKNOWN, good != UNKNOWN
        is_exact = filtered != UNKNOWN
        wrong = is_read & rows_known & counted & is_exact & (left != good + bad + filtered)
        note("rows read differ from those delivered", wrong)
        by_left = rows_known & (is_exact | (~counted & (not self.state.has_filter)))
        expected = np.where(by_left, left - np.maximum(bad, 0) - np.maximum(filtered, 0), good)
        comparable = (by_left | counted) & (not self.state.is_changed)
        if table is not None:
            note("rows in the table differ", is_read & comparable & (table != expected))
            note("in the table, though not read", ~known & (table > 0))
            note("in the table, though retracted", is_retracted & (table > 0))
            note(f"rows of single files: {self._unknown}", is_read & ~comparable, unverified=True)
            note(
                "rows of files that an order let read again beside their earlier rows",
                (self._at(self.state.again) >= 0) & is_read & ~rows_known & (table > 0),
                unverified=True,
            )
        elif self.declared is not None or recounted is not None:
            known_rows = rows_known & counted
            note("rows of single files", is_read & ~known_rows, unverified=True)
        entries = {
            "declared": is_declared if self.declared is not None else found,
            "found": found,
            **{name: found & (kind == number) for name, number in _CLASSES.items()},
            **({} if table is None else {"table": table > 0}),
        }
        # The table is not among them if it has no column of files.
        books.files = dict.fromkeys(ENTRIES) | {n: int(of.sum()) for n, of in entries.items()}
        books.rows = {
            "declared": None if self.declared is None else _sum(left, is_declared),
            "found": _sum(left, counts) if recounted else None,
            "read": _sum(good, found),
            "rejected": _sum(bad, found),
            "skipped": _sum(np.where((kind == SKIPPED) & rows_known, left, filtered), found),
            "waiting": _sum(left, found & (kind == WAITING)) if rows_known.any() else None,
            "table": None if table is None else int(table.sum()),
        }
        books.directories = list(self._by_directory(entries, good, table))
        return books

    @property
    def _unknown(self) -> str:
        if self.state.is_changed:
            return "writeTransform has changed how many there are"
        return "neither a list nor the state says how many"

    def _left(
        self, found: Flags, recounted: Callable[[SeenKeys], Numbers] | None
    ) -> tuple[Flags, Numbers]:
        """Which files are declared, and their rows by the sender or by another reader."""
        declared = self.declared or []
        names = names_of([one.path for one in declared])
        rows = np.array([UNKNOWN if d.rows is None else d.rows for d in declared], np.int64)
        keys = SeenKeys.sort(names, None, rows)
        assert keys.end is not None
        at = self._at(keys)
        left = _placed(at, keys.end, UNKNOWN)
        if recounted is not None:
            left = np.where(found, recounted(self.keys), left)
        return at >= 0, left

    def _by_directory(
        self, entries: Mapping[str, Flags], good: Numbers, table: Numbers | None
    ) -> Iterator[dict[str, Any]]:
        count = len(self.directories)
        files = {n: np.bincount(self.directory[m], minlength=count) for n, m in entries.items()}
        read = np.bincount(self.directory, np.maximum(good, 0), count).astype(np.int64)
        has = None
        if table is not None:
            has = np.bincount(self.directory, table, count).astype(np.int64)
        for at in np.argsort(self.directories):
            if any(numbers[at] for numbers in files.values()):
                yield {
                    "directory": self.directories[at],
                    "files": dict.fromkeys(ENTRIES) | {n: int(of[at]) for n, of in files.items()},
                    "rows": {
                        "read": int(read[at]) if (good != UNKNOWN).all() else None,
                        "table": None if has is None else int(has[at]),
                    },
                }


def _placed(at: Numbers, values: Numbers, default: int) -> Numbers:
    if not len(values):
        return np.full(len(at), default, np.int64)
    return np.where(at >= 0, values[at], default)


def _sum(numbers: Numbers, mask: Flags) -> int | None:
    chosen = numbers[mask]
    return None if (chosen == UNKNOWN).any() else int(chosen.sum())


def _contents(
    declared: Sequence[Delivery], listed: Listed, storage_options: Mapping[str, Any]
) -> Iterator[Difference]:
    """Compare sizes and digests with the files."""
    claims = [one for one in declared if one.bytes is not None or one.digests]
    at = listed.keys.find(names_of([one.path for one in claims]))
    assert listed.keys.end is not None
    sizes = [int(listed.keys.end[row]) if row >= 0 else None for row in at]

    def verdict(claim: tuple[Delivery, int | None]) -> str:
        one, size = claim
        if size is None:
            return "gone"
        if one.bytes is not None and one.bytes != size:
            return "differs"
        return "same" if _has_digests(one, storage_options) else "differs"

    verdicts = at_once(verdict, list(zip(claims, sizes, strict=True)))
    for what, outcome in (
        ("content differs from the list", "differs"),
        ("sizes and checksums of files that are not there any more", "gone"),
    ):
        paths = [one.path for one, v in zip(claims, verdicts, strict=True) if v == outcome]
        if paths:
            yield Difference(what, len(paths), paths[:NAMED], unverified=outcome == "gone")


def _has_digests(one: Delivery, storage_options: Mapping[str, Any]) -> bool:
    if not one.digests:
        return True
    storage, name = open_storage(one.path, storage_options)
    sums = {
        algorithm: hashlib.new(algorithm, usedforsecurity=False) for algorithm, _ in one.digests
    }
    for part in storage.parts(name):
        for digest in sums.values():
            digest.update(part)
    return all(sums[algorithm].hexdigest() == expected for algorithm, expected in one.digests)
