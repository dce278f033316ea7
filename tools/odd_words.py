"""Count words in docstrings, comments and messages that read foreign to users of NumPy, JAX or pluggy.

`python -m tools.odd_words` prints for each package its words, its odd words in a thousand, and how often "where" and
"if" stand. It fails if a package has more odd words than LIMIT, or more "where" than "if". `--list PATH ...` prints
each odd word with its place.

Words are odd if they make a person of a piece of code ("who", "somebody", "is told") or stand in place of a technical
term ("written out", "taken apart"). CONTRIBUTING.md has the rules of style.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# As in pluggy's docstrings, at most one in a thousand words.
LIMIT = 1.0

ODD = re.compile(
    r"""\b(?:
    who | whom | whose | whoever | whomever | somebody(?:'s)? | someone(?:'s)? | nobody(?:'s)? | anybody(?:'s)?
    | theirs | (?:is|are|was|were|be|been)\s+told | (?:is|are)\s+meant | there\s+(?:is|are)\s+none
    | as\s+(?:it|they)\s+(?:was|were) | what\s+is\s+left | written\s+out | given\s+up | taken\s+apart | laid\s+out
    | of\s+one's\s+own | makes\s+of | made\s+of\s+it | such\s+a\s+one
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
CODE = re.compile(r"`[^`]*`|^\s*(?:>>>|\.\.\.).*$", re.MULTILINE)


class Text(NamedTuple):
    """One docstring, comment or message: its first line in the file and its words without code."""

    line: int
    text: str


def docstrings(tree: ast.AST) -> Iterator[Text]:
    """Yield the docstrings of a module, its classes and its functions, without their code."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            yield Text(first.lineno, CODE.sub("", first.value.value))


def messages(tree: ast.AST) -> Iterator[Text]:
    """Yield the text of each `raise` and each call of `warn`, without the values in f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            call: ast.AST = node.exc
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"):
            call = node
        else:
            continue
        parts = [part for part in ast.walk(call) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if parts:
            yield Text(node.lineno, CODE.sub("", "".join(str(part.value) for part in parts)))


def comments(source: str) -> Iterator[Text]:
    """Yield the comments of a file, without directives for tools."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:type:|noqa|ruff:|fmt:|pyright:)", token.string):
            yield Text(token.start[0], CODE.sub("", token.string.lstrip("#")))


def texts(path: Path) -> list[Text]:
    """Return the docstrings, comments and messages of a Python file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    return [*docstrings(tree), *messages(tree), *comments(source)]


class Count(NamedTuple):
    """Words of one package: all, odd ones, and how often "where" and "if" stand in docstrings."""

    words: int
    odd: int
    where: int
    condition: int

    @property
    def per_thousand(self) -> float:
        """Odd words in a thousand."""
        return 1000 * self.odd / max(self.words, 1)


def files(package: Path) -> list[Path]:
    """Return the Python files below `package`, without built copies."""
    if package.is_file():
        return [package]
    return sorted(path for path in package.rglob("*.py") if "build" not in path.parts)


def count(package: Path) -> Count:
    """Count the words of the files below `package`."""
    found = [text for path in files(package) for text in texts(path)]
    words = [word.lower() for text in found for word in WORD.findall(text.text)]
    odd = sum(len(ODD.findall(text.text)) for text in found)
    return Count(len(words), odd, words.count("where"), words.count("if"))


def packages() -> list[Path]:
    """Return the kernel and the folder of each plugin."""
    return [ROOT / "corejax", *sorted(path for path in (ROOT / "plugins").iterdir() if (path / "src").is_dir())]


def print_places(paths: list[Path]) -> None:
    """Print file, line and the words around each odd word below `paths`."""
    for path in (file for folder in paths for file in files(folder)):
        for line, text in texts(path):
            for match in ODD.finditer(text):
                around = " ".join(text[max(match.start() - 40, 0) : match.end() + 40].split())
                print(f"{path}:{line}: {match.group()!r} in …{around}…")


def main() -> int:
    """Print the table, or with `--list` the places; return 1 if a package exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", nargs="+", type=Path, metavar="PATH", help="print the odd words below these paths")
    arguments = parser.parse_args()
    if arguments.list:
        print_places(arguments.list)
        return 0
    failed = []
    for package in packages():
        counted = count(package)
        name = str(package.relative_to(ROOT))
        row = (
            f"{counted.words:7} words {counted.per_thousand:6.2f} odd {counted.where:5} where {counted.condition:5} if"
        )
        print(f"{name:22} {row}")
        if counted.per_thousand > LIMIT or counted.where > counted.condition:
            failed.append(name)
    if failed:
        print(f"More than {LIMIT} odd words in a thousand, or more `where` than `if`: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
