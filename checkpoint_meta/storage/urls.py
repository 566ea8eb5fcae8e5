"""What a path given by a user means: a local path, or a URL for fsspec.

Not here: opening anything.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote_to_bytes

from .providers import FSSPEC_SCHEMES

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*):(?://)?")
_ODD = re.compile(
    r"[^A-Za-z0-9\-_.!~*'():@&=+$,;/\xa1-\U0010ffff]"
    r"|[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
"""What Java's URIs quote: ASCII that has a meaning or none, control characters and all spaces."""
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_LOCAL_SCHEMES = ("file", "local")


def local_path(url: str) -> str | None:
    """The absolute local path that `url` names, or None if it names another file system.

    Plain paths are taken literally; `file:` URLs are unquoted, as Hadoop and browsers write them.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        return os.path.abspath(os.path.expanduser(url))
    if scheme.group(1).lower() not in _LOCAL_SCHEMES:
        return None
    # Hadoop writes `file:/a`, browsers write `file:///a`.
    rest = url[scheme.end() :]
    return os.path.abspath("/" + os.fsdecode(unquote_to_bytes(rest)).lstrip("/"))


def written_path(path: str) -> str:
    """A local path as state and messages have it: text that is valid UTF-8.

    Names are bytes; one that is not UTF-8 makes the whole path a `file:` URL, in which every
    odd byte is quoted. `local_path` gives back the path that can be opened.
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
    return shown_name(local_path(path) or path)


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
        return "file:" + _ODD.sub(_quoted, path)
    found, separator, rest = path.partition("://")
    if found in ("http", "https"):
        return path
    authority, slash, place = rest.partition("/")
    return f"{scheme or found}{separator}{authority}{slash}{_ODD.sub(_quoted, place)}"


def _quoted(match: re.Match[str]) -> str:
    return quote(match[0], safe="")


def absolute(url: str) -> str:
    """`url`, or the absolute local path that it names."""
    path = local_path(url)
    return url if path is None else path


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


def storage_url(url: str) -> str:
    """`url` with Hadoop's names of file systems replaced by fsspec's (`s3a` becomes `s3`)."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return url
    name = scheme.group(1).lower()
    return FSSPEC_SCHEMES.get(name, name) + url[scheme.end(1) :]


def join(url: str, *parts: str) -> str:
    """`url` with `parts` appended, one slash between each."""
    return "/".join([url.rstrip("/"), *parts])


def is_below(url: str, other: str) -> bool:
    """True if `url` is `other` or lies below it."""
    # With a slash at their ends, so that `a/bc` is not below `a/b`.
    one, whole = (join(storage_url(absolute(each)), "") for each in (url, other))
    return one.startswith(whole)
