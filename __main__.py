"""`python -m pyspark_sluice`: the command line."""

from __future__ import annotations

import sys

from pyspark_sluice.connector.cli.entry import run

if __name__ == "__main__":
    sys.exit(run())
