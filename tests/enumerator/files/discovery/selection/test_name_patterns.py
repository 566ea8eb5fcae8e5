"""Which names are data, as Spark's and Hadoop's own code says; patterns end in bounded time."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_sluice.checkpoint_meta.storage import written_values
from pyspark_sluice.checkpoint_meta.storage.written_values import PATTERN_SECONDS, glob_pattern
from pyspark_sluice.enumerator.files.discovery.selection.event_times import pattern_expression
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import NameRule
from pyspark_sluice.errors import OptionError

NAMES = [
    *("a", "a.json", "_a", ".a", "_SUCCESS", "_a=1", "_=", "=_", "a=1", ".a=1", "._a=1"),
    *("a._COPYING_", "_a=1._COPYING_", "a._COPYING_.json", "._COPYING_", "A_", "é", ""),
    *("_metadata", "_metadata.json", "_common_metadata_", "_metadata._COPYING_", "a_metadata"),
]


def test_hidden_names_are_those_of_spark():
    rule = NameRule()
    read = [name for name in NAMES if not rule.refusal(name)]
    assert " ".join(read) == "a a.json _a=1 _= =_ a=1 a._COPYING_.json A_ é  a_metadata"


def test_other_names_may_be_passed_over_or_none():
    names = ["tmp-1", "a.tmp", ".a", "_a", "_a=1"]
    assert [n for n in names if not NameRule("^tmp|[.]tmp$").refusal(n)] == [".a", "_a", "_a=1"]
    assert [n for n in names if not NameRule("").refusal(n)] == names


def test_a_pattern_is_for_files_and_hidden_names_stay_hidden():
    rule = NameRule(glob="*.{json,csv}")
    names = ["a.json", "b.csv", "c.txt", ".d.json", "json"]
    assert [name for name in names if not rule.refusal(name)] == ["a.json", "b.csv"]
    assert [name for name in names if rule.enters(name)] == ["a.json", "b.csv", "c.txt", "json"]


@pytest.mark.parametrize("glob", ["[a", "{a", "a\\", "[]", "[b-a]", "[[a]", "\\d", "{a,{b}"])
def test_a_pattern_that_does_not_parse_says_so(glob):
    with pytest.raises(ValueError, match="in '"):
        glob_pattern(glob)


# Against the originals -----------------------------------------------------------------------

GLOBS = [
    *("*.{json,csv}", "*.json", "{a,b}", "[ab]", "[!a]", "[^a]", "[a-b]*", "a?", "\\*", "[]a]"),
    *("{a,{b,c}}", "a{,b}", "**", "[&&]", "[a&&b]", "[a--]", "[|]", "{[ab],c}*", "[{]", "[*]"),
    *("[?]", "[}]", "[,]", "{[,]}", "!a", "^a", "[a^]", "[-]", "[!-]", "a.b", "+", "[\\]]"),
    *("[a\\-b]", "}", "a,b", "a|b", "(a)", "$a", "~", "[~~a]", "", "a#b", "a b", "[[a]", "{a"),
]
TEXTS = [
    *("", "a", "b", "ab", "ba", "aab", "a.b", "a,b", "a*b", "[a]", "{a}", "a-b", "^", "!", "-"),
    *("a]", "a&b", "a|b", "~", "a+", "+", "$a", "(a)", "\\a", "a b", "_a", "}", "]", ",", "&"),
    *("|", "*", "?", "(", ":", ".", "^a", "a.json", "b.csv", "c.json.gz", "é", "a\nb", "a#b"),
]


def _matches(pattern):
    return [text for text in TEXTS if pattern(text)]


@pytest.mark.spark
@pytest.mark.thorough(
    "thousands of calls of Hadoop; test_discovery.py chooses files by patterns as Spark does"
)
def test_patterns_mean_what_they_mean_to_hadoop(spark):
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    hadoop = spark._jvm.org.apache.hadoop.fs.GlobPattern
    dice = random.Random(7)
    made = ["".join(dice.choices("ab*?[]{},!^-\\.&|~+ ", k=dice.randint(1, 6))) for _ in range(60)]
    for glob in [*GLOBS, *made]:
        try:
            theirs = _matches(hadoop(glob).matches)
        except Py4JError:
            theirs = None
        try:
            ours = _matches(glob_pattern(glob).fullmatch)
        except ValueError as error:
            if "a backslash before" in str(error):
                continue  # What Hadoop takes for a class of characters is refused here.
            ours = None
        assert ours == theirs, glob


@pytest.mark.slow
def test_a_name_that_keeps_an_expression_busy_is_named_with_it(monkeypatch):
    monkeypatch.setattr(written_values, "PATTERN_SECONDS", 0.3)
    rule, name = NameRule(ignored="(?:(a|aa)+)+$"), "a" * 250 + "y"
    began = time.monotonic()
    with pytest.raises(OptionError, match="Write it without repetitions") as caught:
        rule.refusal(name)
    assert time.monotonic() - began < 10 * PATTERN_SECONDS
    assert caught.value.where == name
    assert "(?:(a|aa)+)+$ has not finished after" in str(caught.value)


@pytest.mark.parametrize("expression", ["(a*)*b", ".*.*.*x", "(foo|bar)*c"])
def test_what_only_looks_dangerous_is_done_at_once(expression):
    began = time.process_time()
    assert not NameRule(ignored=expression).refusal("a" * 250 + "y")
    assert time.process_time() - began < PATTERN_SECONDS


def test_alternatives_that_may_be_tried_again_end_too():
    pattern = glob_pattern("{a,[ab]}*" * 12 + "x")
    began = time.monotonic()
    assert not pattern.fullmatch("ab" * 120 + "xa")
    assert time.monotonic() - began < 10 * PATTERN_SECONDS


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
    assert bool(glob_pattern(glob).fullmatch(name)) is matches


@pytest.mark.parametrize("stars", [3, 4, 40])
def test_many_stars_of_a_pattern_for_times_take_one_pass_over_a_path(stars):
    expression = pattern_expression("*-" * stars + "{yyyy}")
    began = time.process_time()
    assert expression.search("-" * 1000 + "x") is None
    assert time.process_time() - began < PATTERN_SECONDS
    assert expression.search("-" * 1000 + "2026")


_TEXTS = ("2026", "01", "12", "1", "-", "a", "/")


@given(
    st.lists(st.sampled_from(["*", "*", "1", "-", "a/", "/"]), max_size=6),
    st.lists(st.sampled_from(_TEXTS), max_size=12).map("".join),
)
def test_stars_of_a_pattern_for_times_find_what_trying_all_would_find(pieces, path):
    usual = "".join("[^/]*?" if piece == "*" else re.escape(piece) for piece in pieces)
    expected = re.search(rf"(?<!\d)(\d{{4}}){usual}(0[1-9]|1[0-2])(?!\d)", path)
    found = pattern_expression(f"{{yyyy}}{''.join(pieces)}{{MM}}").search(path)
    assert (found and found.groups()) == (expected and expected.groups())
