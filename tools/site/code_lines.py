"""Keep the code on the pages as narrow as the site's column, in ruff's format.

    python -m tools.site.code_lines            lists code lines that are too long and Python blocks in another format
    python -m tools.site.code_lines --write    formats the Python blocks

The pages are README.md, docs/, and the READMEs below plugins/ and examples/.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Wider code needs a horizontal scroll bar, beside the navigation and the table of contents.
WIDTH = 84
PYTHON = re.compile(r"^```(?:python|py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"\s*```")


def pages() -> list[pathlib.Path]:
    """Return the Markdown files whose code is checked."""
    readmes = [ROOT / "corejax" / "README.md", *ROOT.glob("plugins/*/README.md"), *ROOT.glob("examples/**/README.md")]
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(readmes)]


def long_lines(page: pathlib.Path) -> Iterator[str]:
    """Yield file, line and length of each line of a code block that is longer than WIDTH."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif inside and len(line) > WIDTH:
            yield f"{page.relative_to(ROOT)}:{number}: {len(line)} characters, at most {WIDTH} fit"


def formatted(texts: list[str]) -> list[str]:
    """Return the blocks in ruff's format, at WIDTH; excerpts that do not parse by themselves stay as they are."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{number}.py" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        options = ["--isolated", "--line-length", str(WIDTH), "--target-version", "py311"]
        subprocess.run([sys.executable, "-m", "ruff", "format", *options, folder], capture_output=True)
        return [path.read_text(encoding="utf-8") for path in paths]


def format_pages(write: bool) -> Iterator[str]:
    """Yield the pages whose Python blocks are not in ruff's format; with `write`, rewrite them."""
    texts = {page: page.read_text(encoding="utf-8") for page in pages()}
    blocks = [found[1] for text in texts.values() for found in PYTHON.finditer(text)]
    results = iter(formatted(blocks))
    for page, text in texts.items():
        new = PYTHON.sub(lambda found: found[0].replace(found[1], next(results)), text)
        if new != text:
            yield f"{page.relative_to(ROOT)}: Python blocks are not in ruff's format"
            if write:
                page.write_text(new, encoding="utf-8")


def main() -> int:
    """List what is wrong, or with `--write` format it; return 1 if something is left."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="format the Python blocks")
    write = parser.parse_args().write
    other = list(format_pages(write))
    wrong = [line for page in pages() for line in long_lines(page)] + ([] if write else other)
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
