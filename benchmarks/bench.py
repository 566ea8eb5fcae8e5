"""What a row of the table is given, and what it gives: drained queries, their medians."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from .data import ROWS, Data, size_of
from .streams import Input, Run, available_now, load

WARM_UPS = 6
"""Runs before those that count: until then the JVM compiles both sources' code."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; `unit` is that of both figures, and less is better."""

    work: str
    sluice: float
    peer: float | None
    unit: str = "s"
    peer_name: str = "Spark's file source"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a row needs."""

    spark: SparkSession
    data: Data
    runs: int
    peers: bool
    """False leaves the peers out."""

    flink: str = ""
    """A Python interpreter that has PyFlink; none leaves Flink out."""

    packages: str = ""
    """Additions to Spark, in coordinates of Maven."""

    def throughput(
        self,
        work: str,
        read: Input,
        rows: int | None = ROWS,
        *,
        peer_once: bool = False,
        peers: bool = True,
        warm_ups: int = WARM_UPS,
    ) -> list[Result]:
        """Drain by AvailableNow, sources in turn, warmed up; medians of the time.

        With `peer_once` a peer that takes minutes is run a single time, after the others; without
        `peers` there is no peer.
        """
        found: dict[str, list[Run]] = {"sluice": [], "spark": []}
        with_peer = self.peers and peers
        for turn in range(warm_ups + self.runs):
            last = turn == warm_ups + self.runs - 1
            for source, runs in found.items():
                if source == "spark" and (not with_peer or (peer_once and not last)):
                    continue
                run = available_now(partial(load, self.spark, source, read), rows)
                if turn >= warm_ups:
                    runs.append(run)
        whole = {name: [run.seconds for run in done] for name, done in found.items()}
        batches = {name: [run.batch_seconds for run in done] for name, done in found.items()}
        note = f"{size_of(read.path) / 1e6:,.0f} MB, median of {self.runs}"
        note += ", the peer once" if peer_once and self.peers else ""
        return [
            Result(work, median(times["sluice"]), median_or_none(times["spark"]), note=said)
            for times, said in (
                (batches, f"{note}: the batches"),
                (whole, f"{note}: from start to end of the query, its Python processes included"),
            )
        ]


def median(values: list[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def median_or_none(values: list[float]) -> float | None:
    """The middle one; None without any."""
    return statistics.median(values) if values else None
