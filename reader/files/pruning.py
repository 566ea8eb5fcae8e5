"""Which files need not be opened, by the columns in their paths."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ...checkpoint_meta.documents.file_split import FileVersion
from .options import ReaderOptions
from .path_columns import FileColumns
from .row_filter import Predicate


class FilePruning:
    """Judges files by the conditions of the filter on columns in their paths."""

    def __init__(self, schema: pa.Schema, options: ReaderOptions) -> None:
        self._schema = schema
        self._options = options
        self._columns = FileColumns(schema, options)
        self._predicates: dict[frozenset[str], Predicate] = {}

    def may_match(self, file: FileVersion) -> bool:
        """False only if the path says that no row of `file` fulfils every condition.

        Raises:
            SluiceError: the columns in the path do not fit the schema.
        """
        given = self._columns.partition(file.path)
        predicate = self._predicate(given)
        if not predicate:
            return True
        row = pa.record_batch(
            [pa.array([value], value.type) for value in given.values()], names=list(given)
        )
        return bool(predicate.keep(row).num_rows)

    def _predicate(self, given: Mapping[str, pa.Scalar]) -> Predicate:
        names = frozenset(given)
        if names not in self._predicates:
            place = pa.schema([field for field in self._schema if field.name in names])
            self._predicates[names] = Predicate.of_options(self._options, place)
        return self._predicates[names]
