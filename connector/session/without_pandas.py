"""pyarrow without pandas, until somebody asks for pandas.

With the first list that it makes an array of, pyarrow imports pandas to see whether the list is a
series: a quarter of a second before the first batch, more than all modules of this package take,
and nothing here ever uses it. Not here: what pyarrow is used for.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa
from typing_extensions import override


class _NotThere(MetaPathFinder):
    @override
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def leave_pandas_out() -> None:
    """Let pyarrow look for pandas now, and find none.

    For a process of our own: until `to_pandas` or the like asks again, which finds it, pyarrow
    takes a series for any other sequence. Where the type of an array is left to its values pyarrow
    asks again, too, so types have to be said. Where pandas is loaded already nothing is changed.
    """
    if "pandas" in sys.modules:
        return
    finder = _NotThere()
    sys.meta_path.insert(0, finder)
    try:
        # Any conversion makes pyarrow look for pandas; it remembers that the import failed.
        pa.array([], pa.null())
    finally:
        sys.meta_path.remove(finder)
