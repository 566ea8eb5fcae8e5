"""What the text given to `load` names."""

from __future__ import annotations

import pytest

from pyspark_sluice.checkpoint_meta.storage.urls import is_below, joined, literal, loaded_paths


def parts(text):
    return [(path.base, *path.wildcards) for path in loaded_paths(text)]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("/a/b", [("/a/b",)]),
        ("/a, /b,,/a", [("/a",), ("/b",)]),
        ("/a/{b,c}/d,/e", [("/a", "{b,c}", "d"), ("/e",)]),
        ("/a/{b/c,d}/*.json", [("/a/b/c", "*.json"), ("/a/d", "*.json")]),
        ("/a/{b,{c/d,e}}/f", [("/a/b/f",), ("/a/c/d/f",), ("/a/e/f",)]),
        ("/a/*/./", [("/a", "*")]),
        ("/*", [("/", "*")]),
        (r"/a\,b/c\*d,/e\f", [("/a,b/c*d",), (r"/e\f",)]),
        ("s3a://lake/in/2026-*/x", [("s3://lake/in", "2026-*", "x")]),
        ("s3://{a,b/c}/d", [("s3://a/d",), ("s3://b/c/d",)]),
        ("file:///a%20b%2A/c*/%5Bd", [("/a b*", "c*", r"\[d")]),
        ("http://host/x?y=1", [("http://host/x?y=1",)]),
        ("zip://a*.csv::/b.zip", [("zip://a*.csv::/b.zip",)]),
    ],
)
def test_paths_are_taken_apart(text, meant):
    assert parts(text) == meant


def test_relative_paths_and_the_home_directory_are_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert parts("in/x-*,*,~/in") == [
        (str(tmp_path / "in"), "x-*"),
        (str(tmp_path), "*"),
        ("/home/me/in",),
    ]


@pytest.mark.parametrize("text", ["s3://bu*/x", "/a/*/../b"])
def test_a_wildcard_where_none_can_be_is_refused(text):
    with pytest.raises(ValueError, match="wildcard"):
        loaded_paths(text)


def test_a_list_of_paths_is_one_text_in_which_commas_of_names_do_not_separate():
    assert parts(joined(["/a,b", "/c{d,e}", "/f"])) == [("/a,b",), ("/", "c{d,e}"), ("/f",)]


def test_any_path_can_be_written_literally():
    odd = r"/a*b?c[d]e{f,g},h\i"
    assert parts(literal(odd)) == [(odd,)]


def test_a_place_below_another_is_known_as_such():
    assert is_below("/lake/in", "/lake")
    assert is_below("s3a://b/x", "s3://b/x/")
    assert not is_below("/lake2", "/lake")
