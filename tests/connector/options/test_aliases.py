"""Names known from Spark and Auto Loader: accepted with the same meaning, or explained."""

from __future__ import annotations

import re

import pytest

from pyspark_sluice.connector.options.aliases import AUTO_LOADER, SPARK
from pyspark_sluice.connector.options.model import SluiceOptions, option_names, parse_options
from pyspark_sluice.errors import OptionError

KNOWN = {known.name: known for known in (*SPARK, *AUTO_LOADER)}
VALUES = {
    "inferColumnTypes": "true",
    "maxFilesPerTrigger": "7",
    "maxBytesPerTrigger": "10g",
    "maxFileAge": "14 days",
    "pathGlobFilter": "*.json",
    "fullListingInterval": "1 week",
    "includeExistingFiles": "false",
    "schemaHints": "id long",
    "schemaEvolutionMode": "rescue",
    "fileFormat": "csv",
    "cleanSourceRetention": "8 days",
    "sourceArchiveDir": "/old",
    "maxSplitBytes": "64m",
}
TOGETHER = {
    "cleanSource": {"sourceArchiveDir": "/old"},
    "sourceArchiveDir": {"cleanSource": "archive"},
}
"""Options that an option requires."""


def parse(**options: str) -> SluiceOptions:
    return parse_options(
        {"path": "/in", **{name.lower(): text for name, text in options.items()}}, streaming=False
    )


def refusal(**options: str) -> str:
    with pytest.raises(OptionError) as refused:
        parse(**options)
    return str(refused.value)


@pytest.mark.parametrize("known", [k for k in KNOWN.values() if k.here], ids=lambda k: k.name)
def test_a_name_with_the_same_meaning_does_the_same(known):
    for there, here in (known.values or {VALUES[known.here]: VALUES[known.here]}).items():
        more = TOGETHER.get(known.here, {})
        assert parse(**{known.name: there}, **more) == parse(**{known.here: here}, **more)
        is_default = here in {"full", "mtime", "ignore", "off"}
        assert parse(**{known.name: there}, **more) != parse() or is_default


@pytest.mark.parametrize("known", [k for k in KNOWN.values() if not k.here], ids=lambda k: k.name)
def test_a_name_with_no_meaning_here_is_refused_with_the_way_out(known):
    said = refusal(**{known.name: "secret"})
    assert f"- {known.name}: " in said
    assert known.note in said
    assert ("'secret'" in said) == bool(known.happens_anyway)
    for value in known.happens_anyway:
        assert parse(**{known.name: value.upper()}) == parse()


def test_a_value_that_has_no_counterpart_is_refused_with_those_that_have():
    said = refusal(**{"cloudFiles.useIncrementalListing": "auto"})
    assert "found 'auto'; expected one of true, false" in said


def test_one_option_under_two_names_is_refused():
    said = refusal(**{"cloudFiles.format": "csv", "fileFormat": "json"})
    assert "cloudFiles.format: fileFormat is set as well" in said


def test_a_tag_of_the_user_s_own_is_known_by_its_beginning():
    said = refusal(**{"cloudFiles.resourceTag.team": "x"})
    assert "- cloudFiles.resourceTag: an option of Auto Loader that Sluice does not have" in said


def test_no_name_is_an_option_here_too_and_every_counterpart_is_one():
    assert not {name.lower() for name in KNOWN} & set(option_names())
    assert {known.here for known in KNOWN.values()} - {""} <= set(option_names().values())


def test_other_names_in_the_reference_are_accepted():
    for field in SluiceOptions.model_fields.values():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        shown = f"{extra.get('spark', '')}, {extra.get('autoLoader', '')}"
        for name in re.findall(r"[\w.]+(?= ?\(|,|$)", shown):
            if name not in option_names().values():
                assert KNOWN[name].here == field.alias, name
