"""Spark on YARN with data, state and sink on HDFS: an archive brings the package."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.patience import PATIENCE
from pyspark_sluice.tests.spark.shipping import bare, lacking, pack
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
    ran = subprocess.run(
        [
            *(str(HOME / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode),
            *(f"--conf={key}={value}" for key, value in settings.items()),
            *("--archives", f"{archive}#environment"),
            *(str(PROGRAM), "find", "", *places),
        ],
        env=bare(
            SPARK_HOME=str(HOME),
            HADOOP_CONF_DIR=str(cluster.configuration),
            **({"PYSPARK_PYTHON": PYTHON} if mode == "client" else {}),
        ),
        cwd=archive.parent,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-6000:]
