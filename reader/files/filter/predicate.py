"""The `filter` option: `column op literal` joined by AND, as rows to keep and blocks to skip.

A condition that is null for a row does not hold, as in SQL, and NaN is greater than every number,
as in Spark. The rows that are kept never depend on how a file was cut into blocks: skipping a block
by its statistics is only a faster way to the same rows.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from ..options import ReaderOptions
from .conditions import Condition, Range
from .filter_parser import FilterParser

__all__ = ["Predicate", "Range"]


class Predicate:
    """The conjuncts of a filter that speak of a given schema's columns."""

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self.conditions = conditions

    def __bool__(self) -> bool:
        return bool(self.conditions)

    @classmethod
    def parse(
        cls,
        text: str,
        schema: pa.Schema,
        others: Collection[str] | None = (),
        zone: str = "UTC",
    ) -> Predicate:
        """The conditions of `text` on columns of `schema`; those on `others` are left out.

        `others` is None where the caller cannot know them: then every other name is left out.

        Timestamps that name no zone are in `zone`.

        Raises:
            OptionError: not a condition, a column that is in neither, or a literal that is no
                value of its column.
        """
        if not text.strip():
            return cls(())
        return cls(tuple(FilterParser(text, schema, others, zone).conditions()))

    @classmethod
    def of_options(cls, options: ReaderOptions, schema: pa.Schema) -> Predicate:
        """The conditions of the `filter` option on columns of `schema`, names checked elsewhere."""
        return cls.parse(options.filter, schema, None, options.time_zone or "UTC")

    def columns(self) -> set[str]:
        """Names of the columns the conditions speak of."""
        return {condition.column for condition in self.conditions}

    def keep(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of `batch`, in order, that fulfil every condition."""
        mask = None
        for condition in self.conditions:
            holds = condition.holds(batch.column(condition.column))
            mask = holds if mask is None else pc.and_(mask, holds)
        return batch if mask is None else batch.filter(mask)

    def may_hold(self, ranges: dict[str, Range]) -> bool:
        """False only if no row of a block with these column ranges fulfils every condition."""
        return all(
            condition.may_hold(ranges[condition.column])
            for condition in self.conditions
            if condition.column in ranges
        )
