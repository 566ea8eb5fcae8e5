"""The model of the protocol is sound, things happen in it, and a bug in it is found."""

from __future__ import annotations

import pytest

from .model import prove

pytestmark = [
    pytest.mark.skipif(bool(prove.missing_tools()), reason="no SPIN on this machine"),
    pytest.mark.slow,
]


def test_the_model_is_sound_with_one_crash_anywhere():
    found = prove.search("CRASHES=1", "AHEAD=1")
    assert found.error == ""
    assert found.states > 50_000


@pytest.mark.parametrize("name", ["TWO_HELD", "GATEWAY_NEVER_CLOSES"])
def test_what_has_to_be_reached_or_found_is(name):
    assert prove.search(name).error


def test_each_name_of_a_witness_or_bug_is_in_the_model():
    text = prove.MODEL.read_text()
    for name in [*prove.WITNESSES, *prove.BUGS]:
        assert f"ifdef {name}" in text or f"ifndef {name}" in text, name
