"""Messages with options and commands as the user of a host writes them, instead of Spark's way."""

from __future__ import annotations

import re
import shlex
from typing import Final

_TEXTS: Final = (
    (
        r"""\.option\(["'](\w+)["'], ["'](.*?)["']\)""",
        r"--option '\1=\2'",
        r"\1=\2",
    ),
    (r" or a StructType before \.load\(\)(; or writeSchema)?| before \.load\(\)", "", ""),
    (r"""\.schema\(["'](.*?)["']\)""", r"--schema '\1'", r"schema='\1'"),
    (r"\.schema\(\.\.\.\)|\bwriteSchema\b", "--schema", "schema"),
)
"""Spark's way as a pattern, that of `sluice run`, and that of `pyspark_sluice.run`."""


def as_flags(text: str, checkpoint: str) -> str:
    """Write options as `sluice run` takes them, and commands with the checkpoint of the call."""
    for pattern, flag, _ in _TEXTS:
        text = re.sub(pattern, flag, text)
    return text.replace(" CHECKPOINT", f" {shlex.quote(checkpoint)}")


def as_options(text: str) -> str:
    """Write options as `pyspark_sluice.run` takes them."""
    for pattern, _, option in _TEXTS:
        text = re.sub(pattern, option, text)
    return text
