r"""What a path given by a user means: a `Location`; alone or among several.

`load` is given one path or several, each with or without wildcards. Several are separated by
commas, as Hadoop has them: those within `{a,b}` separate alternatives. A backslash before one of
``* ? [ ] { } , \`` makes it a character like any other.

Not here: which names a wildcard matches (enumerator), opening anything.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from .providers import BY_SCHEME, FSSPEC_SCHEMES

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*):(?://)?")
_ODD = re.compile(
    r"[^A-Za-z0-9\-_.!~*'():@&=+$,;/\xa1-\U0010ffff]"
    r"|[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
"""What Java's URIs quote: ASCII that has a meaning or none, control characters and all spaces."""
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_LOCAL_SCHEMES = ("file", "local")


class Location(NamedTuple):
    """A place of files, parsed: what the operating system opens, or a URL."""

    scheme: str
    """fsspec's name of the file system (`s3` for Hadoop's `s3a`); empty for a local path."""

    url: str
    """The absolute local path, or the URL with that scheme."""

    @classmethod
    def of(cls, place: str | Location) -> Location:
        """Parse a path or URL; a location is returned as it is.

        Plain paths are taken literally; `file:` URLs are unquoted, as Hadoop and browsers write
        them.
        """
        if isinstance(place, Location):
            return place
        match = _SCHEME.match(place)
        if match is None:
            return cls("", os.path.abspath(os.path.expanduser(place)))
        scheme = match[1].lower()
        if scheme in _LOCAL_SCHEMES:
            # Hadoop writes `file:/a`, browsers write `file:///a`.
            rest = os.fsdecode(unquote_to_bytes(place[match.end() :]))
            return cls("", os.path.abspath("/" + rest.lstrip("/")))
        scheme = FSSPEC_SCHEMES.get(scheme, scheme)
        return cls(scheme, scheme + place[match.end(1) :])

    @property
    def is_local(self) -> bool:
        """True for what the operating system opens."""
        return not self.scheme

    @property
    def parts(self) -> tuple[str, str]:
        """The authority of a URL, such as a bucket, and the key without the slash before it."""
        authority, _, key = self.url.partition("://")[2].partition("/")
        return authority, key

    @property
    def resolved(self) -> str:
        """The one text of a place, however it is written: links, `..`, slashes, schemes, hosts.

        Only to compare places. Buckets are compared without case, and containers without accounts.
        """
        if self.is_local:
            return os.path.realpath(self.url)
        scheme, (authority, key) = self.scheme, self.parts
        if scheme in BY_SCHEME:
            scheme, authority = BY_SCHEME[scheme].path_scheme, authority.partition("@")[0]
        authority = authority.lower().removesuffix(":8020" if scheme == "hdfs" else "\0")
        # normpath keeps two slashes at the beginning.
        key = posixpath.normpath(f"/{key}").lstrip("/")
        return f"{scheme}://{authority}/{key}".rstrip("/")


def local_name(path: str) -> str:
    """The path of a local file, as state has it, in the form that the operating system opens."""
    return path if path.startswith("/") else Location.of(path).url


def is_local(path: str) -> bool:
    """True for a path of a `FileVersion` that the operating system opens; faster than a parser."""
    return "://" not in path or path.startswith("file://")


def written_path(path: str) -> str:
    """A local path as state and messages have it: text that is valid UTF-8.

    Names are bytes; one that is not UTF-8 makes the whole path a `file:` URL, in which every
    odd byte is quoted. `Location.of` gives back the path that can be opened.
    """
    try:
        # Python has odd bytes of names as lone surrogates, which neither JSON nor Arrow can hold.
        path.encode()
    except UnicodeEncodeError:
        return "file://" + quote(os.fsencode(path))
    return path


def shown_path(path: str) -> str:
    """A written path with U+FFFD for what is no UTF-8: its parts are names again."""
    if not path.startswith("file://"):
        return path
    return shown_name(Location.of(path).url)


def shown_name(path: str) -> str:
    """A path as the operating system gives it, with U+FFFD for what is no UTF-8."""
    return os.fsencode(path).decode(errors="replace")


def hadoop_url(path: str, scheme: str = "") -> str:
    """A file's path as Spark's `_metadata.file_path` has it: a URL, quoted as Java quotes it.

    Args:
        path: absolute, as in `FileVersion.path`.
        scheme: what the user called its file system; by default the name that is in `path`.
    """
    if path.startswith("file://"):
        return "file:" + path.removeprefix("file://")  # Quoted already: not valid UTF-8.
    if path.startswith("/"):
        return "file:" + _quoted(path)
    protocol, separator, rest = path.partition("://")
    if protocol in ("http", "https"):
        return path
    authority, slash, place = rest.partition("/")
    return f"{scheme or protocol}{separator}{authority}{slash}{_quoted(place)}"


def _quoted(path: str) -> str:
    return _ODD.sub(lambda match: quote(match[0], safe=""), path)


def hadoop_path(url: str) -> str:
    """`url`, or the absolute local path that Hadoop and Spark take it for.

    They neither unquote `file:` URLs nor know `~`, so a path that is given to Spark as well has to
    be read their way.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        return os.path.abspath(url)
    if scheme.group(1).lower() != "file":
        return url
    return os.path.abspath("/" + url[scheme.end() :].lstrip("/"))


def hadoop_pattern(path: str) -> str:
    """A pattern that matches only `path`: readers of Spark take paths for patterns."""
    return _PATTERN.sub(r"\\\g<0>", path)


def scheme_of(url: str) -> str:
    """The name of the file system in `url`, in lower case; empty for a plain path."""
    scheme = _SCHEME.match(url)
    return "" if scheme is None else scheme.group(1).lower()


def join(url: str, *parts: str) -> str:
    """`url` with `parts` appended, one slash between each."""
    return "/".join([url.rstrip("/"), *parts])


_WILD = re.compile(r"(?<!\\)(?:\\\\)*[*?\[{]")
_ESCAPED = re.compile(r"\\([*?\[\]{},\\])")
_QUOTED_MARK = re.compile("%(2A|3F|5B|5D|7B|7D|2C|5C)", re.IGNORECASE)
_LITERAL = ("http", "https")
"""Schemes in whose URLs a question mark is an ordinary character."""


class LoadedPath(NamedTuple):
    """One path, taken apart where its first wildcard is."""

    given: str
    """As the user wrote it."""

    base: Location
    """The path up to there."""

    wildcards: tuple[str, ...]
    """Patterns of the names below `base`, a level each; beneath the last is a whole tree."""


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
        return LoadedPath(path, Location.of(path.replace("\\,", ",")), ())
    if scheme in _LOCAL_SCHEMES:
        # A quoted mark such as %2A is a character of the name, never a wildcard.
        path = os.fsdecode(unquote_to_bytes(_QUOTED_MARK.sub(r"%5C\g<0>", path)))
        path = "/" + path.partition(":")[2].lstrip("/")
    parts = path.split("/")
    first = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    base, rest = "/".join(parts[:first]), [part for part in parts[first:] if part not in ("", ".")]
    # A bucket is a client of its own: it has to be known before anything can be listed.
    if rest and scheme not in ("", *_LOCAL_SCHEMES) and first < len(["s3:", "", "bucket"]):
        raise ValueError(
            f"{path!r} has a wildcard where a literal name is required: {parts[first]!r}"
        )
    # Matching is by names of a listing, in which `..` never occurs.
    if ".." in rest:
        raise ValueError(f"{path!r} has .. after a wildcard")
    fixed = _ESCAPED.sub(r"\1", base) or ("/" if path.startswith("/") else ".")
    return LoadedPath(path, Location.of(fixed), tuple(rest))
