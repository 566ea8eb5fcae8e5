"""Checks that files which were read in part are continued under options that count as before.

A reader commit says how far a file was read: in bytes, or, where records span lines, in rows. Under
options that count in another way, rows would be lost or come twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...checkpoint_meta.documents.reader_assignment import readers_of
from ...checkpoint_meta.documents.reader_commit import ReaderCommit, ReaderCommits
from ...checkpoint_meta.history import CheckpointHistory
from ...errors import OptionError, StateError
from ...reader.files.options import ReaderOptions
from ...reader.files.options.values import ParseMode
from ..options.model import SluiceOptions

_KINDS: Final = ("file_format", "multi_line", "wholetext", "row_tag", "record_path")
"""Options that decide what a position is."""

_OF_ROWS: Final = (
    *("header", "skip_rows", "mode", "line_sep", "comment"),
    *("sep", "quote", "escape", "unescaped_quote_handling"),
)
"""Options that decide where rows begin, or drop some: they matter where positions are numbers of
rows."""


def check_begun_files(
    history: CheckpointHistory, commits: ReaderCommits, options: SluiceOptions
) -> None:
    """Check the options against those under which files were read in part.

    Raises:
        OptionError: names the options, and such a file.
    """
    for commit, path in _begun(history, commits):
        earlier = ReaderOptions.model_validate(commit.shape.get("options", {}))
        changed = [*_changed(earlier, options)]
        if changed:
            names = [ReaderOptions.model_fields[name].alias or name for name in changed]
            raise OptionError(
                f"{', '.join(names)}: a file that was read in part cannot be continued so",
                path,
                _shown(options, changed),
                f"{_shown(earlier, changed)}, under which its first rows were read",
                "Nothing was read or stored. Start with the earlier options until the file is read "
                "to its end, then change them. If they fail in the same file, add "
                "onSplitError=return, which puts the rest of it aside.",
            )


def _begun(
    history: CheckpointHistory, commits: ReaderCommits
) -> Iterator[tuple[ReaderCommit, str]]:
    """The newest commits, each with a file of which it leaves a part."""
    for ref in reversed(history.checkpoints()):
        try:
            checkpoint = history.load(ref)
        except StateError:
            return  # The query refuses such a state by itself.
        all_commits = commits.find_all(checkpoint.identity, readers_of(checkpoint))
        for commit in all_commits:
            for part in commit.unfinished:
                if _is_begun(part.remainder):
                    yield commit, str(part.remainder["path"][0])
        if all_commits:
            return


def _is_begun(remainder: Mapping[str, Any]) -> bool:
    # Splits of a source of the user's own have other columns.
    return "path" in remainder and any(remainder.get(name, [0])[0] for name in ("start", "skip"))


def _changed(earlier: ReaderOptions, now: ReaderOptions) -> Iterator[str]:
    counts_rows = earlier.multi_line or earlier.record_path
    for name in (*_KINDS, *(_OF_ROWS if counts_rows else ())):
        if getattr(earlier, name) != getattr(now, name):
            # Until then no record was malformed, or none was dropped before and after.
            drops = {earlier.mode, now.mode} & {ParseMode.DROPMALFORMED}
            if name != "mode" or (drops and earlier.mode is not ParseMode.FAILFAST):
                yield name


def _shown(options: ReaderOptions, names: list[str]) -> str:
    values = options.model_dump(mode="json", by_alias=True, include={*names})
    return ", ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
