r"""What `load` is given: one path or several, each with or without wildcards.

Several are separated by commas, as Hadoop has them: those within `{a,b}` separate alternatives. A
backslash before one of ``* ? [ ] { } , \`` makes it a character like any other.

Not here: which names a wildcard matches (enumerator), opening anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from .urls import local_path, scheme_of, storage_url

_WILD = re.compile(r"(?<!\\)(?:\\\\)*[*?\[{]")
_ESCAPED = re.compile(r"\\([*?\[\]{},\\])")
_QUOTED_MARK = re.compile("%(2A|3F|5B|5D|7B|7D|2C|5C)", re.IGNORECASE)
_LITERAL = ("http", "https")
"""Schemes in whose URLs a question mark is an ordinary character."""


class LoadedPath(NamedTuple):
    """One path, taken apart where its first wildcard is."""

    given: str
    """As the user wrote it."""

    base: str
    """Absolute local path, or URL, of what is fixed."""

    wildcards: tuple[str, ...]
    """Patterns of the names below `base`, a level each; beneath the last is a whole tree."""

    @property
    def is_local(self) -> bool:
        """True for what the operating system opens."""
        return local_path(self.base) is not None


def loaded_paths(text: str) -> list[LoadedPath]:
    """All that `text` names, in its order.

    Raises:
        ValueError: a wildcard is where none is allowed.
    """
    pieces = filter(None, map(str.strip, _split(text)))
    # A path that is given twice would have all of its files listed twice.
    whole = [path for piece in pieces for path in _alternatives(piece)]
    return [_parsed(path) for path in dict.fromkeys(whole)]


def joined(paths: Iterable[str]) -> str:
    """One text for several paths, in each of which a comma outside braces is one of its name."""
    return ",".join("\\,".join(_split(path)) for path in paths)


def literal(path: str) -> str:
    """The text that names `path`; special characters are escaped."""
    return re.sub(r"([*?\[\]{},\\])", r"\\\1", path)


def _split(text: str) -> list[str]:
    pieces, depth, start = [], 0, 0
    for at, character in _unescaped_marks(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth <= 0:
            pieces.append(text[start:at])
            start = at + 1
    return [*pieces, text[start:]]


def _unescaped_marks(text: str) -> Iterator[tuple[int, str]]:
    characters = iter(enumerate(text))
    for at, character in characters:
        if character == "\\":
            next(characters, None)
        else:
            yield at, character


def _alternatives(path: str) -> list[str]:
    # A name cannot hold a slash, so `{a/b,c}` means two paths.
    depth, opened = 0, 0
    for at, character in _unescaped_marks(path):
        if character == "{":
            opened = opened if depth else at
            depth += 1
        elif character == "}" and depth:
            depth -= 1
            group = path[opened + 1 : at]
            if not depth and "/" in group:
                before, after = path[:opened], path[at + 1 :]
                each = (_alternatives(before + one + after) for one in _split(group))
                return [one for ones in each for one in ones]
    return [path]


def _parsed(path: str) -> LoadedPath:
    scheme = scheme_of(path)
    # `::` chains file systems of fsspec; where a wildcard would belong is not defined there.
    if scheme in _LITERAL or "::" in path:
        return LoadedPath(path, path.replace("\\,", ","), ())
    if scheme in ("file", "local"):
        # A quoted mark such as %2A is a character of the name, never a wildcard.
        path = os.fsdecode(unquote_to_bytes(_QUOTED_MARK.sub(_kept_mark, path)))
        path = "/" + path.partition(":")[2].lstrip("/")
    parts = path.split("/")
    first = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    base, rest = "/".join(parts[:first]), [part for part in parts[first:] if part not in ("", ".")]
    # A bucket is a client of its own: it has to be known before anything can be listed.
    if rest and scheme not in ("", "file", "local") and first < len(["s3:", "", "bucket"]):
        raise ValueError(
            f"{path!r} has a wildcard where a literal name is required: {parts[first]!r}"
        )
    # Matching is by names of a listing, in which `..` never occurs.
    if ".." in rest:
        raise ValueError(f"{path!r} has .. after a wildcard")
    fixed = _ESCAPED.sub(r"\1", base) or ("/" if path.startswith("/") else ".")
    if scheme in ("", "file", "local"):
        return LoadedPath(path, os.path.abspath(os.path.expanduser(fixed)), tuple(rest))
    return LoadedPath(path, storage_url(fixed), tuple(rest))


def _kept_mark(match: re.Match[str]) -> str:
    return "%5C" + match[0]
