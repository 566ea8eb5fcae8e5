"""The options of reading as one frozen model, with what is known besides them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from pydantic import PrivateAttr

from .texts import TimeOptions
from .values import FileFormatName

if TYPE_CHECKING:
    from ..gzip_index import Points


class ReaderOptions(TimeOptions):
    """How files are read. Frozen; built from Spark's option names or from ours."""

    _schema_is_inferred: bool = PrivateAttr(False)

    def for_inferred_schema(self) -> Self:
        """The same for a schema that was merged over files: none of them has to have all of it."""
        named = self.header and self.file_format == FileFormatName.CSV
        made = self.model_copy(update={"enforce_schema": False} if named else {})
        made._schema_is_inferred = True  # noqa: SLF001 this class's own
        return made

    _all_columns: frozenset[str] = PrivateAttr(frozenset())

    def for_columns(self, names: Iterable[str]) -> Self:
        """The same for a schema of these columns, of which a format is given only a part."""
        made = self.model_copy()
        made._all_columns = frozenset(names)  # noqa: SLF001 this class's own
        return made

    @property
    def all_columns(self) -> frozenset[str]:
        """Columns that are known, though they may stand in a file's path or be made here."""
        return self._all_columns

    _points: Points | None = PrivateAttr(None)

    def with_points(self, points: Points) -> Self:
        """The same, with a place for the points at which gzip can be entered."""
        made = self.model_copy()
        made._points = points  # noqa: SLF001 this class's own
        return made

    @property
    def points(self) -> Points | None:
        """Where the points are at which gzip can be entered; None if there is no such place."""
        return self._points

    @property
    def schema_is_inferred(self) -> bool:
        """True if a file may lack columns of the schema; false where that shows a mistake."""
        return self._schema_is_inferred

    @property
    def minds_unknown_fields(self) -> bool:
        """True if a field that the schema does not have must not be passed over."""
        return bool(self.rescued_data_column) or self.mode_of_evolution.stops
