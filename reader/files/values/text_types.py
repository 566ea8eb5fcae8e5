"""The types of texts: fields of CSV, and values in paths."""

from __future__ import annotations

import re

import pyarrow as pa

from ..evolution.type_growth import wider_or_text
from .numbers import type_of
from .times.temporal import Temporal

_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
# Shorter ones stay text: what Spark infers of `12:30` would be a time on the day of reading.
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", re.ASCII)
_INSTANT = pa.timestamp("us", "UTC")


class TextTypes:
    """Types of texts under the options' patterns and zone."""

    def __init__(self, temporal: Temporal) -> None:
        self._temporal = temporal

    def of(self, text: str) -> pa.DataType:
        """The narrowest type that the text is read into as it is meant."""
        number = type_of(text)
        if number is not None:
            return number
        if text.lower() in ("true", "false"):
            return pa.bool_()
        for pattern, kind in ((_DATE, pa.date32()), (_TIME, _INSTANT)):
            if pattern.match(text) and self._reads(text, kind):
                return kind
        return pa.string()

    def _reads(self, text: str, kind: pa.DataType) -> bool:
        try:
            self._temporal.value(text, kind)
        except (ValueError, OverflowError):
            return False
        return True


def text_leaf(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Two texts in one column: what takes both, text if nothing else does."""
    both = {one, other}
    if both == {pa.date32(), _INSTANT}:
        return _INSTANT
    return wider_or_text(one, other)
