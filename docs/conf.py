"""How `make docs` makes the site: Sphinx renders the Markdown files unchanged.

The source folder is the root of the repository, so that links between documents are those that
also work where the Markdown is read as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

project = "Sluice"
author = "the authors of pyspark-sluice"
root_doc = "docs/index"

extensions = ["myst_parser"]
include_patterns = ["docs/*.md", "checkpoint_meta/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
# Folders that hold no page; Sphinx would walk through all of them.
exclude_patterns = [
    *(".*", "build", "benchmarks", "connector", "enumerator", "examples", "reader", "tests"),
    "tools",
]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "Sluice"
html_extra_path = ["site"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]

# A mention of an option in code becomes a link, unless its name is also a plain word.
OPTION_PAGES = {
    name: f"docs/{page}"
    for page in ("options", "expert-options")
    for name in re.findall(
        r'<a id="\w+"></a>`(\w+)`', Path(__file__).with_name(f"{page}.md").read_text()
    )
    if name != name.lower()
}


class HtmlAnchors(SphinxTransform):
    """Links to `<a id="name"></a>`, which GitHub shows too, are checked like links to headings."""

    default_priority = 600  # Before links within the page are resolved.

    def apply(self, **_: Any) -> None:
        """Add them to the headings of the page."""
        for node in self.document.findall(nodes.raw):
            if anchor := re.fullmatch(r'<a id="(.+)">', node.astext()):
                self.document.myst_slugs[anchor[1]] = (node.line, anchor[1], anchor[1])


class OptionLinks(SphinxTransform):
    """The first mention of an option on a page leads to its place in the reference."""

    default_priority = 600

    def apply(self, **_: Any) -> None:
        """Wrap each of them in a link."""
        linked = {name for name, page in OPTION_PAGES.items() if page == self.env.docname}
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext()
            apart = (nodes.reference, nodes.title, addnodes.pending_xref)
            if name not in OPTION_PAGES.keys() - linked or any(
                isinstance(p, apart) for p in _above(node)
            ):
                continue
            linked.add(name)
            link = addnodes.pending_xref(
                "",
                refdomain="doc",
                reftype="myst",
                reftarget=OPTION_PAGES[name],
                reftargetid=name.lower(),
                refdoc=self.env.docname,
                refexplicit=True,
            )
            node.replace_self(link)
            link += node


class InTheSourceTree(SphinxTransform):
    """Links to pages next to the code, which the site does not have, lead to a copy of them."""

    default_priority = 600

    def apply(self, **_: Any) -> None:
        """Replace each of them, if the page exists; any other dead link is an error."""
        for node in list(self.document.findall(addnodes.pending_xref)):
            page = str(node.get("reftarget", ""))
            is_page = node.get("refdomain") == "doc" and page not in self.env.found_docs
            if is_page and Path(__file__).parent.parent.joinpath(f"{page}.md").is_file():
                copy = addnodes.download_reference("", refdoc=self.env.docname)
                copy["reftarget"] = f"/{page}.md"
                copy += node.children
                node.replace_self(copy)


def _above(node: nodes.Node) -> Iterator[nodes.Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.add_transform(HtmlAnchors)
    app.add_transform(OptionLinks)
    app.add_transform(InTheSourceTree)
