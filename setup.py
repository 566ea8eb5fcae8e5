"""The README as a package index shows it, and the project's URLs. Everything else is in setup.cfg.

A package index does not have the files that the README links to. They are at `url` of setup.cfg,
the address of the repository. Without it, the text of a link stays and its target goes.
"""

import configparser
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}


def index_page(readme: str, url: str) -> str:
    """The README with links that lead somewhere from any place; `url` may be empty."""
    # Comments are for those who edit the README.
    readme = re.sub(r"<!--.*?-->\n", "", readme, flags=re.DOTALL)
    files = f"{url.rstrip('/')}/blob/main/" if url else ""
    # `blob` gives a page about the file, `raw` the picture itself.
    pictures = f"{url.rstrip('/')}/raw/main/" if url else ""
    relative = r"\((?![a-z]+://|#)([^)]+)\)"
    readme = re.sub(
        rf"!\[([^]]*)\]{relative}\n*",
        lambda found: f"![{found[1]}]({pictures}{found[2]})\n\n" if url else "",
        readme,
    )
    return re.sub(
        rf"(?<!!)\[([^]]*)\]{relative}",
        lambda found: f"[{found[1]}]({files}{found[2]})" if url else found[1],
        readme,
    )


def main() -> None:
    """What pip calls, by way of setuptools."""
    settings = configparser.RawConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    url = settings["metadata"].get("url", "")
    setup(
        long_description=index_page((ROOT / "README.md").read_text(encoding="utf-8"), url),
        project_urls={name: f"{url}/blob/main/{page}" for name, page in PAGES.items() if url},
    )


if __name__ == "__main__":
    main()
