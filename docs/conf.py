"""How `make docs` makes the site: by Sphinx, out of the Markdown as it stands.

The source folder is the root of the repository, so that links between documents are those that
also work where the Markdown is read as it is.
"""

from __future__ import annotations

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
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Sluice"
html_extra_path = ["site"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
