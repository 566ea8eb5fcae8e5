"""Rows that a format counts, as positions in the content of a split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .api import Decoded


def with_spans(pieces: Iterable[Decoded], skip: int) -> Iterator[Decoded]:
    """Yield pieces with spans: where rows are counted, from the row `skip` on.

    Such formats decode the rows before again; who read them has counted what was dropped with them.
    """
    row = end = 0
    for piece in pieces:
        if piece.span is not None:
            yield piece
            continue
        first = row + piece.passed_over
        row = first + piece.batch.num_rows
        if first >= skip or row > skip:
            begin = max(first, skip)
            fresh = piece if first >= skip else _behind(piece, skip - first)
            yield _counted(replace(fresh, passed_over=begin - end), begin)
            end = row


def _behind(piece: Decoded, rows: int) -> Decoded:
    """A piece without its first rows, and without what was dropped with them."""
    batch = piece.batch.slice(rows)
    return replace(piece, batch=batch, dropped_records=0, bad=(), passed_over=0)


def _counted(piece: Decoded, first: int) -> Decoded:
    count = piece.batch.num_rows

    def parts() -> Iterator[Decoded]:
        half = count // 2
        yield _counted(replace(piece, batch=piece.batch.slice(0, half)), first)
        yield _counted(_behind(piece, half), first + half)

    return replace(piece, span=(first, first + count), parts=parts if count > 1 else None)
