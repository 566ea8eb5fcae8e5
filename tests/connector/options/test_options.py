"""The options: one frozen model, one error that lists everything."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from pyspark_sluice.checkpoint_meta.storage.urls import loaded_paths
from pyspark_sluice.connector.options.model import SluiceOptions, option_names, parse_options
from pyspark_sluice.connector.options.validation import instant
from pyspark_sluice.connector.source.file_source import FileSource
from pyspark_sluice.errors import OptionError

GOOD = {"path": "/in", "checkpointlocation": "/ck"}


def test_all_problems_are_listed_at_once_each_with_option_found_and_expected():
    given = {
        "path": "/in",
        "maxfilespertrigger": "many",
        "discoveryinterval": "soon",
        "onspliterror": "ignore",
        "maxFilePerTrigger": "3",
    }
    with pytest.raises(OptionError) as caught:
        parse_options(given, streaming=True)
    text = str(caught.value)
    assert re.search(r"maxFilesPerTrigger: found 'many'; expected: a whole number", text)
    assert re.search(r"discoveryInterval: found 'soon'; expected: .*duration", text)
    assert re.search(r"onSplitError: found 'ignore'; expected: one of fail, return", text)
    assert "maxFilePerTrigger: unknown option; did you mean maxFilesPerTrigger?" in text
    assert "checkpointLocation: found nothing; expected the same path as in writeStream" in text


def test_a_missing_path_is_named():
    with pytest.raises(OptionError, match=r"path: found nothing; expected .*\.load\(path\)"):
        parse_options({"checkpointlocation": "/ck"}, streaming=True)


def test_secrets_show_neither_in_the_model_nor_in_an_error():
    options = parse_options({**GOOD, "storageoptions": '{"secret": "hunter2"}'}, streaming=True)
    assert options.storage_options["secret"] == "hunter2"
    assert "hunter2" not in repr(options)
    with pytest.raises(OptionError) as caught:
        parse_options({**GOOD, "storageoptions": "hunter2"}, streaming=True)
    assert "hunter2" not in str(caught.value)


def test_every_option_has_a_type_and_one_sentence():
    for name, field in SluiceOptions.model_fields.items():
        assert field.annotation is not None, name
        extra = field.json_schema_extra
        is_hidden = isinstance(extra, dict) and extra.get("hidden")
        assert is_hidden or (field.description or "").endswith("."), name


def test_no_two_options_share_a_spelling():
    names = option_names()
    assert len({name.lower() for name in names}) == len(names)
    assert names["delimiter"] == "delimiter"
    assert names["sep"] == "sep"


def test_a_filter_is_checked_against_the_whole_schema_before_anything_runs():
    schema = pa.schema([("id", pa.int64()), ("_metadata", pa.struct([("row_index", pa.int64())]))])
    bad = parse_options({**GOOD, "filter": "idd > 3"}, streaming=True)
    with pytest.raises(OptionError, match="idd"):
        FileSource(bad, schema)
    numbered = parse_options({**GOOD, "filter": "id > 3"}, streaming=True)
    with pytest.raises(OptionError, match="cannot be numbered"):
        FileSource(numbered, schema)
    FileSource(numbered, pa.schema([("id", pa.int64())]))


def test_several_paths_are_one_text_whichever_way_they_are_given():
    for given in (
        {"path": r"/a\,b,/c"},
        {"paths": '["/a,b", "/c"]'},
        {"path": r"/a\,b", "paths": '["/c"]'},
    ):
        options = parse_options({"checkpointlocation": "/ck", **given}, streaming=True)
        assert [path.base.url for path in loaded_paths(options.path)] == ["/a,b", "/c"]


def test_times_of_files_are_moments_in_the_zone_that_is_named():
    for text, zone in (
        ("2026-01-31T12:00:00Z", ""),
        ("2026-01-31 13:00:00+01:00", "Asia/Tokyo"),
        ("2026-01-31T13:00:00", "Europe/Berlin"),
        ("2026-01-31 12:00", "UTC"),
    ):
        given = {**GOOD, "modifiedafter": text, "timezone": zone}
        options = parse_options({k: v for k, v in given.items() if v}, streaming=True)
        assert instant(options.modified_after, options.time_zone) == 1_769_860_800_000_000


def test_local_paths_are_listed_more_often_unless_the_user_says_otherwise():
    def interval(path, **more):
        given = {"path": path, "checkpointlocation": "/ck", **more}
        return parse_options(given, streaming=True).discovery_interval

    assert interval("/a,file:///b") == 250
    assert interval("/a,s3://b/c") == 1000
    assert interval("/a", discoveryinterval="2s") == 2000
    assert interval("/a", source="my:Source") == 1000


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"maxColumns": "5"}, "maxColumns: "),
        ({"locale": "de-DE"}, "locale: "),
        ({"locale": "en-GB"}, "locale: "),
        ({"locale": "en"}, "locale: "),
        ({"unescapedQuoteHandling": "SKIP_VALUE"}, "unescapedQuoteHandling: "),
        ({"paths": "/a"}, "paths: found '/a'; expected: "),
        ({"path": "/a/[b"}, "path: an open [ in '[b'"),
        ({"path": "s3://b*/c"}, "has a wildcard where a literal name is required"),
        ({"modifiedAfter": "soon"}, "modifiedAfter: found 'soon'; expected a time such as"),
        ({"modifiedBefore": "2026-01-31"}, " without a time zone; "),
        ({"readyMarker": "a/b"}, "readyMarker: found 'a/b'; expected: a file name"),
        ({"minFileSize": "much"}, "minFileSize: found 'much'"),
        ({"maxFileAge": "0s"}, "maxFileAge: found '0s'"),
        ({"ignoredPathSegmentRegex": "("}, "expected: a regular expression"),
        ({"cloudFiles.header": "true"}, "unknown option; did you mean header?"),
        ({"resourceTag": "x"}, "resourceTag: unknown option\n"),
        ({"resourceTags": "x"}, "resourceTags: unknown option\n"),
        ({"ignorePrefix": "x"}, "ignorePrefix: unknown option\n"),
        ({"schema": "x"}, "schema: unknown option\n"),
        ({"checkpointDir": "x"}, "checkpointDir: unknown option\n"),
        ({"timestampFormatNTZ": "x"}, "timestampFormatNTZ: unknown option\n"),
        ({"recurseFileLookup": "true"}, "did you mean recursiveFileLookup?"),
        ({"maxFilesPerTriger": "1"}, "did you mean maxFilesPerTrigger?"),
        ({"maxFilesPerTrigger": "x"}, "maxFilesPerTrigger: found 'x'; expected: a whole number\n"),
        ({"maxFilesPerTrigger": "0"}, "maxFilesPerTrigger: found '0'; expected: more than 0\n"),
        ({"mode": "x"}, "mode: found 'x'; expected: one of PERMISSIVE, DROPMALFORMED, FAILFAST\n"),
        ({"multiLine": "x"}, "multiLine: found 'x'; expected: true or false\n"),
        (
            {"freshShare": "0.5", "fileOrder": "newestFirst"},
            "\n  - freshShare: found with fileOrder=newestFirst; expected",
        ),
        (
            {"fileFormat": "csv", "lineSep": "€", "encoding": "ISO-8859-1"},
            "lineSep: it contains characters that the encoding cannot represent",
        ),
        ({"fileFormat": "delta"}, "a format of your own"),
        ({"maxFileAge": "1 month"}, "of fixed length, which months and years are not: 30d"),
    ],
)
def test_a_wrong_option_is_reported_in_our_words_and_without_a_wrong_suggestion(given, told):
    with pytest.raises(OptionError) as caught:
        parse_options({"path": "/in", **given}, streaming=False)
    assert told in f"{caught.value}\n"


@pytest.mark.parametrize(
    ("text", "hours"),
    [("interval 1 day", 24), ("INTERVAL '2' HOURS", 2), ("1 day 2 hours", 26), ("1d2h", 26)],
)
def test_intervals_of_sql_are_durations(text, hours):
    options = parse_options({"path": "/in", "maxFileAge": text}, streaming=False)
    assert options.max_file_age == hours * 3_600_000


WRONG = ["", "nonsense?!", "-1", "{", "[1]", "9" * 30, "(", "\\q"]
OF_PYDANTIC = r"(?i)value error|input should|should (match|be|have)|expecting|char \d|line \d"
ANY_TEXT = {
    field.alias for field in SluiceOptions.model_fields.values() if "str" in str(field.annotation)
}


def refusals(name: str) -> str:
    said = ""
    for text in WRONG:
        try:
            parse_options({"path": "/in", name: text}, streaming=False)
        except OptionError as error:
            said += str(error)
    return said


def test_no_wrong_value_of_any_option_is_reported_in_the_words_of_a_library():
    for name in sorted(set(option_names().values())):
        said = refusals(name)
        assert said or name in ANY_TEXT or name == "ignoredPathSegmentRegex"
        assert not re.search(OF_PYDANTIC, said), said
        assert "another value" not in said
        assert "expected: not " not in said
