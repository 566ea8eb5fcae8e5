"""The documentation is true: tables are current, the quick start runs unchanged."""

import configparser
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import pyspark_sluice
from pyspark_sluice.benchmarks.speedup_chart import Bars, chart
from pyspark_sluice.checkpoint_meta.storage.written_values import parse_bytes, parse_milliseconds
from pyspark_sluice.connector.options.aliases import WITHOUT_EFFECT
from pyspark_sluice.connector.options.model import SluiceOptions
from pyspark_sluice.tests.pages import PASSIVE, RUNNABLE, blocks, pages
from pyspark_sluice.tests.repository import ROOT, files, tool

RECIPES = (
    "database/database.py",
    "delta/delta.py",
    "iceberg/iceberg.py",
    "notebook/first_look.ipynb",
    "parquet_table/parquet_table.py",
    "spark_readers/spark_readers.py",
)
RUN_EXAMPLES = (
    "service",
    "quickstart",
    "quickstart_table",
    "log_source",
    "table_source",
    *(Path(recipe).parts[0] for recipe in RECIPES),
)


@pytest.mark.parametrize("name", ["options", "expert-options", "from-spark", "from-auto-loader"])
def test_the_tables_of_options_are_current(name):
    options_table = tool("options_table")
    path = ROOT / "docs" / f"{name}.md"
    assert path.read_text() == options_table.updated(path, options_table.documents()[path]), (
        "run: python tools/options_table.py"
    )


def test_the_chart_has_a_bar_for_each_figure_and_says_when_and_where_it_was_measured():
    drawn = ET.fromstring(chart([Bars("CSV & co", 8.0, 0.5)], "2026-01-02; 2 cores <x>"))
    svg = "{http://www.w3.org/2000/svg}"
    bars = {bar.find(f"{svg}title").text: bar for bar in drawn.iter(f"{svg}rect") if len(bar)}
    # The axis is logarithmic: 8 is three doublings above 1, and 0.5 is one below.
    width = {title: float(bar.attrib["width"]) for title, bar in bars.items()}
    assert width["8 times"] == pytest.approx(3 * width["0.5 times"], abs=0.2)
    right_end = float(bars["0.5 times"].attrib["x"]) + width["0.5 times"]
    assert right_end == pytest.approx(float(bars["8 times"].attrib["x"]), abs=0.2)
    texts = [text.text for text in drawn.iter(f"{svg}text")]
    assert "CSV & co" in texts
    assert "2026-01-02; 2 cores <x>" in texts


def test_the_differences_from_spark_are_counted():
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?m)^\| case .+\n\|---.+\n((?:\| .+\n)+)", page)
    *of_text, columnar, xml = (len(table.splitlines()) for table in tables)
    notes = (ROOT / "benchmarks/notes/measurements.md").read_text(encoding="utf-8")
    text = sum(of_text)
    total = f"The tables list {text + columnar + xml} differences"
    said = " ".join(notes.split())
    assert re.search(rf"{total}: {text} of .*, {columnar} of .* and {xml} of \[XML\]", said)


def test_no_line_of_prose_is_longer_than_120_columns():
    long = [
        f"{page.name}:{number}"
        for page in (*pages(), *(ROOT / "checkpoint_meta").glob("*.md"), ROOT / "CHANGELOG.md")
        for number, line in _prose(page.read_text(encoding="utf-8"))
        if len(line) > 120 and " " in line.strip()
    ]
    assert long == []


def _prose(text):
    """The lines of a page that are neither code nor tables, pictures or comments."""
    inside = ""
    for number, line in enumerate(text.splitlines(), 1):
        begins = line.lstrip()
        if inside:
            inside = "" if inside in line else inside
        elif begins.startswith("```"):
            inside = "```"
        elif begins.startswith("<!--"):
            inside = "" if "-->" in line else "-->"
        elif not begins.startswith(("|", "<", "![", "#")):
            yield number, line


def test_every_option_is_on_one_of_the_two_pages_once_and_at_most_a_hundred_are_our_own():
    options_table = tool("options_table")
    shown = [name for names in options_table.groups().values() for name in names]
    assert sorted([*shown, *options_table.EXPERT]) == sorted(options_table.visible())
    assert {*options_table.visible()} >= options_table.OF_SPARK
    own = len(options_table.own())
    assert own <= 100
    assert f"{own} are of Sluice" in (ROOT / "docs/options.md").read_text()


def test_the_options_without_effect_are_in_one_sentence():
    page = " ".join((ROOT / "docs/options.md").read_text().split())
    (sentence,) = re.findall(r"Accepted without effect, (.+?) - The option", page)
    options_table = tool("options_table")
    hidden = set(SluiceOptions.model_fields) - set(options_table.visible())
    of_spark = {str(SluiceOptions.model_fields[name].alias) for name in hidden}
    assert set(re.findall(r"`(\w+)`", sentence)) == of_spark - {"paths"} | set(WITHOUT_EFFECT)


def test_twelve_options_are_common_and_come_first():
    options_table = tool("options_table")
    assert len(options_table.common()) == 12
    first = (ROOT / "docs/options.md").read_text().partition("## Common options")[2]
    rows = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\)", first.partition("\n## ")[0], re.MULTILINE)
    assert [anchor for _, anchor in rows] == [name.lower() for name, _ in rows]
    assert [name for name, _ in rows] == [
        options_table.SluiceOptions.model_fields[field].alias for field in options_table.common()
    ]


def test_every_option_has_an_anchor_of_its_own_and_a_type_that_says_what_it_takes():
    pages = [(ROOT / f"docs/{name}.md").read_text() for name in ("options", "expert-options")]
    shown = {}
    for page in pages:
        rows = re.findall(r'^\| <a id="(\w+)"></a>`(\w+)` \| (.*?) \|', page, re.MULTILINE)
        headings = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
        anchors = [anchor for anchor, *_ in rows] + [h.lower().replace(" ", "-") for h in headings]
        assert len(set(anchors)) == len(anchors)
        assert [name for anchor, name, _ in rows if anchor != name.lower()] == []
        shown |= {name: values for _, name, values in rows}
    assert shown["fileOrder"] == "`mtime`, `name`, `newestFirst`, `eventTime`"
    assert shown["mode"] == "`PERMISSIVE`, `DROPMALFORMED`, `FAILFAST`"
    assert shown["batchBytes"] == "size, at least 64k, at most 1g"
    assert shown["checkpointsAhead"] == "integer, at most 8"
    assert shown["discoveryInterval"].startswith("duration, at least 10ms")
    plain = {"text", "integer", "number", "boolean", "size", "duration", "list", "JSON object"}
    kinds = {name: values.partition(",")[0] for name, values in shown.items()}
    assert [n for n, v in kinds.items() if v not in plain and not v.startswith("`")] == []


def test_a_default_with_a_unit_is_what_the_option_takes_as_its_default():
    page = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("options", "expert-options"))
    rows = re.findall(r"</a>`(\w+)` \| (?:size|duration)[^|]* \| `(\w+)` \|", page)
    assert len(rows) > 12
    parse = {"bytes": parse_bytes, "milliseconds": parse_milliseconds}
    for name, default in rows:
        field = next(f for f in SluiceOptions.model_fields.values() if f.alias == name)
        extra = field.json_schema_extra
        if default != "auto" and isinstance(extra, dict):
            assert parse[str(extra["unit"])](default) == field.default, name


def test_the_tables_of_the_landing_page_and_its_navigation_list_the_same_pages():
    text = (ROOT / "docs/index.md").read_text()
    sections = re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |^```)", text)
    row = r"^\| \[(.+)\]\((.+)\.md\)"
    shown = {title: re.findall(row, section, re.MULTILINE) for title, section in sections}
    navigated = {
        title: re.findall(r"^(.+) <(.+)>$", entries, re.MULTILINE)
        for title, entries in re.findall(r":caption: (.+?)\n(.*?)```", text, re.DOTALL)
    }
    assert shown == navigated
    listed = [page for entries in navigated.values() for _, page in entries]
    assert len(set(listed)) == len(listed)
    pages_of_docs = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages_of_docs <= set(listed)


def test_every_file_that_is_named_anywhere_is_there():
    # In docstrings, too: next to the file, or below any folder that it is in.
    missing = []
    for path in _texts():
        folders = [folder for folder in path.parents if folder.is_relative_to(ROOT)]
        names = re.findall(r"`([\w./-]+\.(?:py|md))`", path.read_text(encoding="utf-8"))
        lost = [n for n in names if not any((folder / n).exists() for folder in folders)]
        missing += [f"{path.relative_to(ROOT)}: {name}" for name in lost]
    assert missing == []


def _texts():
    for path in [*files("*.py"), *files("*.md")]:
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts):
            yield path


BLOCKS = [block for page in pages() for block in blocks(page)]


def test_every_code_block_says_what_it_is():
    # No language, or one that is neither run nor known to be none: nobody would notice its errors.
    known = (*RUNNABLE, *PASSIVE, "setup")
    assert [f"{block}: {block.language}" for block in BLOCKS if block.language not in known] == []


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.source], ids=str)
def test_what_is_quoted_from_a_program_is_in_it(block):
    assert block.code in (ROOT / block.source).read_text(encoding="utf-8")
    # Of these each is run: by test_first_minute.py, test_recipes.py, test_examples_run.py,
    # test_source_suite.py, test_service.py.
    assert Path(block.source).parts[:-1] in {("examples", name) for name in RUN_EXAMPLES}


def test_every_example_says_when_to_use_it_how_to_run_it_and_what_it_prints():
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    folders = [path for path in (ROOT / "examples").iterdir() if path.is_dir()]
    for folder in (path for path in folders if path.name != "__pycache__"):
        assert f"({folder.name}/README.md)" in index
        text = (folder / "README.md").read_text(encoding="utf-8")
        assert re.search(r"^\*\*When to use it:\*\* ", text, re.MULTILINE), folder
        named = [file.name for file in folder.iterdir() if file.name in text]
        assert named, f"{folder.name}/README.md names none of its files"
        if any(file.suffix == ".py" for file in folder.iterdir()):
            assert "```sh\n" in text, f"{folder.name}: no command"
            assert "```text\n" in text, f"{folder.name}: no output"


def test_the_map_of_the_packages_shows_every_package():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (tree,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    shown, above = set(), []
    for indent, name in re.findall(r"^( *)(\w+)/ ", tree, re.MULTILINE):
        above = [*above[: len(indent) // 2], name]
        shown.add(".".join(above))
    packages = configparser.ConfigParser()
    packages.read(ROOT / "setup.cfg")
    names = {name.partition(".")[2] for name in packages["options"]["packages"].split()} - {""}
    # One folder a format; the map says so.
    assert shown == {name for name in names if not name.startswith("reader.files.formats.")}


def test_the_readme_fits_two_screens():
    # Of fifty lines each, as wide as they are in the browser.
    lines = (ROOT / "README.md").read_text().splitlines()
    assert sum(max(1, -(-len(line) // 120)) for line in lines) <= 100


def test_the_example_is_the_quick_start():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert (ROOT / "examples" / "quickstart" / "quickstart.py").read_text() == code
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_every_module_that_is_named_in_the_documentation_is_in_the_wheel():
    packages = configparser.ConfigParser()
    packages.read(ROOT / "setup.cfg")
    shipped = set(packages["options"]["packages"].split())
    missing = []
    for page in pages():
        # What a line of a log begins with is the name of a logger.
        named = r"\bpyspark_sluice(?:\.[A-Za-z_]+)+\b(?!: \[)"
        names = sorted(set(re.findall(named, page.read_text(encoding="utf-8"))))
        lost = [n for n in names if not (_is_shipped(n.split("."), shipped) or _is_offered(n))]
        missing += [f"{page.name}: {name}" for name in lost]
    assert missing == []


def _is_shipped(parts, packages):
    """True for a module of the wheel, and for a name in one."""
    if len(parts) < 2:
        return False
    module = ROOT.joinpath(*parts[1:]).with_suffix(".py")
    is_module = ".".join(parts[:-1]) in packages and module.exists()
    return is_module or ".".join(parts) in packages or _is_shipped(parts[:-1], packages)


def _is_offered(name):
    groups = {"pyspark_sluice.sources", "pyspark_sluice.formats"}  # of entry points
    first = name.split(".")[1]
    return name in groups or first.startswith("__") or first in pyspark_sluice.__all__
