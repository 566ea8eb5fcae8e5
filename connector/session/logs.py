"""Where log lines go when nobody has said so.

Spark's Python processes come without any configuration of logging. Not here: what is logged.
"""

from __future__ import annotations

import logging

_LAYOUT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure_logging(level: str) -> None:
    """Write lines of `level` and above to stderr, unless somebody has configured handlers.

    A level that somebody has set stays as well.
    """
    log = logging.getLogger("pyspark_sluice")
    if log.level == logging.NOTSET:
        log.setLevel(level.upper())
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(_LAYOUT))
        log.addHandler(handler)
