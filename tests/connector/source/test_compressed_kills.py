"""SIGKILL to a process that reads compressed files which cannot be entered, again and again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from pyspark_sluice.checkpoint_meta.documents.checkpoint_ref import NO_CHECKPOINT, CheckpointRef
from pyspark_sluice.enumerator import BatchLimits
from pyspark_sluice.reader.files.io import codecs
from pyspark_sluice.reader.files.io.compressed import splittable_codecs

pytestmark = pytest.mark.slow

ROWS = 20_000
SHARE = 20_000
SHARES = 4
"""The file has so many batches: most processes live for one, and a process takes a second."""


def _log(place: Path, name: str, ref: CheckpointRef, rows: list[int]) -> None:
    """As Spark's logs and an exactly-once sink: whole or not there, and the first one stays."""
    hidden, shown = place / f".{name}{ref.checkpoint}", place / f"{name}{ref.checkpoint:06}"
    hidden.write_text(json.dumps([ref.checkpoint, ref.epoch, rows]))
    if not shown.exists():
        os.replace(hidden, shown)


def _last(place: Path, name: str) -> CheckpointRef:
    found = sorted(place.glob(f"{name}*"))
    return CheckpointRef(*json.loads(found[-1].read_text())[:2]) if found else NO_CHECKPOINT


def main(root: Path) -> None:
    """One process of the query, until all is read or it is killed."""
    from pyspark_sluice.tests.connector.queries import Query

    # Each process has another release of the decoder.
    chance = random.Random()
    codecs._CHUNK = chance.randrange(100, SHARE)
    splittable_codecs._STEP = chance.randrange(1000, 100_000)
    splittable_codecs.LEAST_SHARE, splittable_codecs.SHARES = SHARE, SHARES
    query = Query(root)
    query.coordinator.close()
    query.settings["limits"] = BatchLimits(bytes=SHARE)
    query.start()
    query.done, logged = _last(root, "commit"), _last(root, "offset")
    while len(list(root.glob("commit*"))) < SHARES:
        if logged == query.done:
            logged = query.plan()
            _log(root, "offset", logged, [])
        rows = query.read(logged)
        _log(root, "sink", logged, rows)
        _log(root, "commit", logged, [])
        query.done = logged
        print("batch", flush=True)
    query.coordinator.close()


def test_every_row_is_in_the_sink_once_after_kills_at_any_moment(tmp_path):
    (tmp_path / "data").mkdir()
    chance = random.Random(5)
    lines = "".join(
        json.dumps({"id": i, "text": f"{chance.getrandbits(100):x}"}) + "\n" for i in range(ROWS)
    )
    (tmp_path / "data" / "a.json.deflate").write_bytes(zlib.compress(lines.encode()))
    module = "pyspark_sluice.tests.connector.source.test_compressed_kills"
    command = [sys.executable, "-m", module, str(tmp_path)]
    kills = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if not process.stdout.readline():
                break  # All is read.
            time.sleep(chance.random() * 0.02)
            process.kill()
            kills += 1
    assert process.returncode == 0
    assert kills >= 2
    rows = [n for path in sorted(tmp_path.glob("sink*")) for n in json.loads(path.read_text())[2]]
    assert rows == list(range(ROWS))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
