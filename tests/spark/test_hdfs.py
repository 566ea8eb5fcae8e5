"""Queries of Spark with data, state and sink on HDFS, alone and on YARN."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.patience import PATIENCE, output_of
from pyspark_sluice.tests.spark.versions import FOR_RUNS_THAT_END
from pyspark_sluice.tests.spark.wheel import bare, lacking, pack
from pyspark_sluice.tests.thorough import HDFS

PROGRAM = Path(__file__).parent / "programs" / "shipped_query.py"
# YARN's containers get Spark's own zip file of PySpark.
HOME = Path(pyspark.__file__).parent
YARN = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
}
PYTHON = "./environment/bin/python"


def test_a_query_with_state_data_and_sink_on_hdfs_goes_on_where_it_stopped(hdfs, spark):
    home = f"hdfs://{hdfs.authority}/spark"
    files, root = open_storage(home, {})
    landed = Counter[int]()
    for number in range(3):
        ids = range(number * 10, number * 10 + 10)
        lines = "".join(json.dumps({"id": i, "text": f"row {i}"}) + "\n" for i in ids)
        files.create(f"{root}/in/{number} %.json", lines.encode())
        landed.update(ids)
        reader = spark.readStream.format("sluice").schema(
            "id long, _metadata struct<file_path: string>"
        )
        given = {"fileFormat": "json", "checkpointLocation": f"{home}/ck", **FOR_RUNS_THAT_END}
        given |= {"cleanSource": "archive", "sourceArchiveDir": f"{home}/archive"}
        given |= {"cleanSourceRetention": "0s", "cleanSourceWhileRetained": "true"}
        rows = reader.options(**given).load(f"{home}/in").select("id", "_metadata.file_path")
        writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{home}/ck")
        query = writer.trigger(availableNow=True).start(f"{home}/sink")
        assert query.awaitTermination(PATIENCE)
    seen = spark.read.parquet(f"{home}/sink").collect()
    assert Counter(row.id for row in seen) == landed
    assert {row.file_path for row in seen} == {f"{home}/in/{n}%20%25.json" for n in range(3)}
    # What the first run has read was moved; what the newest batch has read may be read again.
    assert f"{root}/archive/0 %.json" in set(files.files(f"{root}/archive"))
    assert spark.read.format("sluice").option("fileFormat", "json").load(f"{home}/in").count() > 0


@HDFS
@pytest.mark.spark
@pytest.mark.drivers
def test_a_query_resumes_in_cluster_mode_after_client_mode(tmp_path):
    archive = pack(tmp_path, lacking(tmp_path))
    cluster = MiniHdfs(
        mini_hdfs_command(), tmp_path, "yarn", *(f"{key}={value}" for key, value in YARN.items())
    )
    try:
        url = f"hdfs://{cluster.authority}"
        files, _ = open_storage(url, {})
        for number, mode in enumerate(("client", "cluster")):
            for part in range(4):
                ids = range(number * 40 + part * 10, number * 40 + part * 10 + 10)
                lines = "\n".join(json.dumps({"id": i, "text": "x"}) for i in ids)
                files.create(f"/in/{number}-{part}.json", lines.encode())
            submit(cluster, archive, mode, url)
        written = [name for name in files.files("/sink") if name.endswith(".parquet")]
        tables = [pq.read_table(pa.BufferReader(files.whole(name))) for name in written]
        ids = pa.concat_tables(tables).column("id").to_pylist()
        assert Counter(ids) == Counter(range(80))
    finally:
        cluster.close()


def submit(cluster, archive, mode, url):
    """Run the program to its end, in the directory that has the unpacked environment."""
    settings = {
        "spark.yarn.jars": f"local:{HOME}/jars/*",
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": PYTHON,
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "700m",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    if mode == "cluster":
        del settings["spark.driver.host"]
    places = [f"{url}/{name}" for name in ("in", "sink", "checkpoint")]
    command = [
        *(str(HOME / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
        *(f"--conf={key}={value}" for key, value in settings.items()),
        *("--archives", f"{archive}#environment"),
        *(str(PROGRAM), "find", "", *places),
    ]
    environment = bare(SPARK_HOME=str(HOME), HADOOP_CONF_DIR=str(cluster.configuration))
    if mode == "client":
        environment["PYSPARK_PYTHON"] = PYTHON
    output_of(command, cwd=archive.parent, environment=environment)
