"""Writes the report without the command line: `python -m pyspark_sluice.connector.report STATE`."""

from __future__ import annotations

import sys

from ...checkpoint_meta.stores.open_store import open_store
from ...errors import SluiceError, of_system
from .html_page import write_report


def main(arguments: list[str]) -> int:
    """Write the page; 2 for a wrong call, 1 where it cannot be made."""
    if not 1 <= len(arguments) <= 2:
        sys.stderr.write("usage: python -m pyspark_sluice.connector.report STATE [TARGET]\n")
        return 2
    target = arguments[1] if len(arguments) == 2 else "sluice-report.html"
    try:
        path = write_report(open_store(arguments[0]), target)
    except (SluiceError, OSError) as error:
        sys.stderr.write(f"{of_system(error) if isinstance(error, OSError) else error}\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
