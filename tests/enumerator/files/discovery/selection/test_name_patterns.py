"""Which names are data; held against Spark's and Hadoop's own code where a JVM is at hand."""

from __future__ import annotations

import random

import pytest

from pyspark_sluice.checkpoint_meta.storage.name_globs import glob_pattern
from pyspark_sluice.enumerator.files.discovery.selection.name_patterns import NameRule

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
