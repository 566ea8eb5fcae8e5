"""The differences that docs/differences.md declares."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.model import CORRUPT, Difference
from pyspark_sluice.tests.reader.readings.predicates import (
    Documented,
    we_call_it_malformed,
    we_refuse,
)


def _marked(rows: Any) -> list[Any]:
    """The rows of good records, and where there are malformed ones."""
    return ["malformed" if row.get(CORRUPT) is not None else row for row in rows]


def _are_marked_alike(d: Difference) -> bool:
    return (
        d.mode == "PERMISSIVE"
        and not isinstance(d.expected, str)
        and not isinstance(d.found, str)
        and _marked(d.expected) == _marked(d.found)
    )


def _text_of_a_malformed_record(d: Difference) -> bool:
    return _are_marked_alike(d) and d.column == CORRUPT


def _values_of_a_malformed_record(d: Difference) -> bool:
    return _are_marked_alike(d) and d.column != CORRUPT


def _of_the_record_itself(d: Difference) -> bool:
    """Spark fails, and ours has rows, one of them malformed or dropped."""
    if d.mode == "FAILFAST" or not isinstance(d.expected, str):
        return False
    value_tag = d.group.options.get("valueTag", "_VALUE")
    prefix = d.group.options.get("attributePrefix", "_")
    own = [f for f in d.group.schema if f.name == value_tag or f.name.startswith(prefix)]
    is_read = not isinstance(d.found, str)
    return is_read and any(not pa.types.is_string(f.type) for f in own)


def _two_signs(d: Difference) -> bool:
    return bool(re.search(rb"[+-]{2}\d", d.data)) and we_call_it_malformed(d)


def _text_after_a_number(d: Difference) -> bool:
    floats = any("float" in str(f.type) or "double" in str(f.type) for f in d.group.schema)
    return floats and bool(re.search(rb"\d[^\d<>\s]", d.data)) and we_call_it_malformed(d)


def _least(d: Difference) -> bool:
    is_there = bool(re.search(rb"-2147483648|-9223372036854775808", d.data))
    theirs = replace(d, expected=d.found, found=d.expected)
    return is_there and we_call_it_malformed(theirs)


def _signed_null(d: Difference) -> bool:
    null = d.group.options.get("nullValue", "")
    signed = re.search(rb"[+-]" + re.escape(null.encode()) + rb"\s*[<\"']", d.data)
    return null.isdigit() and bool(signed)


def _no_place_in_xml(d: Difference) -> bool:
    # Spark fails at the first record; some files have none.
    return we_refuse(d) and bool(re.search("(arrays|maps) of arrays", str(d.found)))


def _wildcard(d: Difference) -> bool:
    return we_refuse(d) and "the wildcard column" in str(d.found)


DOCUMENTED = (
    Documented("xml", "a wildcard column (`xs_any`)", _wildcard),
    Documented("xml", "arrays of arrays, maps of arrays", _no_place_in_xml),
    Documented("xml", "text of a malformed record", _text_of_a_malformed_record),
    Documented("xml", "fields after a value that does not fit", _values_of_a_malformed_record),
    Documented("xml", "an attribute or text of the record itself", _of_the_record_itself),
    Documented("xml", "two signs", _two_signs),
    Documented("xml", "the smallest `int` and `long`", _least),
    Documented("xml", "a signed number whose digits equal `nullValue`", _signed_null),
    Documented("xml", "`float` and `double`: text after a number", _text_after_a_number),
)
