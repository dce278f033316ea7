"""The pages of the API reference, written from the objects themselves: a page for each namespace.

A page has a table of its names with a line on each, then the signature, docstring and example of each function and
class, and tables of primitives, dtypes and constants.
"""

from __future__ import annotations

import enum
import inspect
import pathlib
import re
from typing import Any

from tools.site import docstrings, examples, namespaces
from tools.site.namespaces import Public

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 84
MEMBER = re.compile(r"<(\w+\.\w+): [^>]*>")  # of an enumeration, as a default
CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
OPAQUE = re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)* at 0x[0-9a-f]+>")


def page_name(namespace: str) -> str:
    """Where the page of a namespace is, below docs/."""
    return f"reference/{namespace or 'corejax'}.md"


def _plain_signature(value: Any) -> str:
    """Return the signature without annotations, such as `(x, axis=0)`; empty if it is not known."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return ""
    plain = [parameter.replace(annotation=parameter.empty) for parameter in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=found.empty))
    return OPAQUE.sub("...", MEMBER.sub(r"\1", CLASS.sub(r"\1", text)))


def signature(public: Public) -> str:
    """Return the call signature without annotations, with one parameter a line if it is long."""
    if isinstance(public.value, enum.EnumType):
        return public.path
    arguments = _plain_signature(public.value)
    if not arguments:
        return f"{public.path}(...)" if public.kind == "function" else public.path
    if len(public.path) + len(arguments) <= WIDTH:
        return f"{public.path}{arguments}"
    parts = arguments[1:-1].split(", ")
    joined = _joined_at_width(parts)
    return f"{public.path}(\n" + "".join(f"    {line},\n" for line in joined) + ")"


def _joined_at_width(parts: list[str]) -> list[str]:
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) < WIDTH - 8:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def source(value: Any) -> str:
    """Return the file and line of a function or class; empty if it has none or lies outside of this repository."""
    value = inspect.unwrap(value) if inspect.isroutine(value) else value
    try:
        path, line = inspect.getsourcefile(value), inspect.getsourcelines(value)[1]
    except (TypeError, OSError):
        return ""
    if path is None or not pathlib.Path(path).is_relative_to(ROOT):
        return ""
    return f"Source: `{pathlib.Path(path).relative_to(ROOT).as_posix()}`, line {line}."


def _methods(value: type) -> str:
    """List the public methods and properties of a class with their summaries, or the members of an enumeration."""
    if isinstance(value, enum.EnumType):
        return "**Members**\n\n" + ", ".join(f"`{name}`" for name in value.__members__)
    lines = []
    for name, member in sorted(vars(value).items()):
        if name.startswith("_") or not (inspect.isroutine(member) or isinstance(member, (property, classmethod))):
            continue
        line = docstrings.summary(member) if docstrings.docstring(member) else ""
        lines.append(f"- `{name}`: {line}" if line else f"- `{name}`")
    return "**Methods and properties**\n\n" + "\n".join(lines) if lines else ""


def _calls(value: Any) -> str:
    """List the methods of an object with their summaries."""
    lines = []
    for name in namespaces.methods(value):
        found = getattr(value, name)
        line = docstrings.summary(found)
        lines.append(f"- `{name}{_plain_signature(found)}`" + (f": {line}" if line else ""))
    return "**Methods**\n\n" + "\n".join(lines)


def anchor(public: Public) -> str:
    """Return the identifier of a name's entry on its page."""
    return public.path


def link(public: Public, here: str) -> str:
    """Return a link to a name's entry, from the page of the namespace `here`."""
    page = "" if public.namespace == here else page_name(public.namespace).partition("/")[2]
    return f"[`{public.path}`]({page}#{anchor(public)})"


def _entry(public: Public, found: dict[str, str]) -> str:
    parts = [
        f"### {public.name.replace('_', chr(92) + '_')} {{ #{anchor(public)} }}",
        f"```python\n{signature(public)}\n```",
        docstrings.as_markdown(docstrings.docstring(public.value)),
    ]
    if public.kind == "class" and isinstance(public.value, type):
        parts.append(_methods(public.value))
    if public.kind == "object":
        parts.append(_calls(public.value))
    if public.name in found:
        parts.append(f"**Example**\n\n```pycon\n{found[public.name]}\n```")
    parts.append(source(public.value))
    return "\n\n".join(part for part in parts if part)


def _alias_line(public: Public, original: Public) -> str:
    return f"- <a id='{anchor(public)}'></a>`{public.path}` is {link(original, public.namespace)}"


def _table(title: str, members: list[Public]) -> str:
    """Return a table of the names that have no entry of their own."""
    if not members:
        return ""
    rows = "\n".join(f"| <a id='{anchor(public)}'></a>`{public.name}` | {_about(public)} |" for public in members)
    return f"## {title}\n\n| name | summary |\n| --- | --- |\n{rows}"


def _about(public: Public) -> str:
    if public.kind == "constant" and isinstance(public.value, (int, float, str, type(None), frozenset)):
        text = repr(public.value)
        return f"`{text}`" if len(text) < WIDTH and "|" not in text else ""
    if public.kind == "constant" and not docstrings.docstring(public.value).strip():
        return ""
    return docstrings.summary(public.value)


def _index(members: list[Public]) -> str:
    rows = "\n".join(
        f"| [`{public.name}`](#{anchor(public)}) | {docstrings.summary(public.value)} |" for public in members
    )
    return f"| name | summary |\n| --- | --- |\n{rows}"


def page(namespace: str) -> str:
    """Return the page of a namespace, in Markdown."""
    first, members = namespaces.originals(), namespaces.names_of(namespace)
    found = examples.read(namespace)
    aliases = [p for p in members if id(p.value) in first and first[id(p.value)] != p]
    own = [p for p in members if p not in aliases]
    entries = [p for p in own if p.kind in ("function", "class", "exception", "object")]
    title = f"corejax.{namespace}" if namespace else "corejax"
    module = namespaces.resolve(namespace)
    parts = [f"# {title}", docstrings.as_markdown(docstrings.docstring(module))]
    if entries:
        parts += [_index(entries), "## Functions and classes", *(_entry(public, found) for public in entries)]
    if aliases:
        lines = "\n".join(_alias_line(public, first[id(public.value)]) for public in aliases)
        parts.append(f"## Other names\n\n{lines}")
    for heading, kind in (("Primitives", "primitive"), ("Dtypes", "dtype"), ("Constants", "constant")):
        parts.append(_table(heading, [p for p in own if p.kind == kind]))
    return "\n\n".join(part for part in parts if part) + "\n"


def _about_namespace(name: str) -> str:
    """Return the summary of a namespace, without its name in front."""
    path = f"corejax.{name}" if name else "corejax"
    line = docstrings.summary(namespaces.resolve(name))
    for beginning in (f"`{path}`: ", f"{path}: "):
        line = line.removeprefix(beginning)
    return line[:1].upper() + line[1:]


def overview(spaces: list[str]) -> str:
    """Return the first page of the reference: the namespaces with their summaries, and the imports of all examples."""
    rows = "\n".join(
        f"| [`{'corejax.' + name if name else 'corejax'}`]({page_name(name).partition('/')[2]}) "
        f"| {_about_namespace(name)} |"
        for name in spaces
    )
    return f"""# API reference

This reference describes every public name of the kernel and of the plugins in this repository, with the text of the
docstrings that `help()` shows. Each example assumes these imports:

```python
{examples.BEGINS}
```

It also assumes that the namespace it belongs to is imported by its last name, for example `from corejax import random`.

| namespace | summary |
| --- | --- |
{rows}
"""


def pages() -> dict[str, str]:
    """All pages by their place below docs/, the overview first."""
    spaces = [name for name in namespaces.namespaces() if namespaces.names_of(name)]
    return {"reference/index.md": overview(spaces), **{page_name(name): page(name) for name in spaces}}
