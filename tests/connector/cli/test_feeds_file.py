"""`sluice.toml`: what it may say, who wins, and what is said about a wrong one."""

import json
import tomllib
from pathlib import Path

import pytest

from pyspark_sluice.connector import cli
from pyspark_sluice.connector.cli.commands.run import call_of
from pyspark_sluice.connector.cli.feeds_file import schema
from pyspark_sluice.connector.cli.run_arguments import RunArguments, flags
from pyspark_sluice.errors import OptionError
from pyspark_sluice.masking import masked
from pyspark_sluice.tests.connector.host.feeds import Feeds
from pyspark_sluice.tests.repository import ROOT


@pytest.fixture
def feeds(tmp_path):
    return Feeds(tmp_path)


def read(feeds, **arguments):
    return call_of(RunArguments(config=str(feeds.file), **arguments))


def refused(feeds, **arguments):
    with pytest.raises(OptionError) as error:
        read(feeds, **arguments)
    return str(error.value)


def test_the_command_line_wins_over_the_environment_that_over_the_feed_and_this_over_the_defaults(
    feeds, monkeypatch
):
    feeds.write('every = "10s"\nwait = "1m"', a='every = "20s"', b="once = true")
    every = {name: feed.every for name, feed in read(feeds).feeds.items()}
    assert every == {"a": 20.0, "b": None, "c": 10.0}
    monkeypatch.setenv("SLUICE_FEED__A__EVERY", "30s")
    monkeypatch.setenv("SLUICE_DEFAULTS__WAIT", "2m")
    call = read(feeds)
    assert call.feeds["a"].every == 30.0
    assert call.feeds["c"].terms.patience == 120.0
    assert {feed.every for feed in read(feeds, once=True).feeds.values()} == {None}
    assert {feed.every for feed in read(feeds, every="5s").feeds.values()} == {5.0}


def test_a_variable_finds_its_feed_and_option_although_it_has_no_cases_and_dashes(
    feeds, monkeypatch
):
    feeds.write(**{"Web-events": '[feed."Web-events".options]\nmaxFilesPerTrigger = 5'})
    monkeypatch.setenv("SLUICE_FEED__WEB_EVENTS__TO", "delta:elsewhere")
    monkeypatch.setenv("SLUICE_FEED__WEB_EVENTS__OPTIONS__MAXFILESPERTRIGGER", "7")
    monkeypatch.setenv("SLUICE_FEED__NEW__PATH", "in/new")
    monkeypatch.setenv("SLUICE_FEED__NEW__TO", "parquet:new")
    monkeypatch.setenv("SLUICE_FEED__NEW__CHECKPOINT", "checkpoint/new")
    found = read(feeds).feeds
    assert found["Web-events"].to == "delta:elsewhere"
    assert found["Web-events"].options["maxFilesPerTrigger"] == 7
    assert found["new"].to == "parquet:new"


def test_everything_that_is_wrong_is_listed_with_file_key_and_line(feeds):
    feeds.write(
        "evry = '1s'\nmetrics-port = 70000\nworkers = 0",
        a='chekpoint = "x"\nworkers = 3\nonce = "yes"',
        b="schema = 5\nmaxFilesPerTrigger = 1",
        c="every = '3 moons'",
    )
    told, lines = refused(feeds), feeds.file.read_text().splitlines()

    def line(text):
        return f"{feeds.file}, line {lines.index(text) + 1}"

    assert f"{line(lines[3])}: defaults.evry: unknown key; did you mean every?" in told
    key = 'chekpoint = "x"'
    assert f"{line(key)}: feed.a.chekpoint: unknown key; did you mean checkpoint?" in told
    assert (
        f"{line('workers = 3')}: feed.a.workers: unknown key, which belongs to [defaults]" in told
    )
    assert "feed.b.schema: found 5; expected a text" in told
    assert "defaults.metrics-port: found 70000; expected 65535 or less" in told
    assert "defaults.workers: found 0; expected 1 or more" in told
    # What is wrong beyond single keys is in the same list.
    assert "feed.c: --every does not parse" in told
    assert "feed.a.once: found 'yes'; expected true or false" in told
    assert "an option of the source belongs to [feed.b.options]" in told
    assert feeds.call("run")[0] == feeds.call("check")[0] == 2


FEED = "[feed.a]\npath = 'in'\nto = 'delta:t'\ncheckpoint = 'c'\n"

WRONG = {
    "[feed.a]\npath = 'in'\nto = 'delta:t'": "line 1: feed.a: the key checkpoint is missing",
    "[feed.a": "is not TOML",
    "": "there is no feed; expected a table [feed.NAME]",
    "[feeds.a]\npath = 'in'": "line 1: feeds: unknown key; expected [defaults] or [feed.NAME]",
    FEED.replace(
        "delta:t", "delta"
    ): "line 1: feed.a: to: not a table; found delta; expected delta",
    f"{FEED}[feed.a.options]\nmaxFilesPerTriger = 1": "line 6: feed.a.options.maxFilesPerTriger: "
    "unknown option; did you mean maxFilesPerTrigger?",
    FEED + FEED.replace("feed.a", "feed.b"): "line 8: feed.b.checkpoint: feed.a has the same one",
    f"{FEED}every = '3 moons'": "line 1: feed.a: --every does not parse",
}


@pytest.mark.parametrize(("wrong", "told"), WRONG.items())
def test_a_wrong_file_is_refused_with_2_before_any_feed_is_read(feeds, wrong, told):
    feeds.file.write_text(wrong)
    before = feeds.names_below()
    assert told in refused(feeds)
    assert feeds.call("run")[0] == feeds.call("check")[0] == 2
    assert feeds.names_below() == before


def test_a_wrong_variable_is_named_and_not_the_file(feeds, monkeypatch):
    monkeypatch.setenv("SLUICE_FEED__A__ONCE", "perhaps")
    assert "SLUICE_FEED__A__ONCE: found 'perhaps'; expected true or false" in refused(feeds)


def test_a_file_that_is_not_there_and_a_feed_that_it_does_not_have_are_named(feeds):
    assert "found x; expected a, b, c" in refused(feeds, only=["a", "x"])
    assert "names one feed, and a file of feeds" in refused(feeds, path="in")
    feeds.file.unlink()
    assert "cannot be read" in refused(feeds)
    with pytest.raises(OptionError, match="no PATH, --to; expected PATH, --to and --checkpoint"):
        call_of(RunArguments(checkpoint="c"))


def test_secrets_are_references_and_are_never_printed(feeds, monkeypatch, tmp_path):
    monkeypatch.setenv("KEY_OF_THE_BUCKET", "a-key-that-nobody-sees")
    (tmp_path / "secret").write_text("another-one-that-nobody-sees\n")
    keys = 'aws_access_key_id = { env = "KEY_OF_THE_BUCKET" }\n'
    keys += f'aws_secret_access_key = {{ file = "{tmp_path}/secret" }}'
    feeds.write(a=f"[feed.a.options.storageOptions]\n{keys}")
    options = read(feeds).feeds["a"].options["storageOptions"]
    assert options == {
        "aws_access_key_id": "a-key-that-nobody-sees",
        "aws_secret_access_key": "another-one-that-nobody-sees",
    }
    assert "nobody" not in masked(str(options))
    monkeypatch.delenv("KEY_OF_THE_BUCKET")
    (tmp_path / "secret").unlink()
    told = refused(feeds)
    assert "aws_access_key_id: the variable KEY_OF_THE_BUCKET of the environment is not set" in told
    assert f"the file {tmp_path}/secret cannot be read: No such file or directory" in told


def test_every_flag_of_run_is_a_key_and_the_schema_for_editors_is_in_the_package(capsys):
    from pyspark_sluice.connector.cli.app import main

    (stored,) = Path(cli.__file__).parent.glob("*.schema.json")
    assert json.loads(stored.read_text()) == schema(), "run: python tools/options_table.py"
    assert main(["check", "--json-schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    keys = schema()["$defs"]["Defaults"]["properties"]
    assert {"path", "to", "format", "workers", "task-timeout", "new-input", "json"} < set(keys)
    assert set(keys) == {*flags(), "options"}
    assert "fileFormat" in schema()["$defs"]["Options"]["properties"]


def test_the_file_of_the_page_has_nothing_wrong(tmp_path, monkeypatch):
    page = (ROOT / "docs/feeds.md").read_text(encoding="utf-8")
    (tmp_path / "secret").write_text("a-secret-of-the-shop")
    text = page.split("```toml\n")[1].split("```")[0]
    (tmp_path / "sluice.toml").write_text(text.replace("/run/secrets/shop", f"{tmp_path}/secret"))
    monkeypatch.setenv("SHOP_KEY_ID", "a-key-of-the-shop")
    call = call_of(RunArguments(config=str(tmp_path / "sluice.toml")))
    assert call.process.workers == 4
    assert call.feeds["orders"].options["maxFilesPerTrigger"] == 1000


def test_the_example_of_the_module_is_a_file():
    from pyspark_sluice.connector.cli import feeds_file

    text = (feeds_file.__doc__ or "").split("\n\n", 1)[1].split("The command line")[0]
    lines = [line.removeprefix("    ") for line in text.splitlines()]
    assert tomllib.loads("\n".join(lines))["feed"]["orders"]["path"] == "landing/orders"
