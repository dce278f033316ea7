"""Draw the pictures of the pages again.

    python -m tools.site.pictures

Each page that shows `images/NAME.png` writes NAME.png when its code runs. This program runs the page and copies the
file to docs/images/. The page of the examples shows the pictures of examples/NAME.py; running these takes minutes.
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
    """Run a page, copy its pictures, and return their names."""
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
    """Run the example of the picture's name, and reduce the picture's colours to make the file small."""
    program = EXAMPLES / f"{picture.stem}.py"
    subprocess.run([sys.executable, program, "--output", picture], check=True, stdout=subprocess.DEVNULL)
    few_colours(picture)


def few_colours(picture: pathlib.Path, count: int = 256) -> None:
    """Rewrite a PNG with a palette of `count` colours."""
    with Image.open(picture) as image:
        reduced = image.convert("RGB").quantize(count, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    reduced.save(picture, optimize=True)


if __name__ == "__main__":
    (DOCS / "images").mkdir(exist_ok=True)
    for path in sorted(DOCS.rglob("*.md")):
        for name in draw(path):
            print(f"docs/images/{name}, by {path.relative_to(DOCS)}")
