"""The examples of the API reference: for each public function a few lines and what they print.

    python -m tools.site.examples NAMESPACE...            runs them, and says what is missing or prints something else
    python -m tools.site.examples --write NAMESPACE...    writes what they print into the file: read the difference

A namespace's examples are `docs/reference/examples/NAMESPACE.txt` ("corejax" for the facade): names at the margin,
below each its example, indented, as in a Python session. Each runs by itself, in what `environment` gives.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference" / "examples"
NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?")
BEGINS = "import numpy as np\nimport corejax\nimport corejax.numpy as jnp\nfrom corejax import lax, nn"


def file_of(namespace: str) -> pathlib.Path:
    """Return the path of the file with the examples of a namespace, which need not exist."""
    return FOLDER / f"{namespace or 'corejax'}.txt"


def read(namespace: str) -> dict[str, str]:
    """Return the examples of a namespace by name, without indentation.

    Raises:
        ValueError: a name occurs twice, or has no example.
    """
    if not file_of(namespace).exists():
        return {}
    text = re.sub(r"^#.*\n", "", file_of(namespace).read_text(), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        name, _, body = part.partition("\n")
        if not name.strip():
            continue
        if name in found or ">>>" not in body:
            raise ValueError(f"{file_of(namespace).name}: {name!r} is there twice, or has no example")
        found[name] = textwrap.dedent(body).strip("\n")
    return found


def environment(namespace: str) -> dict[str, Any]:
    """Return the names that examples start with: `corejax`, `np`, `jnp`, `lax`, `nn`, and the namespace's last name."""
    from tools.site.namespaces import resolve

    names: dict[str, Any] = {"__name__": "example"}
    exec(BEGINS, names)
    if namespace:
        names.setdefault(namespace.rpartition(".")[2], resolve(namespace))
    return names


def _printed(statement: doctest.Example, names: dict[str, Any]) -> str:
    """Run a statement and return its output as an interactive session prints it, exceptions included."""

    def show(value: Any) -> None:
        if value is not None:
            print(repr(value))

    out, before, sys.displayhook = io.StringIO(), sys.displayhook, show
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(statement.source, "<example>", "single", dont_inherit=True), names)
    except Exception as error:
        print(f"Traceback (most recent call last):\n    ...\n{type(error).__name__}: {error}", file=out)
    finally:
        sys.displayhook = before
    return out.getvalue()


def same(shown: str, printed: str) -> bool:
    """Whether two texts are equal up to white space and the last digits of fractions, which machines differ in."""
    words, numbers = zip(*((NUMBER.split(text), NUMBER.findall(text)) for text in (shown, printed)), strict=True)
    plain = ["|".join("".join(word.split()) for word in some) for some in words]
    return plain[0] == plain[1] and np.allclose(*(np.array(some, float) for some in numbers), rtol=2e-5, atol=1e-6)


def failures(namespace: str, name: str, text: str) -> dict[int, str]:
    """Run an example and return, by line, the output of each statement whose output differs from the example."""
    names = environment(namespace)
    statements = doctest.DocTestParser().get_examples(text, name)
    printed = {statement.lineno: (_printed(statement, names), statement.want) for statement in statements}
    return {line: got for line, (got, want) in printed.items() if not same(want, got)}


def corrected(text: str, printed: dict[int, str]) -> str:
    """Return an example with the output that its statements printed."""
    lines: list[str] = []
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, str):
            lines += [line for line in part.splitlines() if line.strip()]
            continue
        source = part.source.rstrip("\n").split("\n")
        lines += [f">>> {source[0]}", *(f"... {line}".rstrip() for line in source[1:])]
        shown = printed.get(part.lineno, part.want)
        lines += [line or "<BLANKLINE>" for line in shown.rstrip("\n").split("\n") if shown]
    return "\n".join(lines)


def missing(namespace: str) -> list[str]:
    """Names that need an example and have none: functions and classes that are no aliases of earlier names."""
    from tools.site.namespaces import names_of, originals

    first, found = originals(), read(namespace)
    return [
        public.name
        for public in names_of(namespace)
        if public.kind in ("function", "class") and first[id(public.value)] == public and public.name not in found
    ]


def _write(namespace: str) -> None:
    found = read(namespace)
    parts = (
        f"{name}\n{textwrap.indent(corrected(text, failures(namespace, name, text)), '    ')}\n"
        for name, text in sorted(found.items(), key=lambda item: item[0].lower())
    )
    file_of(namespace).write_text("\n".join(parts))


def _complaints(namespace: str) -> Iterator[str]:
    for name, text in read(namespace).items():
        for printed in failures(namespace, name, text).values():
            yield f"{namespace or 'corejax'}: the example of {name} prints\n{textwrap.indent(printed, '    ')}"


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    complaints: list[str] = []
    for namespace in (name.removeprefix("corejax").removeprefix(".") for name in arguments if name != "--write"):
        complaints += [f"{namespace or 'corejax'}: {name} has no example" for name in missing(namespace)]
        if "--write" in arguments:
            _write(namespace)
        else:
            complaints += _complaints(namespace)
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
