"""`sluice check`: whether a configuration file is right, and its places can be used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Annotated, Any, Final

from ....checkpoint_meta.storage.storage_errors import may_pass
from ....checkpoint_meta.storage.urls import hadoop_path
from ....checkpoint_meta.stores.open_store import open_store
from ....enumerator.files.discovery.tree_discovery import all_files
from ....tables.table_sink import TableSink
from ...host.feeds import Feed
from ...host.run import check_target_name, checked_with_target
from ...options.call import checked
from ...options.model import SluiceOptions, parse_options
from ...source.discovery import make_listing
from ...source.rehearsal import checked_schema, removes_rows
from ...source.state_location import open_state
from ..answer import Answer, Exit, Verbatim, told
from ..arguments import flag, setting
from ..doctor_checks import check_local_directory, left_as_it_was, tried
from ..feeds_file import schema
from ..run_arguments import DEFAULT_FILE, RunArguments
from .run import call_of, in_place

_PATIENCE: Final = 55.0
"""Seconds after which a place does not answer."""


@dataclass(frozen=True)
class PlaceFinding:
    """One place of a feed: what was found there, or why it cannot be used."""

    feed: str
    place: str
    """The key that names it: path, checkpoint or to."""

    is_fine: bool
    found: str
    code: Exit = Exit.FINE

    def __str__(self) -> str:
        verdict = "ok" if self.is_fine else "failed"
        return f"{self.feed}: {self.place}: {verdict}: {self.found}"

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {**asdict(self), "code": int(self.code)}


def check_places(feeds: Mapping[str, Feed]) -> Iterator[PlaceFinding]:
    """Look at the places of all feeds at the same time; what is created for it is deleted again.

    A place that has not answered after a minute is reported so; the look at it goes on in a thread
    that ends with the process.
    """
    looks: dict[tuple[str, str], Callable[[], str]] = {}
    with ExitStack() as directories:
        for name, feed in feeds.items():
            looks[name, "path"] = partial(_look_at_input, feed)
            looks[name, "checkpoint"] = partial(_look_at_state, feed)
            looks[name, "to"] = partial(_look_at_table, feed)
            options = _options_of(feed)
            # All before the first look: places have directories in common.
            for place in (options.checkpoint_location, options.write_to):
                directories.enter_context(left_as_it_was(place or ""))
        yield from _answers(looks)


def _answers(looks: Mapping[tuple[str, str], Callable[[], str]]) -> Iterator[PlaceFinding]:
    answers = SimpleQueue[PlaceFinding]()
    for (name, place), look in looks.items():
        Thread(target=_look, args=(answers, name, place, look), daemon=True).start()
    deadline = time.monotonic() + _PATIENCE
    waiting = dict.fromkeys(looks)
    while waiting:
        try:
            finding = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        del waiting[finding.feed, finding.place]
        yield finding
    for name, place in waiting:
        found = f"no answer within {_PATIENCE:.0f} s"
        yield PlaceFinding(name, place, is_fine=False, found=found, code=Exit.BUSY)


def _look(
    answers: SimpleQueue[PlaceFinding], feed: str, place: str, look: Callable[[], str]
) -> None:
    try:
        answers.put(PlaceFinding(feed, place, is_fine=True, found=look()))
    except Exception as error:  # noqa: BLE001 - each library of a table has errors of its own
        code = Exit.BUSY if may_pass(error) else Exit.FOUND
        answers.put(PlaceFinding(feed, place, is_fine=False, found=told(error), code=code))


def _options_of(feed: Feed) -> SluiceOptions:
    # A catalog says later where its table is; what is at the root is not created.
    place = check_target_name(str(feed.to)) or "/"
    return parse_options(checked({"writeTo": place, **feed.options}), streaming=True)


def _look_at_input(feed: Feed) -> str:
    options = _options_of(feed)
    first = list(islice(all_files(make_listing(options)), 1))
    return f"{first[0].path} and others, if any" if first else "no files yet"


def _look_at_state(feed: Feed) -> str:
    options = _options_of(feed)
    place = hadoop_path(options.checkpoint_location or "")
    for each in {place, open_state(options).location}:
        check_local_directory(each)
    return tried(open_store(place, options.storage_options))


def _look_at_table(feed: Feed) -> str:
    texts, target = checked_with_target(feed.options, feed.to)
    options = parse_options(texts, streaming=True, names_format=True)
    target.check_place()
    identity = target.sink.identity() if isinstance(target.sink, TableSink) else ""
    if options.write_schema:
        # What the file says is enough: no row is read.
        checked_schema(options, target.sink)
    elif removes_rows(options) and isinstance(target.sink, TableSink):
        target.sink.check_removal(options.write_file_column)
    written = tried(open_store(options.write_to or "", options.storage_options, to_read=True))
    return f"{f'table {identity}' if identity else 'no table yet'}, {written}"


def check(
    config: Annotated[
        str, setting("FILE", "Check this configuration file of `sluice run`.")
    ] = DEFAULT_FILE,
    json_schema: Annotated[
        bool, flag("--json-schema", "Print the JSON schema of such files, for editors.")
    ] = False,
) -> Generator[str, None, Answer]:
    """Check a configuration file and its places.

    Reads no rows, and leaves nothing behind. Ends with 2 if the file is wrong, with 1 if a place
    refuses, and with 75 if one does not answer.
    """
    if json_schema:
        return Answer(schema(), [Verbatim(json.dumps(schema(), indent=2))])
    findings = []
    for finding in check_places(call_of(in_place(RunArguments(config=config))).feeds):
        findings.append(finding)
        yield str(finding)
    # No rows say nothing in addition to the lines above.
    codes = {finding.code for finding in findings} - {Exit.FINE}
    return Answer([finding.document() for finding in findings], (), min(codes, default=Exit.FINE))
