"""Keeps secrets out of what is said: errors, their causes, and the logs that quote them.

What `storageOptions` hold is registered when it is parsed, and every error of this package is
printed without it from then on, no matter which library it quotes. So are the credentials of stores
in the environment.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlsplit

SHOWN: Final = "***"

_SHORTEST: Final = 6
"""Shorter texts would take words out of every message, and are no secrets that hold."""

_HARMLESS: Final = frozenset(
    (
        *("client", "endpoint", "endpoint_url", "base_url", "region", "region_name", "use_ssl"),
        *("addressing_style", "signature_version", "account_name", "account_host", "project"),
        *("default_cache_type", "timeout", "connect_timeout", "read_timeout", "retry_timeout"),
    )
)
"""Options that may be printed, and have to be for an error to be understood."""

_IN_ENVIRONMENT: Final = re.compile(
    r"(AWS|S3|AZURE|GOOGLE|GCS)_.*(KEY|KEY_ID|SECRET|TOKEN|PASSWORD|CONNECTION_STRING)"
)
"""Names of variables that the clients of stores take credentials from."""

_LOCK = threading.Lock()
_hidden: tuple[str, ...] = ()


def hide(options: Mapping[str, Any]) -> None:
    """From now on no text of an option is printed in this process, but for harmless ones."""
    global _hidden  # noqa: PLW0603 - one process, one set of secrets
    secrets = {form for text in _secrets(options) for form in _forms(text)}
    if not secrets.issubset(_hidden):
        with _LOCK:
            # Longest first: one secret may be the beginning of another.
            _hidden = tuple(sorted({*_hidden, *secrets}, key=len, reverse=True))


def masked(text: str) -> str:
    """Return `text` with every registered secret replaced."""
    # The environment is read each time, since credentials may be set after this module was
    # imported.
    for secret in (*_hidden, *_of_environment()):
        if secret in text:
            text = text.replace(secret, SHOWN)
    return text


def without_secrets(error: BaseException) -> BaseException:
    """`error` with its causes, none of which tells a secret any more.

    An exception whose text is made elsewhere than of its arguments gives place to one that says
    the same without it.
    """
    return _clean(error, set())


def _of_environment() -> list[str]:
    credentials = (text for name, text in os.environ.items() if _IN_ENVIRONMENT.fullmatch(name))
    return sorted({form for text in credentials for form in _forms(text)}, key=len, reverse=True)


def _secrets(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _secrets(value)
        elif isinstance(value, str):
            if name not in _HARMLESS:
                yield value
            # An endpoint may be printed, but not the user and password that some write into its
            # URL.
            elif "@" in value:
                parts = urlsplit(value)
                yield from filter(None, (parts.username, parts.password))
        elif isinstance(value, Iterable):
            yield from (item for item in value if isinstance(item, str))


def _forms(text: str) -> Iterator[str]:
    """As written in URLs, in JSON and in Python, too."""
    if len(text) >= _SHORTEST:
        yield from (text, quote(text), quote(text, safe=""), quote_plus(text))
        yield from (json.dumps(text)[1:-1], repr(text)[1:-1])


def _clean(error: BaseException, met: set[int]) -> BaseException:
    # Exceptions may refer to each other in a circle.
    met.add(id(error))
    error.args = tuple(map(_cleaned, error.args))
    for name, value in list(vars(error).items()):
        with suppress(AttributeError, TypeError):
            setattr(error, name, _cleaned(value))
    for name in ("filename", "filename2", "strerror"):
        if isinstance(error, OSError) and isinstance(getattr(error, name), str):
            setattr(error, name, masked(getattr(error, name)))
    # Python sets this flag whenever a cause is set.
    suppressed = error.__suppress_context__
    for name in ("__cause__", "__context__"):
        inner = getattr(error, name)
        if inner is not None and id(inner) not in met:
            setattr(error, name, _clean(inner, met))
    error.__suppress_context__ = suppressed
    shown = masked(str(error))
    if shown == str(error):
        return error
    replacement = RuntimeError(f"{type(error).__name__}: {shown}").with_traceback(
        error.__traceback__
    )
    replacement.__cause__, replacement.__context__ = error.__cause__, error.__context__
    replacement.__suppress_context__ = suppressed
    return replacement


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, bytes):
        return masked(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if isinstance(value, list | tuple):
        return type(value)(map(_cleaned, value))
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return value
