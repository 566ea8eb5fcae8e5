"""`python -m examples.demo.report STATE [PAGE]` writes the page of a state."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyspark_sluice.connector.cli.arguments import find_state
from pyspark_sluice.errors import SluiceError

from .html_page import write_report


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 after an error."""
    state, *page = arguments
    try:
        print(write_report(find_state(state, "", ""), *page or ["sluice-report.html"]))
    except SluiceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
