"""Each remedy of `remedy_table`, from the error to right rows."""

import os
import re
import shlex
from collections import Counter

import pytest

from pyspark_sluice.connector.cli.app import main
from pyspark_sluice.tests.connector.host.call import Call
from pyspark_sluice.tests.connector.host.places import named, pattern, places
from pyspark_sluice.tests.connector.host.remedy_commands import COMMANDS
from pyspark_sluice.tests.connector.host.remedy_reasons import FOLLOWED, REASONS
from pyspark_sluice.tests.connector.host.remedy_table import DATA
from pyspark_sluice.tests.repository import ROOT

pytestmark = pytest.mark.slow


def _put(call, files):
    for name, content in files.items():
        path = call.query.source / name
        if content is None:
            path.rmdir() if name.endswith("/") else path.unlink()
        else:
            call.put(name, content)


def _prepare(query, place):
    """What no text of a file can be."""
    if "form a cycle" in place:
        (query.source / "a" / "loop").symlink_to(query.source / "a")
    if "too long to be one value" in place:
        os.truncate(query.source / "1.bin", 2**31)
    if "own files" in place:
        (query.source / "own").symlink_to(query.table)
        query.table.mkdir()
    if "was replaced" in place:
        (query.source / "new").rename(query.source / "1.txt")
    if "cannot be listed" in place:
        query.source.rmdir()
        query.source.symlink_to(query.source)
    if "the state store failed" in place:
        query.checkpoint.touch()
    if "cannot be opened" in place:
        query.table.touch()
    if "changed since discovery" in place:
        Call(query).run("maxSplitBytes=256k", code=1)
        (query.source / "2.json").write_text('{"id": 3}\n')
    if "the path does not exist" in place:
        query.source.rmdir()


@pytest.mark.parametrize("case", DATA, ids=lambda case: case.place)
def test_what_the_message_says_leads_to_right_rows(query, case):
    def given(options):
        places = {"{in}": str(query.source), "{ck}": str(query.checkpoint)}
        for name, value in places.items():
            options = [option.replace(name, value) for option in options]
        return options

    call = Call(query, fmt=case.fmt, schema=case.schema)
    if case.before:
        _put(call, case.before)
        call.run(*given(case.options))
    _put(call, case.files)
    _prepare(query, case.place)
    # Before a command that needs a stopped query, the run is in another process.
    run = query.run if callable(case.follow) else query.run_here
    flags = [flag for o in given([*case.options, *case.wrong]) for flag in ("--option", o)]
    answer, _, message = run(*call.arguments, *flags, schema=call.schema)
    assert answer != 0
    assert re.search(pattern(named(case.place)), message), message
    assert case.says in message, message
    more = []
    if callable(case.follow):
        case.follow(call, message)
    elif isinstance(case.follow, str):
        more = shlex.split(case.follow)
        for option in more:
            # The text names the option, and where it says so, its value.
            assert option.partition("=")[0] in message, message
    else:
        _put(call, case.follow)
    call.schema = case.corrected or call.schema
    call.run(*given([*case.options, *more]))
    if case.rows:
        assert call.rows() == sorted(case.rows, key=str)


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case.place)
def test_the_command_that_a_message_leads_to_works(query, case, capsys):
    call = Call(query, "--option", "recursiveFileLookup=true")
    call.put("2026-11-27/1.json", '{"id": 1}\n')
    call.run()
    call.put("2.json", '{"id": 2}\n')
    call.run(apart=True)
    if case.gone:
        (query.source / case.gone).unlink()

    def command(line):
        places = {"CK": query.checkpoint, "IN": query.source, "TABLE": query.table}
        places |= {"NEW": query.source.parent / "new", "delta:TABLE": f"delta:{query.table}"}
        run = ["run", "IN", "--to", "delta:TABLE", "--checkpoint", "CK"]
        run += ["--option", "recursiveFileLookup=true"]
        words = [w for word in line.split() for w in (run if word == "RUN" else [word])]
        code = main([str(places.get(word, word)) for word in words])
        return code, "".join(capsys.readouterr())

    code, message = command(case.wrong)
    assert code not in (0, None), message
    assert re.search(pattern(named(case.place)), message), message
    assert case.says in message
    code, answer = command(case.right)
    assert code == 0, answer
    call.put("3.json", '{"id": 3}\n')
    call.run()
    assert call.rows() == [(number,) for number in case.rows]


def test_each_place_that_makes_an_error_has_a_remedy_that_is_carried_out_or_a_reason():
    here = {named(case.place) for case in (*DATA, *COMMANDS)}
    modules = {place: place.partition(": ")[0] for place in places()}
    # A new place needs a case, or a reason; one that is gone needs none.
    left = Counter(module for place, module in modules.items() if place not in here)
    elsewhere, reasons = Counter[str](), Counter[str]()
    for table, counter in ((FOLLOWED, elsewhere), (REASONS, reasons)):
        for word in " ".join(table.values()).split():
            suffix, _, count = word.partition("*")
            (module,) = {name for name in modules.values() if f"/{name}".endswith(f"/{suffix}")}
            counter[module] += int(count or 1)
    listed = elsewhere + reasons
    assert (left - listed, listed - left) == (Counter(), Counter())
    assert [name for name in FOLLOWED if not (ROOT / name).exists()] == []
    carried_out = len(here) + elsewhere.total()
    print(f"{len(modules)} places: {carried_out} carried out, {reasons.total()} not")
    assert carried_out >= 130
