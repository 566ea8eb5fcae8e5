"""`--help` in sentences that fit the screen."""

from __future__ import annotations

import pytest
import typer

from pyspark_sluice.connector.cli.app import app, main

COMMANDS = typer.main.get_command(app).commands


def test_the_list_of_commands_has_a_whole_sentence_for_each(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    _, _, listed = capsys.readouterr().out.partition("Commands:\n")
    lines = listed.splitlines()
    assert len(lines) == len(COMMANDS)
    assert [line for line in lines if "..." in line or not line.endswith(".")] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_argument_and_option_is_explained_in_sentences(name):
    explained = [given.help for given in COMMANDS[name].params if given.name != "help"]
    assert all(explained)
    verbs = {text.split()[0] for text in explained}
    assert verbs <= {
        "Also", "Announce", "Check", "Compare", "Continue", "Count", "Create", "Decode", "Find",
        "Give", "Go", "Keep", "Leave", "Let", "Make", "Permit", "Print", "Read", "Replace",
        "Report", "Run", "Search", "Select", "Show", "Start", "Stop", "Store", "Use", "Wait",
        "Write",
    }  # fmt: skip
    assert [text for text in explained if not text.endswith((".", "..."))] == []
