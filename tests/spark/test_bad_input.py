"""Bad input: an error that names file, position, what was expected and the way out; repaired, a
restart loses nothing."""

from __future__ import annotations

import os
import traceback

import pytest

from pyspark_sluice.tests.patience import PATIENCE


def _fails(lake, *parts, **options):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark wraps it in its own
        lake.drain(**options)
    text = str(caught.value)
    for part in parts:
        assert part in text, text[-3000:]
    return text


def test_a_directory_that_does_not_exist_is_named(lake):
    lake.source.rmdir()
    _fails(lake, "MissingPathError", str(lake.source), "failOnMissingPath=false")
    lake.land("0.json", range(10))
    lake.drain()
    lake.check_exactly_once()


def test_a_directory_that_cannot_be_listed_is_named(lake):
    lake.land("0.json", range(10))
    # As root every directory can be read, but nobody can resolve a loop of links.
    loop = lake.source / "loop"
    loop.symlink_to(loop)
    _fails(lake, "SourceUnavailable", str(loop), "Repair access", discoveryAttempts=1)
    loop.unlink()
    lake.drain()
    lake.check_exactly_once()


def test_a_file_that_vanishes_between_discovery_and_reading(lake):
    path = lake.land("0.json", range(10))
    lake.land("1.json", range(10, 20))
    saved = path.read_bytes()

    vanish = [True]

    def sink(frame, batch_id):
        if batch_id == 1 and vanish:
            path.unlink(missing_ok=True)
        frame.write.mode("append").parquet(str(lake.sink / str(batch_id)))

    os.utime(path, (2_000_000_000, 2_000_000_000))  # the newest, so in the second batch

    def run():
        writer = lake.frame(maxFilesPerTrigger=1).writeStream.foreachBatch(sink)
        writer = writer.trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
        assert query.awaitTermination(PATIENCE)

    with pytest.raises(Exception, match="FileVanishedError") as caught:
        run()
    assert str(path) in str(caught.value)
    assert "ignoreMissingFiles" in str(caught.value)

    vanish.clear()
    path.write_bytes(saved)
    run()
    folders = [str(folder) for folder in sorted(lake.sink.iterdir())]
    rows = lake.spark.read.parquet(*folders).collect()
    assert sorted(row.id for row in rows) == list(range(20))


def test_a_truncated_json_line(lake):
    lake.land("0.json", range(10))
    bad = lake.source / "1.json"
    bad.write_text('{"id": 10, "text": "row 10"}\n{"id": 11, "te')
    _fails(lake, "MalformedDataError", f"{bad}, byte ")
    lake.land("1.json", range(10, 20))
    lake.drain()
    lake.check_exactly_once()


def test_a_parquet_file_cut_in_half(lake, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = tmp_path / "whole.parquet"
    table = pa.table({"id": list(range(1000)), "text": [f"row {i}" for i in range(1000)]})
    pq.write_table(table, whole)
    lake.landed.update(range(1000))
    data = whole.read_bytes()
    target = lake.source / "0.parquet"
    target.write_bytes(data[: len(data) // 2])
    _fails(lake, "MalformedDataError", str(target), fileFormat="parquet")
    target.write_bytes(data)
    lake.drain(fileFormat="parquet")
    lake.check_exactly_once()


def test_a_schema_that_does_not_fit_the_file(lake):
    bad = lake.source / "0.json"
    bad.write_text('{"id": "not a number", "text": "x"}\n')
    text = _fails(lake, str(bad))
    assert "SchemaMismatchError" in text or "MalformedDataError" in text
    lake.land("0.json", range(10))
    lake.drain()
    lake.check_exactly_once()


def test_bad_options_fail_the_query_with_all_of_them_named(lake):
    text = _fails(lake, "OptionError", maxFilesPerTrigger="many", fileFormt="json")
    assert "maxFilesPerTrigger: found 'many'" in text
    assert "did you mean fileFormat?" in text


def test_without_a_schema_the_error_says_how_to_give_one(lake):
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    with pytest.raises(Exception, match="no schema was passed"):
        reader.option("checkpointLocation", str(lake.checkpoint)).load(str(lake.source))


def test_what_a_person_sees_ends_with_our_message_and_shows_nothing_of_our_inside(lake):
    lake.source.rmdir()
    reader = lake.spark.readStream.format("sluice").option("fileFormat", "json")
    reader = reader.option("checkpointLocation", str(lake.checkpoint))
    cases = {
        "failOnMissingPath=false to wait for it.": lake.drain,
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


@pytest.mark.parametrize("way", ["readStream", "read"])
def test_options_are_checked_when_load_is_called_and_at_the_start_where_there_is_a_schema(
    lake, way
):
    def loaded(schema):
        reader = getattr(lake.spark, way).format("sluice").option("fileFormat", "text")
        reader = reader.schema(schema) if schema else reader
        reader = reader.option("checkpointLocation", str(lake.checkpoint))
        return reader.option("maxFilesPerTriger", "5").load(str(lake.source))

    def run():
        frame = loaded("value string")  # Spark runs no code of Sluice here
        if way == "read":
            return frame.collect()
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        query = lake.run(writer.option("checkpointLocation", str(lake.checkpoint)))
        return query.awaitTermination(PATIENCE)

    for call in (lambda: loaded(None), run):
        with pytest.raises(Exception, match="did you mean maxFilesPerTrigger") as error:
            call()
        text = str(error.value).split("SQLSTATE")[0].rstrip()
        assert text.lower().endswith(
            "  - maxfilespertriger: unknown option; did you mean maxfilespertrigger?"
        )
    assert not (lake.checkpoint / "sluice").exists(), "nothing has been claimed"
