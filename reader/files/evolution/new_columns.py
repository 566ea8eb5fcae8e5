"""What a reader says when it meets a column that its schema does not have.

Not an error of the tree: the caller of the reader stores the new schema first, and then says so.
"""

from __future__ import annotations

import pyarrow as pa


class NewColumnsSeen(Exception):
    """Raised before any row of its block is handed out; what was read does not count.

    `found` is the struct of what the schema does not have, or has with narrower types, in types for
    all that the reader looked at; None where the file's own metadata says what its columns are.
    """

    def __init__(self, where: str, found: pa.DataType | None = None) -> None:
        super().__init__(where, found)
        self.where = where
        self.found = found
