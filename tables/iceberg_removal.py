"""Deletes rows of files from an Iceberg table, within a transaction."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..checkpoint_meta.documents.written_file import Removal
from .iceberg_files import columns_of
from .removed_rows import RemovedRows

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Transaction


def delete_rows(transaction: Transaction, removals: Sequence[Removal]) -> None:
    """Delete rows of files; data files with other rows as well are written again without these.

    Also where there are none: the deletion is what lets pyiceberg look for rows of the same files
    that others have added meanwhile.
    """
    if transaction.table_metadata.current_snapshot_id is None:
        return
    rows = RemovedRows.of(removals, columns_of(transaction.table_metadata))
    with warnings.catch_warnings():
        # That it found none is no reason to warn.
        warnings.simplefilter("ignore")
        transaction.delete(_expression(rows))


def _expression(rows: RemovedRows) -> BooleanExpression:
    from pyiceberg import expressions

    # The types that pydantic gives their fields are not those that their arguments may have.
    of: Any = expressions
    condition: BooleanExpression = of.In(rows.column, rows.keys)
    for column, values in rows.values.items():
        at = of.IsNull(column)
        if values:
            # Of long lists pyiceberg makes no use where it leaves out files.
            first, last = values[0], values[-1]
            within = of.GreaterThanOrEqual(column, first), of.LessThanOrEqual(column, last)
            at = of.Or(of.And(*within, of.In(column, values)), at)
        condition = of.And(condition, at)
    return condition
