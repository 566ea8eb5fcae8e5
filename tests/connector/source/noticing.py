"""Whether a suite notices that a source is broken: all of its tests, without naming any."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark_sluice.connector.testing import SourceSuite


def notice_of(suite: SourceSuite, place: Path, expected: str) -> Exception:
    """The first failure of a test of the suite that says what is expected.

    Raises:
        AssertionError: every test passes or says something else.
    """
    said = []
    for number, test in enumerate(_kills_last(suite)):
        own = place / str(number)
        own.mkdir()
        try:
            test(own)
        except Exception as error:  # noqa: BLE001 - a broken source may raise anything
            if re.search(expected, str(error)):
                return error
            said.append(str(error))
    message = f"no test says {expected!r}: {said}"
    raise AssertionError(message)


def _kills_last(suite: SourceSuite) -> list[Callable[[Path], Any]]:
    """In the order of the suite, but what dies at each operation in turn takes longest by far."""
    of_suite = [(name, test) for name, test in vars(SourceSuite).items() if name[:5] == "test_"]
    of_suite.sort(key=lambda named: "_KILLS" in named[1].__code__.co_names)
    return [getattr(suite, name) for name, _ in of_suite]
