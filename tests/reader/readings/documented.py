"""Differences from Spark that the documentation declares, as the machine meets them.

Each names the row of the table in docs/differences.md that it belongs to. A difference without a
row is a fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyspark_sluice.tests.reader.readings.model import CORRUPT, Difference, Row

_TIME_ONLY = re.compile(rb"(?:^|[^\d:T -])T?\d{1,2}:\d{1,2}")
_MARK = "\ufeff".encode()
_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)


@dataclass(frozen=True)
class Documented:
    """One difference from Spark that is meant."""

    formats: str
    """Names of the formats, separated by blanks."""

    row: str
    """How the first cell of the row in the documentation begins."""

    predicate: Callable[[Difference], bool]

    def covers(self, difference: Difference) -> bool:
        """True if Spark reads a file of these formats otherwise, in the way that is meant."""
        is_of_format = difference.group.file_format in self.formats.split()
        return difference.reading == "spark" and is_of_format and self.predicate(difference)


def we_refuse(difference: Difference) -> bool:
    """True if our reading is an error that names the file."""
    return isinstance(difference.found, str) and difference.found.startswith("refused")


def we_call_it_malformed(difference: Difference) -> bool:
    """Ours has a malformed record more, drops a row more, or fails."""
    expected, found = difference.expected, difference.found
    if isinstance(found, str):
        return found.startswith("refused")
    if isinstance(expected, str):
        return False
    if difference.mode == "DROPMALFORMED":
        return len(found) < len(expected)
    return len(expected) == len(found) and any(
        ours.get(CORRUPT) is not None and theirs.get(CORRUPT) is None
        for theirs, ours in zip(expected, found, strict=True)
    )


def meant(separator: str) -> str:
    """The characters that the option `sep` means; `lineSep` has no escapes."""
    escapes = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\|": "|", "\\\\": "\\"}
    return escapes.get(separator, separator)


def _text_after_a_record(d: Difference) -> bool:
    options = d.group.options
    # An array is as many rows as it has elements; malformed it is one.
    if not (we_call_it_malformed(d) or _has_more_malformed(d) or _has_no_values(d)):
        return False
    text = _text_of(d)
    if "multiLine" in options:
        return _goes_on(text)
    ends = options.get("lineSep", "")
    records = text.split(ends) if ends else re.split(r"[\r\n]+", text)
    return any(map(_goes_on, records))


def _has_more_malformed(d: Difference) -> bool:
    if isinstance(d.expected, str) or isinstance(d.found, str):
        return False
    theirs, ours = (
        sum(row.get(CORRUPT) is not None for row in rows) for rows in (d.expected, d.found)
    )
    return theirs < ours


def _has_no_values(d: Difference) -> bool:
    """A record with a value that does not fit is malformed on both sides, but only here empty."""
    return any(
        theirs.get(CORRUPT) is not None and ours == dict.fromkeys(ours) | {CORRUPT: ours[CORRUPT]}
        for theirs, ours in _differing_rows(d)
    )


def _differing_rows(d: Difference) -> list[tuple[Row, Row]]:
    """Spark's and ours, if both sides have the same number of rows."""
    if isinstance(d.expected, str) or isinstance(d.found, str) or len(d.expected) != len(d.found):
        return []
    return [rows for rows in zip(d.expected, d.found, strict=True) if rows[0] != rows[1]]


def _goes_on(text: str) -> bool:
    """True if a whole object or array is followed by more than blanks."""
    plain = _STRINGS.sub("_", text).lstrip("\ufeff \t\r\n")
    open_parts = []
    for at, character in enumerate(plain):
        if character in "{[":
            open_parts.append(character)
        elif character in "}]" and (open_parts or [""]).pop() + character not in ("{}", "[]"):
            return False
        if not open_parts:
            return at > 0 and bool(plain[at + 1 :].strip(" \t\r\n"))
    return False


def _bytes_from_128(d: Difference) -> bool:
    has_bytes = "int8" in str(d.group.schema) and re.search(rb"(1[2-9]|2[0-5])\d", d.data)
    return bool(has_bytes) and (we_call_it_malformed(d) or "int8" in _type_of_column(d))


def _type_of_column(d: Difference) -> str:
    """The type of the column that differs in a record that both sides call malformed."""
    schema = d.group.schema
    return str(schema.field(d.column).type) if d.column in schema.names else ""


def _far_seconds(d: Difference) -> bool:
    has_times = "timestamp" in str(d.group.schema.types)
    return has_times and bool(re.search(rb"\d{13,}", d.data)) and we_call_it_malformed(d)


def _name_twice(d: Difference) -> bool:
    """Some name is there twice, and Spark has a malformed record, perhaps one more."""
    names = Counter(re.findall(r"[\"']([^\"']*)[\"']\s*:", _text_of(d)))
    is_malformed = isinstance(d.expected, str) or CORRUPT in str(d.expected)
    return max(names.values(), default=0) > 1 and (is_malformed or d.mode == "DROPMALFORMED")


def _time_only(d: Difference) -> bool:
    if not _TIME_ONLY.search(d.data):
        return False
    return "tz=UTC" in (str(d.group.schema) if we_call_it_malformed(d) else _type_of_column(d))


def _header_refused(d: Difference) -> bool:
    return "header" in d.group.options and isinstance(d.found, str) and "the header" in d.found


def _header_by_name(d: Difference) -> bool:
    return _by_name(d) and "CSV header" in str(d.expected) and not isinstance(d.found, str)


def _by_name(d: Difference) -> bool:
    return d.group.options.get("enforceSchema") == "false"


def _other_line_breaks(d: Difference) -> bool:
    end = d.group.options.get("lineSep", "")
    if len(end) != 2 or "multiLine" in d.group.options:
        return False
    return any("\n" in record or record[:1] == "\r" for record in _text_of(d).split(end))


def _other_line_breaks_and_quotes(d: Difference) -> bool:
    end = d.group.options.get("lineSep", "")
    if len(end) != 2 or "multiLine" not in d.group.options:
        return False
    quote, text = d.group.options.get("quote", '"'), _text_of(d)
    return quote + end in text or any(part.count(quote) % 2 for part in text.split(end))


def _text_of(d: Difference) -> str:
    return d.data.decode(d.group.options.get("encoding", "utf-8"), "replace")


def _refused_locale(d: Difference) -> bool:
    return "locale" in d.group.options and we_refuse(d) and "locale" in str(d.found)


def _wide(d: Difference) -> bool:
    return d.group.options.get("encoding", "").lower().startswith(("utf-16", "utf-32"))


def _wide_lines(d: Difference) -> bool:
    options = d.group.options
    if "multiLine" in options or not _wide(d) or isinstance(d.found, str):
        return False
    if d.group.file_format == "json":
        return not we_call_it_malformed(d)
    names_all = "lineSep" in options and options["encoding"][-2:] in ("LE", "BE")
    return not names_all


_ENCODINGS_OF_SPARK = frozenset(
    {"utf-8", "us-ascii", "iso-8859-1", "utf-16", "utf-16le", "utf-16be", "utf-32"}
)


def _other_encoding(d: Difference) -> bool:
    is_other = d.group.options.get("encoding", "utf-8").lower() not in _ENCODINGS_OF_SPARK
    refuses = is_other and str(d.expected).startswith("refused")
    return refuses and not we_refuse(d)


def _lines_without_a_separator(d: Difference) -> bool:
    wants = "The lineSep option must be specified" in str(d.expected)
    return wants and not we_refuse(d)


def _others_in_malformed_records(d: Difference) -> bool:
    may_lose = "encoding" in d.group.options or "binary" in str(d.group.schema)
    if d.mode != "PERMISSIVE" or not may_lose:
        return False
    differ = _differing_rows(d)
    return bool(differ) and all(
        theirs[CORRUPT] == ours[CORRUPT] is not None for theirs, ours in differ
    )


_REFUSED_SPELLINGS = (
    *("allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter"),
    "allowUnquotedControlChars",
)


def _refused_spelling(d: Difference) -> bool:
    return any(name in d.group.options for name in _REFUSED_SPELLINGS)


def _not_json(d: Difference) -> bool:
    """Both sides have a malformed record, and ours is empty; or Spark has read its bytes."""
    if isinstance(d.expected, str) or isinstance(d.found, str):
        return isinstance(d.expected, list) and not _is_utf8(d.data)
    theirs = any(row.get(CORRUPT) is not None for row in d.expected)
    empty = any(
        row.get(CORRUPT) is not None and all(row[name] is None for name in {*row} - {CORRUPT})
        for row in d.found
    )
    return (theirs and empty) or (we_call_it_malformed(d) and not _is_utf8(d.data))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _half_a_pair(d: Difference) -> bool:
    return bool(re.search(r"[\[{].*\\\\u[dD][89a-fA-F]", str(d.expected)))


def _not_characters(d: Difference) -> bool:
    return "encoding" in d.group.options and we_refuse(d)


def _encoded_text(d: Difference) -> bool:
    return "encoding" in d.group.options


def _second_mark(d: Difference) -> bool:
    first = d.data.removeprefix(_MARK).lstrip(b" \t\r\n")
    return first != d.data and first.startswith(_MARK)


def _names_twice(d: Difference) -> bool:
    return _by_name(d) and we_refuse(d) and "twice" in str(d.found)


def _first_field_of_blanks(d: Difference) -> bool:
    trims = "ignoreTrailingWhiteSpace" in d.group.options
    return trims and "ArrayIndexOutOfBounds" in str(d.expected)


def _long_separator(d: Difference) -> bool:
    sep = meant(d.group.options.get("sep", ","))
    if len(sep) < 2:
        return False
    quote = re.escape(d.group.options.get("quote", '"'))
    parts = "|".join(re.escape(sep[:size]) for size in range(1, len(sep) + 1))
    lines = re.findall(rf"{quote}.*[ \t](?:{parts})", _text_of(d))
    return " " in sep or any(len(re.findall(quote, line)) % 2 for line in lines)


def _four_bytes(d: Difference) -> bool:
    is_odd = (len(d.data) <= 4 and b"\r" in d.data) or d.data == _MARK
    return "multiLine" in d.group.options and is_odd


def _bytes_of_a_document(d: Difference) -> bool:
    return d.column == CORRUPT and {"multiLine", "encoding"} <= d.group.options.keys()


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
    Documented("csv json xml text", "`locale` other than", _refused_locale),
    Documented("json", "text after a JSON object or array", _text_after_a_record),
    Documented("json", "JSON integers from 128 to 255", _bytes_from_128),
    Documented("json", "JSON numbers of seconds beyond", _far_seconds),
    Documented("json", "JSON: a name twice in one object", _name_twice),
    Documented("csv json xml", "a time without a date", _time_only),
    Documented("json", "JSON: the text of a malformed `multiLine` document", _bytes_of_a_document),
    Documented(
        "csv json xml text", "bytes that are not characters of an `encoding`", _not_characters
    ),
    Documented("csv json", "`encoding` other than", _other_encoding),
    Documented("json", "JSON lines with an `encoding`", _lines_without_a_separator),
    Documented("json", "`allowNumericLeadingZeros`", _refused_spelling),
    Documented("json", "JSON: a record that is not JSON", _not_json),
    Documented("json", "JSON: other columns of a malformed", _others_in_malformed_records),
    Documented("json", "JSON: half of a surrogate pair", _half_a_pair),
    Documented("csv json", "lines in UTF-16 and UTF-32", _wide_lines),
    Documented("text", "`text` with `encoding`", _encoded_text),
    Documented("csv", "header that names a column twice", _names_twice),
    Documented(
        "csv", "header that has a column of the schema at another position", _header_refused
    ),
    Documented("csv", "header with `enforceSchema=false`", _header_by_name),
    Documented("csv", "CSV with a `lineSep`", _other_line_breaks),
    Documented("csv", "CSV with `multiLine` and a `lineSep`", _other_line_breaks_and_quotes),
    Documented("csv", "CSV with `ignoreTrailingWhiteSpace`", _first_field_of_blanks),
    Documented("csv", "CSV with `multiLine` and files of up to four bytes", _four_bytes),
    Documented("csv", "CSV: a second byte order mark", _second_mark),
    Documented("csv", "CSV: a `sep` of several characters", _long_separator),
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


def row_of(difference: Difference) -> str:
    """The row of the documentation that declares the difference; empty if undeclared."""
    return next((d.row for d in DOCUMENTED if d.covers(difference)), "")
