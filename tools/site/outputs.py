"""Run the Python blocks of pages, and compare what they print with the text blocks that follow them.

    python -m tools.site.outputs PAGE...            says where a page prints something else
    python -m tools.site.outputs --write PAGE...    writes what it prints into the page: read the difference

The tests run all pages in the same way. docs/publishing.md and docs/gallery.md have runners of their own.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "-- end of block {} --"


class Block(NamedTuple):
    """A Python block, and the place of the text block that follows it; None if no text block does."""

    code: str
    shown: tuple[int, int] | None


def blocks(text: str) -> list[Block]:
    """Return the Python blocks of a page."""
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        if match[1] == "python":
            found.append(Block(match[2], None))
        elif found and found[-1].shown is None:
            found[-1] = found[-1]._replace(shown=match.span(2))
    return found


def run(text: str) -> list[str]:
    """Return what each Python block of a page prints, in a process and a folder of its own.

    Raises:
        RuntimeError: a block raises an error.
    """
    parts = blocks(text)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "page.py"
        program.write_text("\n".join(f"{part.code}\nprint({MARK.format(i)!r})" for i, part in enumerate(parts)))
        # As in the tests: compiled programs are not read from the user's cache.
        environment = {"COREJAX_COMPILATION_CACHE_DIR": "", **os.environ}
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=folder, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr)
    printed, rest = [], done.stdout
    for i in range(len(parts)):
        part, _, rest = rest.partition(MARK.format(i) + "\n")
        printed.append(part)
    return printed


def rewritten(text: str) -> str:
    """Return the page with what its blocks print."""
    changes = [
        (part.shown, printed)
        for part, printed in zip(blocks(text), run(text), strict=True)
        if part.shown and printed.strip() != text[slice(*part.shown)].strip()
    ]
    for (begin, end), printed in reversed(changes):
        text = text[:begin] + printed.strip("\n") + "\n" + text[end:]
    return text


def main() -> int:
    """Run the pages; return 1 if one prints something else and is not written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write what the pages print")
    arguments = parser.parse_args()
    different = []
    for page in arguments.pages:
        text = page.read_text(encoding="utf-8")
        new = rewritten(text)
        if new != text:
            different.append(page)
            print(f"{page} prints something else{', written' if arguments.write else ''}")
        if arguments.write:
            page.write_text(new, encoding="utf-8")
    return int(bool(different) and not arguments.write)


if __name__ == "__main__":
    sys.exit(main())
