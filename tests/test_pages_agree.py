"""The pages agree with the code and with each other, where a machine can tell."""

import configparser
import re
import shlex

import pytest
import typer
import yaml
from pydantic import ValidationError

import pyspark_sluice
from pyspark_sluice import errors
from pyspark_sluice.connector.cli.app import app_of
from pyspark_sluice.connector.cli.commands.runbook import sections_about
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.errors import FencedError, OptionError, without_history
from pyspark_sluice.tests.pages import pages, user_pages
from pyspark_sluice.tests.repository import ROOT

RUNBOOK = "docs/runbook.md"
ALERTS = [
    rule
    for group in yaml.safe_load((ROOT / "examples/monitoring/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
ERRORS = [name for name in errors.__all__ if name != "SluiceError"]


@pytest.mark.parametrize("name", [*ERRORS, *(rule["alert"] for rule in ALERTS)])
def test_the_runbook_has_two_commands_for_each_error_and_each_alert(name):
    page = (ROOT / RUNBOOK).read_text(encoding="utf-8")
    (section,) = re.findall(rf"(?ms)^### {name}\n(.*?)(?=^#|\Z)", page)
    (commands,) = re.findall(r"(?ms)^```sh\n(.*?)^```", section)
    assert len(commands.splitlines()) == 2
    assert sections_about(name).startswith(f"### {name}\n")


def test_each_alert_leads_to_its_heading_in_the_runbook_of_the_package():
    for rule in ALERTS:
        url = f"pyspark_sluice/{RUNBOOK}#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == url


def test_an_error_that_leaves_the_package_names_its_section_of_the_runbook_once():
    error = without_history(without_history(FencedError("what", remedy="Stop it.")))
    assert str(error) == "what. Stop it. More: `sluice runbook FencedError`."
    with pytest.raises(OptionError, match="no such heading"):
        sections_about("no heading has these words")


def _printed_commands():
    """Page, line and words of each `sluice ...` in a block or in the text of a page."""
    texts = [*pages(), *(ROOT / "examples").rglob("*.md"), ROOT / "examples/monitoring/alerts.yml"]
    for page in texts:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        text = text.replace("python -m pyspark_sluice ", "sluice ")
        inline = re.findall(r"`(sluice [^`]+)`", " ".join(text.split()))
        for line in [*re.findall(r"(?m)^(sluice .+)$", text), *inline]:
            yield page.name, shlex.split(line, comments=True)[1:]


def test_every_command_that_a_page_prints_exists_with_its_options():
    group = typer.main.get_command(app_of())
    context = typer.Context(group)
    unknown = []
    for page, words in _printed_commands():
        is_command = words[0][0] not in "-." and words[0] != "COMMAND"
        command = group.get_command(context, words[0]) if is_command else group
        known = {option for parameter in command.params for option in parameter.opts}
        known |= {"-h", "--help", "--install-completion"}
        lost = [w for w in words if w.startswith("-") and w.partition("=")[0] not in known]
        unknown += [f"{page}: sluice {' '.join(words)}: {word}" for word in lost]
    assert unknown == []


def test_every_value_of_an_option_that_a_page_names_is_one_that_the_option_takes():
    aliases = {str(field.alias) for field in SluiceOptions.model_fields.values()}
    refused = []
    for page in pages():
        for name, value in re.findall(r"`(\w+)=([\w.]+)`", page.read_text(encoding="utf-8")):
            if name not in aliases:
                continue
            try:
                SluiceOptions.model_validate({name: value})
            except ValidationError:
                refused.append(f"{page.name}: {name}={value}")
    assert refused == []


def test_the_list_of_dependencies_for_a_zip_file_is_that_of_the_package():
    setup = configparser.RawConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options"]["install_requires"].split("\n")
    needed = {re.split(r"[<>=]", line)[0] for line in lines if line and not line.startswith("#")}
    text = " ".join((ROOT / "docs/deploy.md").read_text(encoding="utf-8").split())
    (named,) = re.findall(r"for the same interpreter: (.+?)\.", text)
    # Tasks do without the command line.
    assert set(re.split(r", | and ", named)) == needed - {"pydantic-settings", "typer", "rich"}


def test_one_figure_for_one_speed():
    speed = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    table = speed.partition("## Straight to the table")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if re.match(r"\| [A-Zt]", line)]
    large = [float(row[4]) for row in rows if "2,000 files" not in row[1]]
    mean = 1.0
    for speedup in large:
        mean *= speedup ** (1 / len(large))
    assert f"{mean:.1f} times" in " ".join(speed.split())
    for page in ("README.md", "docs/tables.md", "docs/sinks.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"{mean:.1f} times" in " ".join(text.replace("[", "").split()), page


def test_pages_and_examples_name_public_modules_only():
    public = {*pyspark_sluice.__all__, "sources", "formats", "testing", "prometheus", "__file__"}
    # What a line of the log begins with is the name of a logger; what is run is no import.
    named = re.compile(r"\bpyspark_sluice\.(\w+)(?!\S*: \[)")
    texts = {page: page.read_text(encoding="utf-8") for page in user_pages()}
    examples = (ROOT / "examples").rglob("*.py")
    # The demo looks into the state, as the command line does.
    texts |= {p: p.read_text(encoding="utf-8") for p in examples if "demo" not in p.parts}
    private = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        for name in named.findall(re.sub(r"(?s)<!--.*?-->", "", text))
        if name not in {*public, "examples"}
    ]
    assert private == []
