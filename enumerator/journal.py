"""What one coordinator has to tell, by the standard library's logging, under `pyspark_sluice`.

Every line begins with the state directory, by which a query and its source are known on the
driver, the epoch and the newest checkpoint; the record has them as attributes, too.

Not here: where lines go (the connector sees to it if nobody else does).
"""

from __future__ import annotations

import logging
from typing import Any

from ..masking import masked


class Journal:
    """Lines of one coordinator. Any thread."""

    def __init__(self, location: str = "") -> None:
        self.location = location
        self.epoch = 0
        self.checkpoint = 0

    def info(self, name: str, message: str, *values: object) -> None:
        """What happens in the ordinary course of things; `name` is the logger's last part."""
        self._tell(logging.INFO, name, message, values)

    def warning(self, name: str, message: str, *values: object) -> None:
        """What somebody may have to do something about."""
        self._tell(logging.WARNING, name, message, values)

    def debug(self, name: str, message: str, *values: object) -> None:
        """What is only of interest to who looks for a fault."""
        self._tell(logging.DEBUG, name, message, values)

    def _tell(self, level: int, name: str, message: str, values: tuple[Any, ...]) -> None:
        log = logging.getLogger(f"pyspark_sluice.{name}")
        if log.isEnabledFor(level):
            where = (self.location, self.epoch, self.checkpoint)
            names = ("sluice_state", "sluice_epoch", "sluice_checkpoint")
            shown = [masked(str(v)) if isinstance(v, str | BaseException) else v for v in values]
            extra = dict(zip(names, where, strict=True))
            text = "[%s epoch %d checkpoint %d] " + message
            log.log(level, text, *where, *shown, extra=extra)
