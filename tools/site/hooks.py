"""What `mkdocs build` calls: it adds the pages of the API reference, and mends links to what is not on the site."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.structure.files import File

from tools.site import reference

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./((?!docs/)[^)]+)\)")
SECTION = "API reference"
_pages: dict[str, str] = {}


def on_config(config: Any) -> None:
    """Generate the reference and insert its pages into the navigation, below its title."""
    _pages.update(reference.pages())
    for entry in config.nav:
        if SECTION in entry:
            entry[SECTION] = [{_title(path): path} for path in _pages]


def _title(path: str) -> str:
    name = path.removeprefix("reference/").removesuffix(".md")
    return "Overview" if name == "index" else name if name == "corejax" else f"corejax.{name}"


def on_files(files: Any, config: Any) -> None:
    """Add the generated pages, which do not exist as files."""
    for path, text in _pages.items():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to directories outside of docs/ by their names, because the site has no copy of them."""
    if page.file.src_uri.count("/"):
        return markdown
    return OUTSIDE.sub(lambda found: _without_link(found[1], found[2]), markdown)


def _without_link(text: str, path: str) -> str:
    """Return the text of a link and the path that it leads to, or one of them if it contains the other."""
    if path.endswith(text.strip("`")):
        return f"`{path}`"
    return text if path in text else f"{text} (`{path}`)"
