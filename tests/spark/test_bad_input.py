"""Bad input: an error names what is wrong and the remedy, and nothing of the code behind it."""

import traceback

import pytest


def test_what_a_person_sees_ends_with_our_message_and_shows_nothing_of_our_inside(lake):
    lake.source.rmdir()
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    cases = {
        "to wait for it. More: `sluice runbook MissingPathError`.": lake.drain,
        "did you mean fileFormat?": lambda: lake.drain(fileFormt="json"),
        "exists, or pass a schema.": lambda: reader.load(str(lake.source)),
    }
    for ending, call in cases.items():
        if "schema" in ending:
            lake.source.mkdir()
        with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark wraps it in its own
            call()
        # What follows the first SQLSTATE is Spark's, and nothing else is possible there.
        text = str(caught.value).split("SQLSTATE")[0].rstrip()
        assert text.endswith(ending), text
        assert 'File "' not in text
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [f.filename for f in frames if "/pyspark_sluice/connector/" in f.filename] == []


def test_options_are_checked_when_load_is_called_and_at_the_start_where_there_is_a_schema(lake):
    def loaded(schema):
        reader = lake.spark.readStream.format("sluice").option("fileFormat", "text")
        reader = reader.schema(schema) if schema else reader
        reader = reader.option("checkpointLocation", str(lake.checkpoint))
        return reader.option("maxFilesPerTriger", "5").load(str(lake.source))

    def run():
        # Spark runs no code of Sluice when it loads.
        lake.finish(loaded("value string").writeStream.format("noop"))

    for call in (lambda: loaded(None), run):
        with pytest.raises(Exception, match="did you mean maxFilesPerTrigger") as error:
            call()
        text = str(error.value).split("SQLSTATE")[0].rstrip()
        assert text.lower().endswith(
            "  - maxfilespertriger: unknown option; did you mean maxfilespertrigger?"
        )
    assert not (lake.checkpoint / "sluice").exists(), "nothing has been claimed"
