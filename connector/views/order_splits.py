"""The files that an order is about.

Not here: what became of them (`done_orders.py`).
"""

from __future__ import annotations

import pyarrow as pa

from ...checkpoint_meta.documents.file_columns import RANGES, splits_in
from ...checkpoint_meta.documents.file_split import FileSplit
from ...checkpoint_meta.documents.orders import Order


def splits_of_order(order: Order) -> list[FileSplit]:
    """The splits of an order about files."""
    columns = [pa.array(order.splits.get(field.name, ()), field.type) for field in RANGES]
    return splits_in(pa.record_batch(columns, schema=RANGES))
