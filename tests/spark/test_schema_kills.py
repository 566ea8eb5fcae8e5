"""Every mode of evolution, with a kill between the detection of new columns and the restart."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pyspark_sluice.examples.demo.driver import Driver
from pyspark_sluice.tests.patience import PATIENCE, wait_until
from pyspark_sluice.tests.spark.programs import evolving

pytestmark = [
    pytest.mark.spark,
    pytest.mark.drivers,
    pytest.mark.thorough(
        "a kill at each moment is in test_crash.py, new columns in test_schemas.py"
    ),
]


def run(homes: Iterable[Path]) -> Driver:
    streams = list(homes)
    command = [sys.executable, evolving.__file__, str(streams[0].parent)]
    return Driver([*command, *(home.name for home in streams)], lambda line: None)


class Watch:
    """Tells when a stream has met the new columns."""

    def __init__(self, homes: Iterable[Path]) -> None:
        self.homes = list(homes)
        self.blocking: dict[Path, int] = {}
        """Writing ends, held open, of what tasks wait to read from."""

    def not_met(self) -> list[str]:
        return [home.name for home in self.homes if not self._met(home)]

    def _met(self, home: Path) -> bool:
        if home.name.endswith(evolving.BLOCKED):
            return home in self.blocking or self._blocks(home)
        if home.name.startswith("add"):
            return evolving.second_version(home).exists()
        return (home / ("failed" if home.name == "failOnNewColumns" else "held")).exists()

    def _blocks(self, home: Path) -> bool:
        """A task has opened the next version of the schema, and is not getting on."""
        with contextlib.suppress(OSError):
            end = os.open(evolving.second_version(home), os.O_WRONLY | os.O_NONBLOCK)
            self.blocking[home] = end
        return home in self.blocking

    def proceed(self) -> None:
        for home, end in self.blocking.items():
            os.close(end)
            evolving.second_version(home).unlink()


def rows(home: Path) -> list[dict[str, Any]]:
    found = []
    for path in (home / "sink").glob("batch=*/*.json"):
        found += [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda row: row["id"])


def ids(home: Path) -> list[object]:
    return [row["id"] for row in rows(home)]


def kill_when_all_have_met_new_columns(homes: Iterable[Path]) -> None:
    watch, driver = Watch(homes), run(homes)
    try:

        def all_met():
            assert driver.ended() is None, "\n".join(driver.tail)
            return not watch.not_met()

        wait_until(all_met, watch.not_met)
    finally:
        driver.kill()
        watch.proceed()


def drain(homes: Iterable[Path]) -> None:
    driver = run(homes)
    try:
        assert driver.wait(PATIENCE) == 0, "\n".join(driver.tail)
    finally:
        driver.kill()


def test_a_kill_between_new_columns_and_the_restart_loses_and_doubles_nothing(tmp_path):
    homes = {name: tmp_path / name for name in evolving.STREAMS}
    kill_when_all_have_met_new_columns(homes.values())
    for name, home in homes.items():
        stored = name.startswith("add") and not name.endswith(evolving.BLOCKED)
        assert evolving.second_version(home).exists() == stored, name
        held = name in ("rescue", "none")
        assert ids(home) == list(range((3 if held else 1) * evolving.ROWS)), name

    drain(homes.values())
    for name, home in homes.items():
        found = rows(home)
        assert [row["id"] for row in found] == list(range(3 * evolving.ROWS)), name
        first, second, third = found[:: evolving.ROWS]
        assert first == {"id": 0, "size": 1}
        if name == "none":
            assert second.keys() == third.keys() == {"id", "size"}
        elif name == "rescue":
            assert json.loads(second["_rescued_data"]) == {"new": 1}
            assert json.loads(third["_rescued_data"]) == {"other": {"a": 1}}
        else:
            assert (second["new"], third["other"]) == ("1", {"a": "1"})
        assert third["size"] == evolving.longest(home), name
    for name in ("failed", "failed again"):
        error = (homes["failOnNewColumns"] / name).read_text()
        assert "NewColumnsError" in error, error
    assert [home.name for home in homes.values() if (home / "failed again").exists()] == [
        "failOnNewColumns"
    ]
