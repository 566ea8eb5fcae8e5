"""What a sender declares: a list of files, in the forms that are common beside data."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from ...checkpoint_meta.storage.open_storage import open_storage
from ...checkpoint_meta.storage.urls import join
from ...errors import MissingPathError, OptionError

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
