"""Messages with options and commands as the user of a host writes them, instead of Spark's way."""

from __future__ import annotations

import re
import shlex
from typing import Final

_AS_FLAGS: Final = (
    (re.compile(r"""\.option\(["'](\w+)["'], ["'](.*?)["']\)"""), r"--option '\1=\2'"),
    (re.compile(r" or a StructType before \.load\(\)(; or writeSchema)?| before \.load\(\)"), ""),
    (re.compile(r"""\.schema\(["'](.*?)["']\)"""), r"--schema '\1'"),
    (re.compile(r"\.schema\(\.\.\.\)|\bwriteSchema\b"), "--schema"),
)
_AS_OPTIONS: Final = (
    (re.compile(r"""\.option\(["'](\w+)["'], ["'](.*?)["']\)"""), r"\1=\2"),
    (re.compile(r" or a StructType before \.load\(\)(; or writeSchema)?| before \.load\(\)"), ""),
    (re.compile(r"""\.schema\(["'](.*?)["']\)"""), r"schema='\1'"),
    (re.compile(r"\.schema\(\.\.\.\)|\bwriteSchema\b"), "schema"),
)


def as_flags(text: str, checkpoint: str) -> str:
    """Write options as `sluice run` takes them, and commands with the checkpoint of the call."""
    for pattern, replacement in _AS_FLAGS:
        text = pattern.sub(replacement, text)
    return text.replace(" CHECKPOINT", f" {shlex.quote(checkpoint)}")


def as_options(text: str) -> str:
    """Write options as `pyspark_sluice.run` takes them."""
    for pattern, replacement in _AS_OPTIONS:
        text = pattern.sub(replacement, text)
    return text
