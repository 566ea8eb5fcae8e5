"""The feeds of a call: one that it names, or those of a file."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from ...errors import OptionError
from .run_arguments import DEFAULT_FILE, NEEDED, Call, RunArguments, feed_of


def in_place(arguments: RunArguments) -> RunArguments:
    """Go to the directory of the configuration file, which its relative paths start from."""
    file = arguments.config
    # As `sluice check` does.
    if not any(getattr(arguments, name) for name in NEEDED) and os.path.exists(DEFAULT_FILE):
        file = file or DEFAULT_FILE
    if not file:
        return arguments
    config = os.path.abspath(file)
    # What is not there is an error of the file, which names it.
    with suppress(OSError):
        os.chdir(os.path.dirname(config))
    return replace(arguments, config=config)


def call_of(arguments: RunArguments) -> Call:
    """The feeds that a call names, or its configuration file; nothing is looked at yet.

    Raises:
        OptionError: something is wrong with the call or with the file.
    """
    from ..host.run import check_target_name

    if arguments.config:
        # What reads files takes time to import.
        from .feeds_file import call_of_file

        return call_of_file(arguments)
    if arguments.only:
        raise OptionError("--only chooses feeds of a file", "", "no --config", "--config FILE")
    if missing := [flag for name, flag in NEEDED.items() if not getattr(arguments, name)]:
        what = "the call does not say what to read, and where to write it"
        found, expected = f"no {', '.join(missing)}", "PATH, --to and --checkpoint, or --config"
        raise OptionError(what, "", found, expected)
    check_target_name(arguments.to)
    return Call(arguments, {"": feed_of(arguments)}, {"": arguments})
