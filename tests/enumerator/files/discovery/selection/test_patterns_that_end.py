"""Patterns in options are matched in one pass, or refused where they might never end."""

from __future__ import annotations

import pytest

from pyspark_sluice.connector.options.model import parse_options
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import glob_pattern
from pyspark_sluice.errors import OptionError


@pytest.mark.parametrize("expression", ["(a+)+$", "^(x|xx)*y", "(?:[^/]*)*b", "((a{1,9})b?)+"])
def test_an_expression_that_a_name_can_keep_busy_for_ever_is_refused(expression):
    given = {"path": "/in", "ignoredNamesRegex": expression}
    with pytest.raises(OptionError, match=r"ignoredNamesRegex.*write it without one of them"):
        parse_options(given, streaming=False)


@pytest.mark.parametrize(
    "expression", ["^[._]", r"^(tmp|_).*\.(bak|old)$", r"(?i)\.part\d{1,3}$", ""]
)
def test_usual_expressions_are_taken(expression):
    parse_options({"path": "/in", "ignoredNamesRegex": expression}, streaming=False)


def test_many_stars_take_one_pass_over_a_name():
    pattern = glob_pattern("*a" * 30 + "*b")
    assert pattern.fullmatch("a" * 250) is None
    assert pattern.fullmatch("a" * 250 + "b")
    assert glob_pattern("*" * 40 + "b").fullmatch("a" * 250) is None


@pytest.mark.parametrize(
    ("glob", "name", "matches"),
    [
        ("*.json*.gz", "a.json.b.gz", True),
        ("*.json*.gz", "a.gz.json", False),
        ("a*b*", "ab", True),
        ("*ab*ab", "ab", False),
        ("*ab*ab", "abab", True),
        ("**x**", "x", True),
        ("*[0-9]*?c", "a1bc", True),
        ("{a,ab}*c*d", "abcd", True),
        ("[a*]*b*", "axb", True),
    ],
)
def test_stars_match_what_they_did(glob, name, matches):
    assert (glob_pattern(glob).fullmatch(name) is not None) is matches
