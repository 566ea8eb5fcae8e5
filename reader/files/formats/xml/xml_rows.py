"""One XML record as a row, and what becomes of it if it does not fit.

Not here: finding records (`records.py`), single values (`scalars.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from .....errors import OptionError
from ...evolution.new_columns import NewColumnsSeen
from ...options import ParseMode, ReaderOptions
from ...values.rows import Row, Rows
from ...values.text_types import TextTypes
from ..record_format import malformed
from .element_values import Extra, Partial, RecordValues
from .elements import parsed
from .scalars import temporal_of
from .xml_types import Shape

__all__ = ["RowSchema", "XmlRows", "new_shape"]


def new_shape(options: ReaderOptions) -> Shape:
    """Nothing found yet, for columns that are inferred as the options say."""
    types = TextTypes(temporal_of(options)) if options.infer_column_types else None
    return Shape(options.value_tag, types)


class XmlRows(Rows):
    """Makes rows of records under the reader's mode."""

    def __init__(
        self,
        schema: pa.Schema,
        data: pa.Schema,
        options: ReaderOptions,
        known: frozenset[str] = frozenset(),
    ) -> None:
        """`known` are columns that are not new, though they are not in `data`.

        Raises TypeError for columns that XML cannot be read into.
        """
        super().__init__(schema, data)
        self._options, self._mode = options, options.mode
        self._values = RecordValues(data, options, temporal_of(options))
        path = options.row_validation_xsd_path
        self._xsd = RowSchema(path) if path else None
        self._corrupt = self._string_column(options.column_name_of_corrupt_record)
        self._rescued = self._string_column(options.rescued_data_column)
        self._made_here = known - set(data.names)

    def of_record(self, record: bytes, where: Callable[[], str]) -> Row | str:
        """The row of a record; if it is dropped, why.

        Raises:
            MalformedDataError: it is not well-formed, not valid or does not fit, under `FAILFAST`.
            NewColumnsSeen: it has fields that the schema does not have, if that stops the query.
        """
        extra = Extra()
        try:
            row = self._read(record, extra, where)
        except Partial as err:
            row = err.value
            if not self._rescued:
                return self._bad(row, record, str(err), where)
        except ValueError as err:
            return self._bad({}, record, str(err), where)
        if self._rescued and extra.lost:
            row[self._rescued] = json.dumps(extra.lost, ensure_ascii=False, separators=(",", ":"))
        return row

    def unknown_part(self, record: bytes) -> dict[str, Any]:
        """What a record has and the schema does not; nothing if it is not well-formed."""
        extra = Extra()
        try:
            self._values.of_record(parsed(record), extra)
        except Partial:
            pass
        except ValueError:
            return {}
        return {name: v for name, v in extra.unknown.items() if name not in self._made_here}

    def _read(self, record: bytes, extra: Extra, where: Callable[[], str]) -> Row:
        root = parsed(record)
        if self._xsd is not None:
            self._xsd.require(record)
        try:
            return self._values.of_record(root, extra)
        finally:
            if extra.unknown and self._options.mode_of_evolution.stops:
                self._stop_for(extra.unknown, where)

    def _stop_for(self, unknown: dict[str, Any], where: Callable[[], str]) -> None:
        unknown_part = {
            name: value for name, value in unknown.items() if name not in self._made_here
        }
        if unknown_part:
            shape = new_shape(self._options)
            shape.add(unknown_part)
            raise NewColumnsSeen(where(), shape.type())

    def _bad(self, row: Row, record: bytes, problem: str, where: Callable[[], str]) -> Row | str:
        if self._mode is ParseMode.FAILFAST:
            expected = f"a well-formed element {self._options.row_tag} that fits the schema"
            raise malformed(where(), problem, expected)
        if self._mode is ParseMode.DROPMALFORMED:
            return problem
        return {**row, self._corrupt: record.decode("utf-8", "replace")} if self._corrupt else row


class RowSchema:
    """What every record has to be valid against."""

    def __init__(self, path: str) -> None:
        """Read the schema from a local path, which every executor has.

        Raises:
            OptionError: lxml is missing, or there is no XML schema there.
        """
        try:
            from lxml import etree
        except ImportError as err:
            raise OptionError(
                "rowValidationXSDPath needs the package lxml",
                path,
                str(err),
                "lxml on the driver and on the executors",
                "pip install 'pyspark-sluice[xml]'",
            ) from err
        self._etree: Any = etree
        # A record has no DOCTYPE, so there is nothing to expand; its size and levels are limited.
        self._parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
        )
        try:
            self._schema = etree.XMLSchema(etree.parse(path, self._parser))
        except (OSError, etree.LxmlError) as err:
            raise OptionError(
                "rowValidationXSDPath: the XML schema cannot be read",
                path,
                str(err),
                "a local path to an XML schema, the same on the driver and on the executors",
            ) from err

    def require(self, record: bytes) -> None:
        """Raise ValueError unless the record is valid."""
        try:
            self._schema.assertValid(self._etree.fromstring(record, self._parser))
        except self._etree.LxmlError as err:
            raise ValueError(f"not valid by rowValidationXSDPath: {err}") from err
