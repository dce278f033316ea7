"""Programs with symbolic sizes: templates, StableHLO text with expressions in place of sizes.

A call substitutes its sizes for the expressions, and compiles the program that results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from corejax_xla_backend import _jaxlib
from corejax_xla_backend.export.dims import size_at

_EXPRESSION = re.compile("⟨([^⟩]*)⟩")


_FUNCTION = re.compile(r"^  func\.func (?:public|private) @([\w$.]+)", re.MULTILINE)


def functions_text(template: bytes, rename: Callable[[str], str]) -> list[str]:
    """Return the texts of a template's functions, all private, `main` first, as `_jaxlib.functions_text` does."""
    text = template.decode()
    heads = list(_FUNCTION.finditer(text))
    ends = [head.start() for head in heads[1:]] + [text.rindex("}")]
    parts = {head[1]: text[head.start() : end].strip() for head, end in zip(heads, ends, strict=True)}
    names = {name: rename(name) for name in sorted(parts, key=lambda name: name != "main")}
    used = re.compile(r"@(" + "|".join(map(re.escape, names)) + r")(?![\w$.])")
    renamed = {name: used.sub(lambda use: f"@{names[use[1]]}", part) for name, part in parts.items()}
    return [renamed[name].replace("func.func public", "func.func private", 1) for name in names]


def module_at(name: str, template: bytes, sizes: Mapping[str, Any]) -> bytes:
    """Substitute sizes into a template and return the portable module; a template again if the sizes are symbolic.

    Raises:
        NotImplementedError: the text is no valid program for these sizes, because an operation's translation does more
            with sizes than arithmetic.
    """
    text = _EXPRESSION.sub(lambda found: str(size_at(found[1], sizes)), template.decode())
    if not all(isinstance(size, int) for size in sizes.values()):
        return text.encode()
    try:
        return _jaxlib.to_portable(_jaxlib.parse_module(text))
    except (RuntimeError, ValueError, _jaxlib.ir.MLIRError) as error:
        shown = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
        raise NotImplementedError(
            f"the exported function {name} has no program for {shown}: {str(error).strip().splitlines()[-1]}. Export "
            "it for integer sizes"
        ) from error
