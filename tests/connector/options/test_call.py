"""Options as an object: checked by the model that checks them when a query starts."""

import inspect
import re
from pathlib import Path

import pytest

import pyspark_sluice
from pyspark_sluice.connector.options.call import checked, inferred_types
from pyspark_sluice.connector.options.model import option_names, parse_options
from pyspark_sluice.errors import OptionError
from pyspark_sluice.tools import option_types


def test_names_of_both_kinds_become_what_spark_takes(tmp_path):
    made = pyspark_sluice.options(
        fileFormat="csv",
        max_files_per_trigger=500,
        header=True,
        freshShare=0.25,
        discovery_interval="2s",
        storage_options={"anon": True},
        timestamp_ntz_format="yyyy",
        checkpoint_location=str(tmp_path),
    )
    assert made == {
        "fileFormat": "csv",
        "maxFilesPerTrigger": "500",
        "header": "true",
        "freshShare": "0.25",
        "discoveryInterval": "2s",
        "storageOptions": '{"anon": true}',
        "timestampNTZFormat": "yyyy",
        "checkpointLocation": str(tmp_path),
    }
    options = parse_options({"path": "/in", **made}, streaming=True)
    assert (options.max_files_per_trigger, options.header) == (500, True)
    assert options.storage_options == {"anon": True}


def test_lists_and_paths_are_written_as_their_options_want_them():
    made = checked({"paths": ["/a,b", "/c"], "writeTo": Path("/out"), "write_sort_by": ["x", "y"]})
    options = parse_options(made, streaming=False)
    assert options.path == r"/a\,b,/c"
    assert (options.write_to, options.write_sort_by) == ("/out", ["x", "y"])


@pytest.mark.parametrize(
    "given",
    [
        {"maxFilePerTrigger": "3"},
        {"maxFilesPerTrigger": "many"},
        {"on_split_error": "ignore"},
        {"header": "true"},
        {"cloudFiles.useNotifications": "true"},
        {"pathGlobFilter": "["},
    ],
)
def test_what_is_wrong_is_reported_as_when_the_query_starts(given):
    in_camel_case = {
        option_names().get(name.lower().replace("_", ""), name): text
        for name, text in given.items()
    }
    with pytest.raises(OptionError) as at_the_start:
        parse_options({"path": "/in", **in_camel_case}, streaming=False)
    with pytest.raises(OptionError) as here:
        checked(given)
    assert str(here.value) == str(at_the_start.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_file_per_trigger": 3}, "max_file_per_trigger: unknown option; did you mean"),
        ({"fileFormat": "csv", "file_format": "csv"}, "file_format: fileFormat is set as well"),
        ({"maxFilesPerTrigger": None}, "maxFilesPerTrigger: found NoneType; expected text, a"),
        ({"formatOptions": {"a": object()}}, "formatOptions: found dict; expected"),
        ({"maxFilesPerTrigger": [3]}, "maxFilesPerTrigger: found '[3]'; expected: a whole number"),
        ({"header": 2.5}, "header: found '2.5'; expected: true or false"),
    ],
)
def test_what_python_alone_can_get_wrong_is_named(given, told):
    with pytest.raises(OptionError, match=re.escape(told)):
        checked(given)


def test_a_type_checker_refuses_what_the_model_refuses():
    # It would call these comments unused if it accepted the lines.
    with pytest.raises(OptionError, match="did you mean maxFilesPerTrigger"):
        pyspark_sluice.options(maxFilePerTrigger=3)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="header: found 'perhaps'"):
        pyspark_sluice.options(header="perhaps")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="cleanSource: found 'burn'"):
        pyspark_sluice.options(clean_source="burn")  # type: ignore[arg-type]


def test_the_types_for_editors_are_those_of_the_model():
    types = option_types.TARGET.read_text(encoding="utf-8")
    assert types == option_types.source()
    assert set(option_names().values()) <= set(re.findall(r"^    (\w+): ", types, re.MULTILINE))
    parameters = inspect.signature(pyspark_sluice.options).parameters
    assert "Unpack[OptionTypes]" in str(parameters["values"].annotation)


def test_types_are_inferred_for_formats_whose_files_may_have_any():
    assert inferred_types("Feather") == inferred_types("json") == {"inferColumnTypes": "true"}
    for name in ("text", "TEXT", "binaryFile", "package.module:Format"):
        assert inferred_types(name) == {}
