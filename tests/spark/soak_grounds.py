"""Where a soak takes place: one machine with files on its disk, in S3 or in HDFS, or a cluster."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.stores.open_store import StateStore, open_store
from pyspark_sluice.examples.demo.driver import descendants
from pyspark_sluice.reader.direct_write.place import Place
from pyspark_sluice.reader.direct_write.unreferenced_files import sweep
from pyspark_sluice.tables.delta_table import DeltaSink
from pyspark_sluice.tests.checkpoint_meta.storage.mini_hdfs import MiniHdfs, mini_hdfs_command
from pyspark_sluice.tests.patience import wait_until
from pyspark_sluice.tests.spark.standalone import BUCKET, S3Server, StandaloneCluster

_DRIVERS = {
    "jvm": b"org.apache.spark.deploy.SparkSubmit",
    "driver python": b"python_streaming_source_runner",
}
_MACHINES = {
    "worker": b"pyspark.daemon",
    "executor": b"CoarseGrainedExecutorBackend",
    "worker machine": b"org.apache.spark.deploy.worker.Worker",
}
"""What is killed -> what its command line contains."""

_NO_DATA = ("_delta_log", "_sluice")
"""Folders of a table that have no data files."""


class OneMachine:
    """Spark in local mode; data, state and table in directories."""

    name = "one machine"
    master = "local[2,4]"
    targets: Sequence[str] = ("driver python", "jvm", "worker")
    files_a_second = 4.0

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        root.mkdir(parents=True)
        self.root = root
        self.direct = direct
        """The stream writes into a Delta table, and not into the folder `sink`."""
        self.source = str(root / "landing")
        self.table = str(root / "table")
        self.state_url = str(root / "checkpoint" / "sluice" / "source")
        self.storage_options: Mapping[str, Any] = {}
        self.options: dict[str, str] = {}
        """Of the source."""
        self.ends = contextlib.ExitStack()

    def use(self, lake: str, storage_options: Mapping[str, Any]) -> None:
        """Keep files and state below this URL."""
        self.source = f"{lake}/in"
        self.state_url = f"{lake}/state/source"
        self.storage_options = storage_options
        self.options = {
            "storageOptions": json.dumps(storage_options),
            "stateLocation": f"{lake}/state",
            "discoveryInterval": "500ms",
        }

    @cached_property
    def _state(self) -> StateStore:
        return open_store(self.state_url, self.storage_options)

    def newest_epoch(self) -> int:
        """How many incarnations of the coordinator there have been."""
        return max((int(Path(name).stem) for name in self._state.list("epochs")), default=0)

    def land(self, name: str, content: bytes) -> None:
        """Put one file in place, whole."""
        # On a busy machine both NameNodes may be away for longer than one try takes.
        wait_until(lambda: self._is_landed(name, content), name)

    def _is_landed(self, name: str, content: bytes) -> bool:
        files, folder = open_storage(self.source, self.storage_options)
        try:
            files.create(f"{folder.rstrip('/')}/{name}", content)
        except FileExistsError:
            # The answer to an earlier try was lost.
            return True
        except OSError:
            return False
        return True

    def columns(self) -> Mapping[str, Counter[Any]]:
        """The values of each column of the sink, without nulls."""
        if self.direct:
            rows = self._delta().to_pyarrow_table()
        else:
            paths = (self.root / "sink").glob("*/*.parquet")
            rows = pa.concat_tables(pq.read_table(path, partitioning=None) for path in paths)
        return {
            name: Counter(column.drop_null().to_pylist())
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        }

    def unnamed(self) -> tuple[int, int]:
        """Sweeps; then how many files were deleted, and how many are left that no table names."""
        place = Place(self.table, self.storage_options)
        swept = sweep(place, self._state, delete=True)
        uris = {uri.rpartition("/")[2] for uri in self._delta().file_uris()}
        # Next to the table's log, a record of what was read into it is in the directory.
        data = (path for path in place.files() if {*path.split("/")}.isdisjoint(_NO_DATA))
        left = {path.rpartition("/")[2] for path in data}
        return len(swept.superseded), len(left - uris)

    def _delta(self) -> DeltaTable:
        sink = DeltaSink(self.table, self.storage_options)
        return DeltaTable(self.table, storage_options=sink.client_options)

    def victims(self, target: str, driver: int) -> list[int]:
        """Processes that are `target` now."""
        return [pid for pid in descendants(driver) if _is(pid, (_DRIVERS | _MACHINES)[target])]

    def repair(self) -> None:
        """What the keeper of the ground does after a kill."""
        return

    def close(self) -> None:
        """End what this has started."""
        self.ends.close()


class InS3(OneMachine):
    """Spark in local mode; data, state and table in S3 on loopback."""

    name = "S3"

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        server = S3Server(root / "s3")
        self.ends.callback(server.kill)
        self.use(f"s3a://{BUCKET}", server.options)
        self.table = f"s3://{BUCKET}/table"


class InHdfs(OneMachine):
    """Spark in local mode; data and state in HDFS, whose two NameNodes take turns."""

    name = "HDFS"

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        self._cluster = MiniHdfs(mini_hdfs_command(), root, "pair")
        self.ends.callback(self._cluster.close)
        # By HADOOP_CONF_DIR, Spark would take paths of this machine for paths in HDFS.
        found = ET.parse(self._cluster.configuration / "core-site.xml").iter("property")
        settings = {one.findtext("name", ""): one.findtext("value", "") for one in found}
        self.use("hdfs://lake", {name: to for name, to in settings.items() if ".lake" in name})

    def repair(self) -> None:
        self._cluster.tell("failover end")


class Cluster(InS3):
    """A standalone cluster of one master and two workers; data and state in S3 on loopback."""

    name = "cluster"
    targets = ("driver python", "executor", "jvm", "worker", "worker machine")
    files_a_second = 1.5

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        try:
            self._cluster = StandaloneCluster(root / "cluster")
        except BaseException:
            self.close()
            raise
        self.ends.callback(self._cluster.kill)
        self.master = self._cluster.url
        self.options["parallelism"] = "4"

    def victims(self, target: str, driver: int) -> list[int]:
        if target in _DRIVERS:
            return super().victims(target, driver)
        return self._cluster.processes(_MACHINES[target])

    def repair(self) -> None:
        self._cluster.replace_dead_workers()


def _is(pid: int, mark: bytes) -> bool:
    with contextlib.suppress(OSError):
        return mark in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
