"""The model of the protocol is sound, things happen in it, and a bug in it is found."""

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


@pytest.mark.parametrize("variant", prove.VARIANTS)
@pytest.mark.thorough("`make prove` searches the variants; one crash anywhere is above")
def test_a_variant_is_sound_within_small_bounds(variant):
    found = prove.search(variant, *prove.small(variant))
    assert found.error == ""
    assert found.states > 50_000


def test_a_witness_is_reached():
    assert prove.is_reached(prove.search("TWO_HELD"))


@pytest.mark.parametrize(
    "name",
    ["GATEWAY_NEVER_CLOSES", "COUNTED_AFTER_CUT", "ORPHAN_FOR_PARENT", "OFFSET_BEFORE_PUBLISH"],
)
def test_a_planted_bug_ends_with_its_own_error(name):
    assert prove.meaning(prove.search(name)) == prove.BUGS[name].found


@pytest.mark.parametrize("name", [name for name, bug in prove.BUGS.items() if bug.variant])
def test_a_bug_of_a_variant_is_found_within_small_bounds(name):
    bug = prove.BUGS[name]
    assert prove.meaning(prove.search(name, bug.variant, *prove.small(bug.variant))) == bug.found


def test_an_error_that_no_bug_is_expected_to_end_with_is_no_success():
    other = prove.Searched(1, 0.0, 0.0, "assertion violated (planned==0)")
    assert prove.meaning(other) not in prove.ERRORS.values()
    twice = prove.Searched(1, 0.0, 0.0, "assertion violated (sunk[k]==0) (at depth 7)")
    assert prove.meaning(twice) == prove.TWICE
    assert not prove.is_reached(twice)


def test_each_name_of_a_witness_or_bug_is_in_the_model():
    text = prove.MODEL.read_text()
    for name in [*prove.WITNESSES, *prove.VARIANTS, *prove.BUGS]:
        assert f"ifdef {name}" in text or f"ifndef {name}" in text, name
