"""A cluster whose Python lacks the package: it is shipped, and nothing else helps (no PYTHONPATH).

The other Python has all that this one has, but for the package.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.find_spark_home import _find_spark_home

from pyspark_sluice.tests.patience import output_of
from pyspark_sluice.tests.spark.standalone import StandaloneCluster
from pyspark_sluice.tests.spark.wheel import bare, lacking, pack, write_zip

pytestmark = [pytest.mark.spark, pytest.mark.drivers]

PROGRAM = Path(__file__).parent / "programs" / "shipped_query.py"
CONNECT_PROGRAM = PROGRAM.with_name("connect_query.py")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A cluster, the Python that lacks the package, and the package as a zip file."""
    home = tmp_path_factory.mktemp("shipping")
    (home / "landing").mkdir()
    for number in range(4):
        rows = [{"id": number * 10 + row, "text": "x"} for row in range(10)]
        (home / "landing" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    write_zip(home / "pyspark_sluice.zip")
    python = lacking(home)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYTHONPATH", "PACKAGES_OF_TESTS"):
            patch.delenv(name, raising=False)
        cluster = StandaloneCluster(home / "cluster", workers=1)
    yield home, cluster.url, python
    cluster.kill()


def submitted(places, how, *options, cwd=None, **environment):
    """What the program said; fails unless every row is in the table once."""
    home, url, _ = places
    name = f"{how}-{len(list(home.glob('sink-*')))}"
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.cores.max": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "700m",
        "spark.log.level": "ERROR",
    }
    command = [
        *(str(Path(_find_spark_home()) / "bin" / "spark-submit"), "--master", url),
        *(f"--conf={key}={value}" for key, value in settings.items()),
        *options,
        *(str(PROGRAM), how, str(home / "pyspark_sluice.zip"), str(home / "landing")),
        *(str(home / f"sink-{name}"), str(home / f"checkpoint-{name}")),
    ]
    said = output_of(command, cwd=cwd or home, environment=bare(**environment))
    ids = pq.read_table(home / f"sink-{name}", columns=["id"]).column("id").to_pylist()
    assert Counter(ids) == Counter(range(40))
    return said


@pytest.mark.thorough("test_cluster.py ships the zip file")
def test_a_zip_file_is_shipped_with_py_files(places):
    home, _, python = places
    # Tasks run what the driver names: neither the Python of the workers nor this setting.
    other = f"--conf=spark.executorEnv.PYSPARK_PYTHON={sys.executable}"
    package = str(home / "pyspark_sluice.zip")
    said = submitted(places, "register", "--py-files", package, other, PYSPARK_PYTHON=str(python))
    driver, _, task = said.partition("task ")
    assert "pyspark_sluice.zip/pyspark_sluice" in driver
    assert task.startswith(f"{python} ./pyspark_sluice.zip/pyspark_sluice")


@pytest.mark.thorough("the same zip file as with --py-files")
def test_a_zip_file_is_shipped_with_add_py_file(places):
    said = submitted(places, "addPyFile", PYSPARK_PYTHON=str(places[2]))
    assert "pyspark_sluice.zip/pyspark_sluice" in said.partition("task ")[2]


@pytest.mark.thorough("packs an environment; a zip file is shipped above")
def test_an_environment_is_shipped_with_archives(places):
    home, _, python = places
    archive = pack(home, python)
    said = submitted(
        places,
        "find",
        *("--archives", f"{archive}#environment"),
        cwd=archive.parent,
        PYSPARK_PYTHON="./environment/bin/python",
    )
    assert "/environment/lib/pyspark_sluice/__init__.py" in said.partition("task ")[2]


@pytest.mark.thorough("another way to the same import")
def test_an_artifact_of_spark_connect_is_enough_for_batch_reads(places, tmp_path):
    home, _, python = places
    arguments = (home / "pyspark_sluice.zip", home / "landing", tmp_path / "checkpoint")
    # Connect's usual port may be taken on a machine that runs tests.
    environment = bare(PYSPARK_PYTHON=str(python), SPARK_TESTING="1")
    command = [python, CONNECT_PROGRAM, *arguments]
    said = output_of(command, cwd=tmp_path, environment=environment)
    batch, stream = said.splitlines()[-2:]
    assert batch == "batch 40"
    assert stream.startswith("stream failed")
