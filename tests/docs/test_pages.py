"""Every page of the documentation runs: its Python blocks in order, and their output is what the page shows."""

from __future__ import annotations

import pathlib

import pytest

from tools.site import outputs

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELSEWHERE = {"publishing.md"}  # tests/packaging runs it, in an environment of its own
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name not in ELSEWHERE),
    *sorted(ROOT.glob("plugins/*/README.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_runs_and_prints_what_it_shows(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    parts = outputs.blocks(text)
    if not parts:
        pytest.skip("no Python on this page")
    if "to_jax" in page.parts:
        pytest.importorskip("jax")
    for part, printed in zip(parts, outputs.run(text), strict=True):
        if part.shown is not None:
            assert printed.strip() == text[slice(*part.shown)].strip(), part.code
