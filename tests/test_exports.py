"""What `import pyspark_sluice` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pyspark_sluice
from pyspark_sluice.tests.patience import PATIENCE


def test_every_exported_name_is_there_in_order():
    assert pyspark_sluice.__all__ == sorted(pyspark_sluice.__all__)
    assert all(hasattr(pyspark_sluice, name) for name in pyspark_sluice.__all__)


def test_nothing_heavy_is_imported_before_a_name_is_used():
    program = (
        "import sys, pyspark_sluice\n"
        "print({'pyarrow', 'pydantic', 'pyspark'} & sys.modules.keys() or 'nothing')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert run.stdout == "nothing\n"
