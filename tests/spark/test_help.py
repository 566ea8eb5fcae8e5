"""`help()` reads like a reference: each public name says what it promises, with code that runs."""

from __future__ import annotations

import doctest
import inspect
import pydoc

import pytest

import pyspark_sluice
from pyspark_sluice import tables

pytestmark = pytest.mark.spark

PUBLIC = {
    "pyspark_sluice": pyspark_sluice,
    **{name: getattr(pyspark_sluice, name) for name in pyspark_sluice.__all__},
    **{f"tables.{name}": getattr(tables, name) for name in tables.__all__},
}
WITHOUT_EXAMPLE = {
    "errors",  # Nobody calls it; its text is the tree of errors.
    "HybridSource",  # A class to derive from; docs/sources.md has the one that a test runs.
}


@pytest.fixture
def names(spark, tmp_path):
    """What the examples take for granted."""
    from pyiceberg.catalog import load_catalog

    landing, checkpoint = tmp_path / "landing", str(tmp_path / "checkpoint")
    landing.mkdir()
    (landing / "a.json").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
    lake = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": (tmp_path / "lake").as_uri(),
    }
    catalog = load_catalog("lake", **lake)
    catalog.create_namespace("lake")
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    catalog.create_table("lake.orders", schema)
    table = str(tmp_path / "table")
    state = {"checkpointLocation": checkpoint}
    reader = spark.readStream.format("sluice").options(fileFormat="json", **state)
    landed = reader.options(writeTo=table, writeSchema="id long, name string").load(str(landing))
    whole = spark.readStream.format("sluice").options(fileFormat="binaryFile", **state)
    whole = whole.schema("path string").load(str(landing))
    now = {"availableNow": True}
    return {
        "spark": spark,
        "landing": str(landing),
        "checkpoint": checkpoint,
        "table": table,
        "manifests": str(tmp_path / "manifests"),
        "catalog": catalog,
        "writer": landed.writeStream.options(**state).trigger(**now),
        "writer_of_paths": whole.writeStream.options(**state).trigger(**now),
    }


@pytest.mark.thorough("what each example shows has tests of its own")
@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_name_runs(names, name):
    shown = PUBLIC[name]
    own = {} if inspect.ismodule(shown) else vars(inspect.getmodule(shown))
    (test,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(
        shown, name, module=False, globs={**own, **names}
    )
    assert bool(test.examples) == (name not in WITHOUT_EXAMPLE)
    said: list[str] = []
    outcome = doctest.DocTestRunner().run(test, out=said.append)
    assert outcome.failed == 0, "".join(said)


def test_help_shows_each_public_name():
    text = pydoc.plain(pydoc.render_doc(pyspark_sluice))
    # Since Python 3.13 a long signature has a line for each parameter.
    words = " ".join(text.split()).replace("( ", "(")
    for name in ("options(**values", "register(spark", "run_with_evolution(start"):
        assert f" {name}" in words, name
    assert "DefaultSource = class SluiceDataSource" in words
    assert "__getattr__" not in text
    assert {"errors", "tables", "__version__"} < set(dir(pyspark_sluice))
