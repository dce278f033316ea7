"""Draws the pages' pictures again: python -m tools.site.pictures

Each page that shows `images/NAME.png` writes NAME.png as it runs; this runs it and copies the file to docs/images/. The
page of the examples shows what the programs examples/NAME.py draw: these are run, which takes some minutes.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from PIL import Image  # of matplotlib's

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = DOCS.parent / "examples"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"\]\((?:\.\./)?images/([\w.-]+)\)")


def draw(page: pathlib.Path) -> list[str]:
    """Runs a page and copies its pictures; their names, none for a page without."""
    text = page.read_text()
    names = PICTURE.findall(text)
    if names and all((EXAMPLES / name).with_suffix(".py").exists() for name in names):
        for name in names:
            draw_example(DOCS / "images" / name)
    elif names:
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "page.py"
            program.write_text("\n".join(BLOCK.findall(text)))
            subprocess.run([sys.executable, program], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            for name in names:
                shutil.copyfile(pathlib.Path(folder) / name, DOCS / "images" / name)
    return names


def draw_example(picture: pathlib.Path) -> None:
    """Runs the program of the picture's name; few colours make it a small file."""
    program = EXAMPLES / f"{picture.stem}.py"
    subprocess.run([sys.executable, program, "--output", picture], check=True, stdout=subprocess.DEVNULL)
    few_colours(picture)


def few_colours(picture: pathlib.Path, count: int = 256) -> None:
    """Writes a PNG again with a palette."""
    with Image.open(picture) as image:
        reduced = image.convert("RGB").quantize(count, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(picture, optimize=True)


if __name__ == "__main__":
    (DOCS / "images").mkdir(exist_ok=True)
    for path in sorted(DOCS.rglob("*.md")):
        for name in draw(path):
            print(f"docs/images/{name}, by {path.relative_to(DOCS)}")
