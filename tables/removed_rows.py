"""Which rows of a table a batch removes, as conditions on columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from ..checkpoint_meta.documents.written_file import Removal

_types = pa.types
_ALIKE: Final = (_types.is_string, _types.is_large_string, _types.is_string_view)


@dataclass(frozen=True)
class RemovedRows:
    """All rows of some files."""

    column: str
    keys: Sequence[str]
    values: Mapping[str, Sequence[Any]]
    """Other columns, and the values that these rows have there if they have any: files of a table
    without one of them need not be read."""

    @classmethod
    def of(cls, removals: Sequence[Removal], columns: pa.Schema) -> RemovedRows:
        """Those of one batch; `columns` of the table.

        The values of a column come from the paths of the files. Rows may lack them, such as those
        that were read when another path was loaded.
        """
        shared = {*removals[0].values}.intersection(*(removal.values for removal in removals))
        values = {}
        for name in sorted(shared.intersection(columns.names)):
            texts = {removal.values[name] for removal in removals}
            kind = columns.field(name).type
            if _is_exact(kind):
                column = pa.array([text for text in texts if text is not None], pa.string())
                column = column.cast(kind)
                values[name] = sorted(column.to_pylist())
        keys = sorted({key for removal in removals for key in removal.keys})
        return cls(removals[0].column, keys, values)


def _is_exact(kind: pa.DataType) -> bool:
    """True if each value has one text, and tables compare it in no other way than we do."""
    return (
        _types.is_int64(kind)
        or _types.is_int32(kind)
        or _types.is_date32(kind)
        or any(is_text(kind) for is_text in _ALIKE)
    )
