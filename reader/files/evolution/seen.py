"""What a reader says when it meets a column that its schema does not have.

Not an error of the tree: whoever runs the reader stores the new schema first, and then says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NewColumnsSeen(Exception):
    """Raised before any row of its block is handed out; what was read does not count.

    `record` is the part of a record that the schema does not have, as parsed; None where the
    file's own metadata says what its columns are. `widens` is true if it is the type of a column
    that does not have it.
    """

    def __init__(
        self, where: str, record: Mapping[str, Any] | None = None, *, widens: bool = False
    ) -> None:
        super().__init__(where, record, widens)
        self.where = where
        self.record = record
        self.widens = widens
