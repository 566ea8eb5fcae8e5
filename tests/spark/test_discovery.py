"""Which files are read, compared with Spark's own reader over the same tree."""

import json
import os

import pytest

SCHEMA = "id long, day int"
FILES = {
    "plain/a.json": 100,
    "plain/b.json": 200,
    "plain/c.txt": 300,
    "plain/_hidden.json": 250,
    "plain/nested/d.json": 100,
    "parts/day=1/e.json": 200,
    "parts/day=2/f.json": 300,
    "more/day=2/g.json": 400,
    "more/day=30/h.json": 500,
}
"""Name -> second of its modification; the id of its one row is its place here."""

CASES = [
    (["plain"], {"pathGlobFilter": "*.{json,csv}", "recursiveFileLookup": "false"}),
    (["plain", "parts"], {"recursiveFileLookup": "true"}),
    (["plain"], {"recursiveFileLookup": "true", "pathGlobFilter": "[a-d].json"}),
    (["plain"], {"recursiveFileLookup": "false"}),
    (["parts"], {"recursiveFileLookup": "false"}),
    (["parts/day=1", "parts/day=2"], {"basePath": "parts"}),
    (["p{lai,ax}n/[ab]*"], {}),
    (["plain/?.json", "plain/c.txt"], {}),
    (["{parts,more}/day=?", "parts/day=[23]/f*"], {"recursiveFileLookup": "true"}),
    (["more/day={2,3*}"], {"basePath": "more"}),
    (["parts"], {"modifiedAfter": "1970-01-01T00:03:20", "timeZone": "UTC"}),
    (["more"], {"modifiedBefore": "1970-01-01 00:08:20Z", "timeZone": "UTC"}),
    (
        ["more"],
        {"modifiedAfter": "1970-01-01 00:06:40", "modifiedBefore": "1971", "timeZone": "UTC"},
    ),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("discovery")
    for identity, (name, second) in enumerate(FILES.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": identity, "day": None}) + "\n")
        os.utime(path, (second, second))
    return root


def rows(spark, kind, tree, paths, options):
    reader = spark.read.format(kind).option("fileFormat", "json").schema(SCHEMA)
    for name, value in options.items():
        reader = reader.option(name, f"{tree}/{value}" if name == "basePath" else value)
    found = reader.load([f"{tree}/{path}" for path in paths]).collect()
    return sorted(found, key=lambda row: row.id)


@pytest.mark.thorough("Spark lists each tree; names and partitions have tests without it")
def test_the_same_files_are_read_as_by_spark_and_have_the_same_partitions(spark, tree):
    sparks = [rows(spark, "json", tree, *case) for case in CASES]
    ours = [rows(spark, "sluice", tree, *case) for case in CASES]
    assert ours == sparks
    # What the cases choose differs, so that none of the options is without effect.
    assert all(sparks)
    assert len(set(map(str, sparks))) == 10
