"""Offsets: canonical text, both versions named when newer."""

from __future__ import annotations

import json

import pytest

from pyspark_sluice.checkpoint_meta.reference import CheckpointRef
from pyspark_sluice.connector.offsets import from_offset, to_offset
from pyspark_sluice.errors import StateCorruptError, StateVersionError


def test_equal_references_give_equal_json_text_in_canonical_key_order():
    assert json.dumps(to_offset(CheckpointRef(7, 2))) == (
        '{"checkpoint": 7, "epoch": 2, "version": 1}'
    )
    assert from_offset({"epoch": 2, "version": 1, "checkpoint": 7}) == CheckpointRef(7, 2)


def test_a_newer_offset_is_refused_with_both_versions_named():
    with pytest.raises(StateVersionError, match=r"found offset version 9; expected at most .* 1"):
        from_offset({"checkpoint": 1, "epoch": 1, "version": 9})


def test_the_offset_of_another_source_is_named_as_such():
    with pytest.raises(StateCorruptError, match="not of this source"):
        from_offset({"logOffset": 3})
