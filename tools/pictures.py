"""Draws docs/pictures/watch.svg and report.png from a feed of `sluice run`; needs Chromium.

`python tools/pictures.py` draws both. With a folder (`python tools/pictures.py --looks FOLDER`) it
also writes them as people with other screens see them: a narrow terminal, a narrow page, dark mode.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from pathlib import Path

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"

_LOOKS = 20
_ROWS = 60_000


def main() -> None:
    """Run a feed whose backlog shrinks, and take pictures of what the commands show of it."""
    from pyspark_sluice.checkpoint_meta.stores.open_store import open_store
    from pyspark_sluice.examples.demo.report.html_page import write_report

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=Path, help="write the other widths and modes into here")
    looks = parser.parse_args().looks
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        sys.exit("sluice: no Chromium on this machine")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "lake"
        feed = _Feed(home)
        state = home / "checkpoints" / "orders"
        try:
            _watched(state, 100, PICTURES / "watch.svg", _LOOKS)
            if looks:
                looks.mkdir(parents=True, exist_ok=True)
                _watched(state, 120, looks / "watch-120.svg", 5)
                _watched(state, 50, looks / "watch-50.svg", 5)
            page = home / "report.html"
            write_report(open_store(str(state / "sluice" / "source")), page)
        finally:
            feed.stop()
        _shot(browser, page, PICTURES / "report.png", 900, 1500, dark=False)
        if looks:
            for path in looks.glob("watch-*.svg"):
                _shot(browser, path, path.with_suffix(".png"), 1240, 700, dark=False)
            for width in (1300, 500):
                for mode in ("light", "dark"):
                    target = looks / f"report-{width}-{mode}.png"
                    _shot(browser, page, target, width, 2300, dark=mode == "dark")


class _Feed:
    """`sluice run` with a backlog of JSON files, four of which it reads a batch; more arrive."""

    def __init__(self, home: Path) -> None:
        self._landing = home / "landing"
        self._landing.mkdir(parents=True)
        for number in range(400):
            _land(self._landing, number)
        (self._landing / "order-0003.json").write_text('{"id": 1, "country": "CH"\n')
        options = ("maxFilesPerTrigger=4", "onSplitError=return", "mode=FAILFAST")
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "pyspark_sluice", "run", str(self._landing),
                "--to", f"delta:{home / 'orders'}", "--every", "2s", "--schema", "id long",
                "--checkpoint", str(home / "checkpoints" / "orders"),
                *(word for option in options for word in ("--option", option)),
            ]
        )  # fmt: skip
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 400
        while not self._stopped.wait(1.0):
            _land(self._landing, number)
            number += 1

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._process.terminate()
        self._process.wait(60)


@functools.cache
def _text(rows: int) -> str:
    return "".join(f'{{"id": {at}}}\n' for at in range(rows))


def _land(landing: Path, number: int) -> None:
    hidden = landing / f".order-{number:04}"
    hidden.write_text(_text(_ROWS + 6_000 * (number % 7)))
    hidden.rename(landing / f"order-{number:04}.json")


def _watched(state: Path, columns: int, target: Path, looks: int) -> None:
    """The last look of `sluice watch` in a terminal of so many columns."""
    from rich.console import Console
    from rich.text import Text

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = ["watch", str(state), "--interval", "1", "--count", str(looks)]
    process = subprocess.Popen(
        [sys.executable, "-m", "pyspark_sluice", *command],
        stdin=its, stdout=its, stderr=its,
        env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
    )  # fmt: skip
    os.close(its)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    if process.wait(60):
        sys.exit(f"sluice: watch ended with {process.returncode}: {shown[-500:]!r}")
    # Each look begins by clearing the lines of the one before.
    frame = shown.decode().replace("\r\n", "\n").rpartition("\x1b[2K")[2].replace("\x1b[?25h", "")
    screen = Console(record=True, width=columns, file=open(os.devnull, "w"))  # noqa: SIM115
    screen.print(Text.from_ansi(frame.rstrip("\n")))
    screen.save_svg(str(target), title="sluice watch")


def _shot(browser: str, page: Path, target: Path, width: int, height: int, *, dark: bool) -> None:
    subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={page.parent / '.browser'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width},{height}", f"--screenshot={target}", page.as_uri(),
        ],
        check=True, timeout=120, capture_output=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
