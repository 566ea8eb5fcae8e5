"""One directory with the files, the tables and the checkpoints of a page, and a shell in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable

from pyspark_sluice.tests.pages import blocks


def sections(page: Path) -> dict[str, dict[str, str]]:
    """Heading -> language -> the blocks of a page in that language."""
    lines = page.read_text(encoding="utf-8").splitlines()
    headings = {n: line[3:] for n, line in enumerate(lines, 1) if line.startswith("## ")}
    found: dict[str, dict[str, str]] = {heading: {} for heading in headings.values()}
    for block in blocks(page):
        above = [n for n in headings if n < block.line]
        if above:
            section = found[headings[max(above)]]
            section[block.language] = section.get(block.language, "") + block.code + "\n"
    return found


class Night:
    """One directory with the files, the table and the checkpoint of the page."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "landing").mkdir()
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.defpath}"}

    def put(self, name, *rows):
        lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
        (self.home / "landing" / name).write_text("".join(f"{line}\n" for line in lines))

    def shell(self, text):
        """Run commands as a person would: exit code, and everything that was printed."""
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def works(self, text):
        code, output = self.shell(text)
        assert code == 0, output

    def fails(self, text, message):
        code, output = self.shell(text)
        assert code == 1, output
        self.says(output, message)

    def says(self, output, message):
        parts = [re.escape(part) for part in " ".join(message.split()).split("...")]
        assert re.search(".*".join(parts), " ".join(output.split())), output

    def rows(self, table="orders"):
        rows = DeltaTable(str(self.home / table)).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: row["id"])
