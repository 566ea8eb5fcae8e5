"""Takes runs of small files that one parse can serve.

Opening and parsing cost far more than the bytes of a tiny file, so runs of them are concatenated.
Not here: the parse itself (`formats/record_format.py`), what happens when it fails (`reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...checkpoint_meta.documents.file_split import FileSplit

SMALL_FILE = 256 * 1024
"""Files up to this size are packed: beyond it, a parse of their own costs next to nothing."""

_RUN_BYTES = 2 * 1024 * 1024
_RUN_FILES = 16_384


def runs(
    splits: Sequence[FileSplit], alike: Callable[[FileSplit], object | None]
) -> Iterator[Sequence[FileSplit]]:
    """Cut `splits` into runs of neighbours for which `alike` gives the same key.

    A split without a key (None), or larger than a small file, is a run of its own.
    """
    run, run_key, size = list[FileSplit](), None, 0
    for split in splits:
        small = split.file.size <= SMALL_FILE and split.start == 0 and split.end == split.file.size
        key = alike(split) if small else None
        full = size + split.file.size > _RUN_BYTES or len(run) >= _RUN_FILES
        if run and (key is None or key != run_key or full):
            yield run
            run, size = [], 0
        run.append(split)
        run_key, size = key, size + split.file.size
        if key is None:
            yield run
            run, size = [], 0
    if run:
        yield run
