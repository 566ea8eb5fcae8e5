"""Records against an XML schema (`rowValidationXSDPath`), by lxml, which few queries need."""

from __future__ import annotations

from typing import Any

from .....errors import OptionError

__all__ = ["RowSchema"]


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
