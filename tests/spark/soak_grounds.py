"""Where a soak takes place: one machine with its own disk, or a cluster with everything in S3.

Not here: what is killed when (`soak.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from pyspark_sluice.checkpoint_meta.storage.open_storage import open_storage
from pyspark_sluice.checkpoint_meta.storage.storage_errors import patiently
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


class Ground(ABC):
    """Where files land, where the query runs, and what of it can be killed."""

    name: str
    targets: Sequence[str]
    files_a_second: float
    pause: float
    """Seconds between two looks for a new epoch."""

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        self.root = root
        self.direct = direct
        root.mkdir(parents=True)

    @property
    @abstractmethod
    def table_url(self) -> str:
        """Of the table of a direct write."""

    @property
    def storage_options(self) -> Mapping[str, Any]:
        """Of the table and of the state."""
        return {}

    @property
    def state(self) -> StateStore:
        """Of the query."""
        return open_store(str(self.root / "checkpoint" / "sluice" / "source"))

    def batches(self) -> int:
        """How many batches the sink has."""
        if not self.direct:
            return len(list((self.root / "sink").iterdir()))
        try:
            return int(self._table().version())
        except TableNotFoundError:
            return 0

    def ids(self) -> Counter[int]:
        """The rows that the sink has."""
        found: Counter[int] = Counter()
        if self.direct:
            return self.columns()["id"]
        for path in (self.root / "sink").glob("*/*.parquet"):
            found.update(pq.read_table(path, columns=["id"]).column("id").to_pylist())
        return found

    def columns(self) -> Mapping[str, Counter[Any]]:
        """The values of each column of the table of a direct write, without nulls."""
        rows = self._table().to_pyarrow_table()
        return {
            name: Counter(column.drop_null().to_pylist())
            for name, column in zip(rows.column_names, rows.columns, strict=True)
        }

    def unnamed(self) -> tuple[int, int]:
        """Sweeps; then how many files were deleted, and how many are left that no table names."""
        place = Place(self.table_url, self.storage_options)
        found = sweep(place, self.state, delete=True)
        uris = {uri.rpartition("/")[2] for uri in self._table().file_uris()}
        left = {path.rpartition("/")[2] for path in place.files() if "_delta_log" not in path}
        return len(found.superseded), len(left - uris)

    def _table(self) -> DeltaTable:
        sink = DeltaSink(self.table_url, self.storage_options)
        return DeltaTable(self.table_url, storage_options=sink.client_options)

    @property
    @abstractmethod
    def query(self) -> Mapping[str, object]:
        """What the program needs to know: master, source, and options for the reader."""

    @abstractmethod
    def land(self, name: str, content: bytes) -> None:
        """Put one file in place, whole."""

    @abstractmethod
    def newest_epoch(self) -> int:
        """How many incarnations of the coordinator there have been."""

    def victims(self, target: str, driver: int) -> list[int]:
        """Processes that are `target` now."""
        return [pid for pid in descendants(driver) if _is(pid, (_DRIVERS | _MACHINES)[target])]

    def repair(self) -> None:
        """What the keeper of the ground does after a kill."""
        return

    def close(self) -> None:
        """End what this has started."""
        return


class OneMachine(Ground):
    """Spark in local mode; data and state in directories."""

    name = "one machine"
    targets: Sequence[str] = ("driver python", "jvm", "worker")
    files_a_second = 4.0
    pause = 0.05

    @property
    def query(self) -> Mapping[str, object]:
        return {
            "master": "local[2,4]",
            "source": str(self.root / "landing"),
            "options": {},
            "table": self.table_url if self.direct else "",
        }

    @property
    def table_url(self) -> str:
        return str(self.root / "table")

    def land(self, name: str, content: bytes) -> None:
        target = self.root / "landing" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{target.name}")
        hidden.write_bytes(content)
        os.replace(hidden, target)

    def newest_epoch(self) -> int:
        epochs = self.root / "checkpoint" / "sluice" / "source" / "epochs"
        names = epochs.glob("[0-9]*.json") if epochs.exists() else ()
        return max((int(path.stem) for path in names), default=0)


class InS3(OneMachine):
    """Spark in local mode; data, state and table in S3 on loopback."""

    name = "S3"

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        self._ends = contextlib.ExitStack()
        self._server = S3Server(root / "s3")
        self._ends.callback(self._server.kill)
        self._files = self._server.files

    @property
    def query(self) -> Mapping[str, object]:
        options = {
            "storageOptions": self._server.storage_options,
            "stateLocation": f"s3a://{BUCKET}/state",
            "discoveryInterval": "500ms",
        }
        return {**super().query, "source": f"s3a://{BUCKET}/in", "options": options}

    @property
    def table_url(self) -> str:
        return f"s3://{BUCKET}/table"

    @property
    def storage_options(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self._server.storage_options)
        return found

    @property
    def state(self) -> StateStore:
        return open_store(f"s3://{BUCKET}/state/source", self.storage_options)

    def land(self, name: str, content: bytes) -> None:
        self._files.pipe_file(f"{BUCKET}/in/{name}", content)

    def newest_epoch(self) -> int:
        try:
            paths = self._files.ls(f"{BUCKET}/state/source/epochs", detail=False)
        except FileNotFoundError:
            return 0
        return max(int(Path(path).stem) for path in paths)

    def close(self) -> None:
        self._ends.close()


class InHdfs(OneMachine):
    """Spark in local mode; data and state in HDFS, whose two NameNodes take turns."""

    name = "HDFS"

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        self._cluster = MiniHdfs(mini_hdfs_command(), root, "pair")
        self._files, _ = open_storage("hdfs://lake/", self.storage_options)

    @property
    def storage_options(self) -> Mapping[str, Any]:
        # By HADOOP_CONF_DIR, Spark would take paths of this machine for paths in HDFS.
        found = ET.parse(self._cluster.configuration / "core-site.xml").iter("property")
        settings = {one.findtext("name", ""): one.findtext("value", "") for one in found}
        return {name: value for name, value in settings.items() if ".lake" in name}

    @property
    def query(self) -> Mapping[str, object]:
        options = {
            "storageOptions": json.dumps(self.storage_options),
            "stateLocation": "hdfs://lake/state",
            "discoveryInterval": "500ms",
        }
        return {**super().query, "source": "hdfs://lake/in", "options": options}

    @property
    def state(self) -> StateStore:
        return open_store("hdfs://lake/state/source", self.storage_options)

    def land(self, name: str, content: bytes) -> None:
        # On a busy machine both NameNodes may be away for longer than `patiently` waits.
        wait_until(lambda: self._is_landed(f"/in/{name}", content), name)

    def _is_landed(self, path: str, content: bytes) -> bool:
        try:
            self._files.create(path, content)
        except FileExistsError:
            # The answer to an earlier try was lost.
            return True
        except OSError:
            return False
        return True

    def newest_epoch(self) -> int:
        try:
            names = patiently(lambda: self._files.names("/state/source/epochs"))
        except FileNotFoundError:
            return 0
        return max((int(Path(name).stem) for name in names), default=0)

    def repair(self) -> None:
        self._cluster.tell("failover end")

    def close(self) -> None:
        self._cluster.close()


class Cluster(InS3):
    """A standalone cluster of one master and two workers; data and state in S3 on loopback."""

    name = "cluster"
    targets = ("driver python", "executor", "jvm", "worker", "worker machine")
    files_a_second = 1.5
    pause = 0.3

    def __init__(self, root: Path, *, direct: bool = False) -> None:
        super().__init__(root, direct=direct)
        try:
            self._cluster = StandaloneCluster(root / "cluster")
        except BaseException:
            self._ends.close()
            raise
        self._ends.callback(self._cluster.kill)

    @property
    def query(self) -> Mapping[str, object]:
        query = super().query
        options = {**query["options"], "parallelism": "4"}  # type: ignore[dict-item]
        return {**query, "master": self._cluster.url, "options": options}

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
