"""Packages that places and options need besides what is always there.

Not here: places themselves (`storage.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

import fsspec

from ....checkpoint_meta.storage.providers import BY_SCHEME
from ....checkpoint_meta.storage.urls import local_path, scheme_of, storage_url
from .finding import Finding

_CLIENT: Final = ("obstore", "arro3.core")


def extra_findings(places: Sequence[str], options: Mapping[str, str]) -> Iterator[Finding]:
    """What the given places and options need.

    Args:
        places: paths and URLs.
        options: of the query, in any case.
    """
    seen: set[str] = set()
    for place in places:
        scheme = scheme_of(storage_url(place))
        if local_path(place) is not None or scheme in seen:
            continue
        seen.add(scheme)
        yield _client(scheme)
    given = {name.lower().removeprefix("cloudfiles."): value for name, value in options.items()}
    if (given.get("fileformat") or given.get("format", "")).lower() == "avro":
        yield _needed("fileFormat=avro", ("fastavro",), "avro")
    if given.get("discoverymode") == "notifications":
        yield _needed("discoveryMode=notifications", ("boto3",), "s3")


def _client(scheme: str) -> Finding:
    what = f"client for {scheme}://"
    if scheme in BY_SCHEME:
        return _needed(what, _CLIENT, BY_SCHEME[scheme].extra)
    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        way_out = f"Install fsspec's package for {scheme}."
        return Finding(what, "ill", str(error), "a file system that fsspec knows", way_out)
    return Finding(what, "well", "fsspec knows it")


def _needed(what: str, modules: Sequence[str], extra: str) -> Finding:
    missing = [name for name in modules if not _is_there(name)]
    if not missing:
        return Finding(what, "well", ", ".join(modules))
    way_out = f"pip install 'pyspark-sluice[{extra}]' on the driver and the executors"
    return Finding(what, "ill", f"not installed: {', '.join(missing)}", "", way_out)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False
