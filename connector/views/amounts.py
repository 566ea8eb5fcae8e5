"""Counts, bytes and durations for people."""

from __future__ import annotations

from datetime import timedelta


def format_bytes(count: float) -> str:
    """Bytes with a unit, powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def counted(count: int, noun: str) -> str:
    """1 split, 2 splits; 1 batch, 2 batches."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def format_duration(seconds: float | None) -> str:
    """Two units at most."""
    if seconds is None:
        return "-"
    left = timedelta(seconds=max(0, round(seconds)))
    days, rest = left.days, left.seconds
    hours, minutes, rest = rest // 3600, rest // 60 % 60, rest % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
