"""Uploads one file and prints by how many bytes the memory of this process grew at most."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from pyspark_sluice.reader.direct_write.place import Place


def memory() -> int:
    """Without pages of files, which the system can take back at any time."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def main() -> None:
    """See above."""
    url, options, name, megabytes = sys.argv[1:]
    draft = Place(url, json.loads(options)).begin(name)
    for _ in range(int(megabytes)):
        draft.sink.write(bytes(1024 * 1024))
    before, most, over = memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.002):
            most = max(most, memory())

    watching = threading.Thread(target=watch)
    watching.start()
    draft.publish()
    over.set()
    watching.join()
    print(most - before)


if __name__ == "__main__":
    main()
