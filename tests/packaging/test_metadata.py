"""What a package index shows of each distribution: a page whose links work there, and the project's addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools import project_urls

ROOT = Path(__file__).resolve().parents[2]
FILES = project_urls.pyproject_files()
TEMPLATES = sorted(ROOT.glob("plugins/testing/src/**/templates/**/*.md.tmpl"))
LINK = re.compile(r"\]\(([^)\s]+)\)|<(?:a|img)\s[^>]*(?:href|src)=[\"']([^\"']+)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)


def relative_links(text: str) -> list[str]:
    """The links of a Markdown text, without its code, that lead nowhere on a package index."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    links = ["".join(groups) for groups in LINK.findall(prose)]
    return [link for link in links if not link.startswith(("https://", "http://", "mailto:", "#"))]


def test_relative_links_are_found() -> None:
    text = "[a](https://a) [b](../b.md) ![c](c.png) `[d](d.md)`\n```\n[e](e.md)\n```\n<img src='f.png'>\n[g]: g.md\n"
    assert relative_links(text) == ["../b.md", "c.png", "f.png", "g.md"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_the_page_of_a_distribution_has_no_relative_links(file: Path) -> None:
    project = tomllib.loads(file.read_text())["project"]
    page = (file.parent / project["readme"]).read_text()
    assert relative_links(page) == []
    assert page.startswith(f"# {project['name']}\n")


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_new_plugins_have_no_relative_links(file: Path) -> None:
    assert relative_links(file.read_text()) == []


def test_the_addresses_of_the_project_are_in_every_file() -> None:
    for file in FILES:
        folder = file.parent.relative_to(ROOT).as_posix()
        urls = project_urls.table(folder, project_urls.REPOSITORY, project_urls.DOCUMENTATION)
        assert project_urls.with_table(file.read_text(), urls) == file.read_text(), "run python -m tools.project_urls"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_addresses_are_written_once_and_removed_again(file: Path) -> None:
    before = project_urls.with_table(file.read_text(), "")
    urls = project_urls.table("plugins/fft", "https://example.org/corejax", "https://example.org/docs")
    after = project_urls.with_table(before, urls)
    assert tomllib.loads(after)["project"]["urls"] == {
        "Documentation": "https://example.org/docs",
        "Source": "https://example.org/corejax/tree/main/plugins/fft",
        "Changelog": "https://example.org/corejax/blob/main/CHANGELOG.md",
        "Issues": "https://example.org/corejax/issues",
    }
    assert project_urls.with_table(after, urls) == after
    assert project_urls.with_table(after, "") == before
