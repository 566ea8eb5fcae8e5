"""What counts as new, as Spark drives it."""

from __future__ import annotations

import os
from collections import Counter


def test_existing_files_changed_files_and_growing_files_each_in_a_run_of_its_own(lake):
    """One after the other over one lake, since a session is what costs here."""
    old = lake.land("old.json", range(3))
    lake.landed.clear()
    options = {"includeExistingFiles": "false", "onOverwrite": "reprocess"}
    lake.drain(**options)
    assert lake.ingested() == Counter()
    lake.land("new.json", range(10, 13))
    lake.drain(**options)
    lake.check_exactly_once()

    # The same name with other rows: read whole again, whether it was read or counted as seen.
    lake.land("new.json", range(20, 24))
    lake.land("old.json", range(30, 32))
    lake.drain(**options)
    lake.check_exactly_once()

    # From now on files grow: what is new of them is read.
    lake.drain(onOverwrite="appendTail")
    with open(old, "a", encoding="utf-8") as file:
        file.write('{"id": 40, "text": "a"}\n{"id": 41, "te')
    lake.landed.update([40])
    lake.drain(onOverwrite="appendTail")
    with open(old, "a", encoding="utf-8") as file:
        file.write('xt": "b"}\n')
        os.fsync(file.fileno())
    lake.landed.update([41])
    lake.drain(onOverwrite="appendTail")
    lake.check_exactly_once()
