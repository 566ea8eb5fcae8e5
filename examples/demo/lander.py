"""Lets the files land one by one, on a thread of its own, through all failures of the query."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path


class Lander:
    """Puts files in place atomically, evenly spread over some seconds."""

    def __init__(self, folder: Path, files: Sequence[tuple[str, bytes]], seconds: float) -> None:
        self._folder = folder
        self._files = files
        self._pause = seconds / max(1, len(files))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lander", daemon=True)
        self.landed = 0
        """Files in place so far."""

    def start(self) -> None:
        """Begin to land."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """True once everything has landed."""
        self._thread.join(seconds)
        return self.landed == len(self._files)

    def stop(self) -> None:
        """Land nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        for name, content in self._files:
            # A name with a leading dot is not ingested; renaming shows the file whole or not.
            hidden = self._folder / f".{name}"
            hidden.write_bytes(content)
            hidden.rename(self._folder / name)
            self.landed += 1
            if self._stopped.wait(self._pause):
                return
