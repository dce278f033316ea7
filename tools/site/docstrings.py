"""Docstrings as Markdown: a summary, text, and the sections Args, Returns, Raises, Attributes, Yields."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

HEADINGS = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Raises",
}
NOT_OURS = ("builtins", "jaxlib", "ml_dtypes", "numpy", "types", "typing")
SECTION = re.compile(rf"^({'|'.join(HEADINGS)}):$", re.MULTILINE)
ITEM = re.compile(r"^((?:[*\w.]+)(?:, [*\w.]+)*):(?:\s+(.*)|)$", re.DOTALL)


def docstring(value: Any) -> str:
    """Return the docstring without indentation.

    An object without a docstring of its own gets that of its type, if this project or a plugin defines the type. For a
    function or class of another project, return the first paragraph only.
    """
    text = inspect.getdoc(value) or ""
    if inspect.ismodule(value):
        return text
    described = inspect.isclass(value) or inspect.isroutine(value) or text != inspect.getdoc(type(value))
    module = getattr(value if described else type(value), "__module__", None)
    if str(module).partition(".")[0] not in NOT_OURS:
        return text
    return text.partition("\n\n")[0] if described else ""


def summary(value: Any) -> str:
    """Return the first paragraph of the docstring as one line of Markdown that fits into a cell of a table."""
    text = escaped(" ".join(docstring(value).partition("\n\n")[0].split()))
    # In a code span Markdown neither ends a cell at `|` nor removes the backslash of an escape.
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(part if i % 2 else part.replace("|", "\\|") for i, part in enumerate(parts))


def escaped(text: str) -> str:
    """Escape the characters outside of code spans that Markdown would read as HTML or emphasis."""
    parts = re.split(r"(`+[^`]*`+)", text)
    return "".join(
        part if i % 2 else re.sub(r"([<*])", r"\\\1", part).replace("\\<", "&lt;") for i, part in enumerate(parts)
    )


def _items(body: str) -> list[str]:
    """Split a section into its items; each line that is not indented starts an item."""
    return [item for item in re.split(r"\n(?=\S)", textwrap.dedent(body).strip("\n")) if item.strip()]


def _section(heading: str, body: str) -> str:
    """Return a section as Markdown: items `name: text` become a list, anything else stays text."""
    title = f"**{HEADINGS[heading]}**"
    items = [ITEM.match(item) for item in _items(body)]
    if heading in ("Returns", "Yields") or not items or None in items:
        return f"{title}\n\n{_text(textwrap.dedent(body).strip())}"
    lines = []
    for item in items:
        assert item is not None
        text = escaped(" ".join((item[2] or "").split()))
        lines.append(f"- `{item[1]}`: {text}" if text else f"- `{item[1]}`")
    return f"{title}\n\n" + "\n".join(lines)


def _text(text: str) -> str:
    """Paragraphs and indented code; a paragraph of items that begin with a dash or a star becomes a list."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(part if part.startswith("    ") else escaped(part) for part in paragraphs)


def as_markdown(text: str) -> str:
    """Convert a docstring, as returned by `docstring`, to Markdown."""
    parts = SECTION.split(text)
    rendered = [_text(parts[0].strip())]
    rendered += [_section(heading, body) for heading, body in zip(parts[1::2], parts[2::2], strict=True)]
    return "\n\n".join(part for part in rendered if part)
