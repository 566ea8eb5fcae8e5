"""Offsets: canonical text, both versions named when newer."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.connector.spark.offsets import from_offset, to_offset
from pyspark_sluice.errors import StateCorruptError, StateVersionError


def test_equal_references_give_equal_json_text_in_canonical_key_order():
    assert json.dumps(to_offset(CheckpointRef(7, 2))) == (
        '{"checkpoint": 7, "epoch": 2, "version": 1}'
    )
    assert from_offset({"epoch": 2, "version": 1, "checkpoint": 7}) == CheckpointRef(7, 2)


def test_a_newer_offset_is_refused_with_both_versions_named():
    with pytest.raises(StateVersionError, match=r"found offset version 9; expected at most .* 1"):
        from_offset({"checkpoint": 1, "epoch": 1, "version": 9})


def _with(**changes):
    return {"checkpoint": 7, "epoch": 2, "version": 1, **changes}


@pytest.mark.parametrize(
    "offset",
    [
        {"logOffset": 3},
        5,
        [1],
        "7",
        None,
        {},
        _with(checkpoint=-1),
        _with(epoch=-2),
        _with(checkpoint="7"),
        _with(epoch=2.0),
        _with(checkpoint=True),
        _with(checkpoint=0),
        _with(epoch=0),
        _with(version=0),
        _with(version="1"),
        {"checkpoint": 7, "epoch": 2},
    ],
)
def test_an_offset_that_is_not_ours_is_refused_and_shown(offset):
    with pytest.raises(StateCorruptError, match="not of this source") as caught:
        from_offset(offset)
    assert f"found {json.dumps(offset)}; expected {{" in str(caught.value)


def test_nothing_read_yet_is_an_offset_of_ours():
    assert from_offset(to_offset(NO_CHECKPOINT)) == NO_CHECKPOINT
