"""Every page of the documentation runs: its Python blocks in order, and their output is what the page shows."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import pytest

from tests.docs.forking import Forking

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELSEWHERE = {"publishing.md"}  # tests/packaging runs it, in an environment of its own
PAGES = [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.name not in ELSEWHERE)]
PAGES += [ROOT / "corejax" / "README.md", *sorted(ROOT.glob("plugins/*/README.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "-- end of block {} --"


def blocks(page: pathlib.Path) -> list[tuple[str, str | None]]:
    """Python blocks, each with the text block that follows it."""
    found: list[tuple[str, str | None]] = []
    for kind, body in BLOCK.findall(page.read_text()):
        if kind == "python":
            found.append((body, None))
        elif found and found[-1][1] is None:
            found[-1] = (found[-1][0], body)
    return found


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    process = Forking()
    yield process
    process.end()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs_and_prints_what_it_shows(page: pathlib.Path, tmp_path: pathlib.Path, forking: Forking) -> None:
    parts = blocks(page)
    if not parts:
        pytest.skip("no Python on this page")
    if "to_jax" in page.parts:
        pytest.importorskip("jax")
    program = tmp_path / "page.py"
    program.write_text("\n".join(f"{code}\nprint({MARK.format(i)!r})" for i, (code, _) in enumerate(parts)))
    done = forking.run(program)
    assert done.returncode == 0, done.stderr
    rest = done.stdout
    for i, (code, shown) in enumerate(parts):
        printed, _, rest = rest.partition(MARK.format(i) + "\n")
        printed = re.sub(r" \(note: switched off by [^)]*\)", "", printed)  # as `--plain` does
        if shown is not None:
            assert printed.strip() == shown.strip(), f"block {i}:\n{code}"
