"""Errors of this package are shown without their history, its bugs with it."""

from __future__ import annotations

import os

import pytest

from pyspark_sluice.connector.session.error_display import plain_errors
from pyspark_sluice.errors import MissingPathError, ProtocolError


@plain_errors()
def _fails(kind: type[Exception]) -> None:
    try:
        raise OSError("the disk's own words")
    except OSError as error:
        raise kind("what", "where") from error


def test_an_error_of_the_tree_leaves_without_cause_and_context():
    with pytest.raises(MissingPathError, match="what: where") as caught:
        _fails(MissingPathError)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "SPARK_HIDE_TRACEBACK" not in os.environ, "this process is none of Spark's"


@pytest.mark.parametrize("kind", [ProtocolError, ZeroDivisionError])
def test_a_bug_keeps_its_history(kind):
    with pytest.raises(kind) as caught:
        _fails(kind)
    assert isinstance(caught.value.__cause__, OSError)
