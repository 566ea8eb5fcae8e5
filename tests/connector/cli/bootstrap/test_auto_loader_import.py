"""`sluice import-auto-loader`: an export of its state says what is not read again."""

from urllib.parse import quote

import pytest

from pyspark_sluice.checkpoint_meta.documents.query_records import find_seed
from pyspark_sluice.tests.connector.cli.bootstrap.imports import (
    ODD,
    imported,
    landed,
    rows_of,
    written,
)
from pyspark_sluice.tests.connector.queries import drained


def from_auto_loader(root, capsys, export, *arguments, code=0):
    places = (export, root / "data", root / "new")
    return imported(root, capsys, "import-auto-loader", *places, *arguments, code=code)


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_what_auto_loader_has_committed_is_not_read_again(tmp_path, capsys, ending):
    paths = landed(tmp_path, [*ODD, "pending.json", "new.json"])
    export = written(tmp_path, rows_of(paths[:-1], paths[:-2]), ending)
    told, new = from_auto_loader(tmp_path, capsys, export, "--yes")
    assert told["counts"]["matched"] == len(ODD)
    assert told["unfinished"] == [str(paths[-2])]
    assert told["not_listed"] == [str(paths[-1])]
    assert drained(new) == [len(ODD), len(ODD) + 1]
    assert find_seed(new.store).origin["export"] == str(export)


def test_an_export_without_times_of_commit_is_refused_unless_all_was_processed(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    export = written(tmp_path, rows_of(paths, []), ".csv")
    said = from_auto_loader(tmp_path, capsys, export, "--yes", code=2)
    assert "does not show which files were processed" in said
    told, new = from_auto_loader(tmp_path, capsys, export, "--all-processed", "--yes")
    assert told["counts"]["matched"] == 2
    assert drained(new) == []


def test_the_newest_version_of_a_file_counts_and_one_of_another_size_has_changed(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    older, newer = rows_of(paths[:1], paths), rows_of(paths, [paths[1]])
    older[0]["create_time"] = "2998-01-01T00:00:00.000Z"
    newer[1]["size"] += 1
    export = written(tmp_path, [*newer, *older], ".parquet")
    told, _ = from_auto_loader(tmp_path, capsys, export)
    assert (told["unfinished"], told["changed"]) == ([str(paths[0])], [str(paths[1])])


def test_of_several_sources_of_an_export_one_has_to_be_named(tmp_path, capsys):
    paths = landed(tmp_path, ["a.json", "b.json"])
    rows = rows_of(paths, paths)
    rows[1]["source_id"] = "1"
    export = written(tmp_path, rows, ".csv")
    assert "--source-id" in from_auto_loader(tmp_path, capsys, export, code=2)
    told, _ = from_auto_loader(tmp_path, capsys, export, "--source-id", "1")
    assert told["not_listed"] == [str(paths[0])]


def test_paths_as_in_urls_and_beginnings_of_another_mount(tmp_path, capsys):
    paths = landed(tmp_path, ["a b.json", "c.json"])
    rows = rows_of(paths, paths)
    for row, path in zip(rows, paths, strict=True):
        row["path"] = f"dbfs:/mnt/in/{quote(path.name)}"
    export = written(tmp_path, rows, ".csv")
    rewrite = f"dbfs:/mnt/in=file://{tmp_path}/data"
    told, _ = from_auto_loader(tmp_path, capsys, export, "--rewrite", rewrite, "--quoted-paths")
    assert told["counts"]["matched"] == 2


@pytest.mark.parametrize("text", ["size\n3\n", "path,create_time,commit_time\na,noon,1\n", ""])
def test_what_is_no_export_is_refused_by_name(tmp_path, capsys, text):
    landed(tmp_path, ["a.json"])
    export = tmp_path / "export.csv"
    if text:
        export.write_text(text)
    assert str(export) in from_auto_loader(tmp_path, capsys, export, code=2)
