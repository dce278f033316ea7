"""Programs with symbols: StableHLO's text, in which expressions stand for sizes; one program for each call's sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from corejax_xla_backend import _jaxlib
from corejax_xla_backend.export.dims import size_at

_EXPRESSION = re.compile("⟨([^⟩]*)⟩")


_FUNCTION = re.compile(r"^  func\.func (?:public|private) @([\w$.]+)", re.MULTILINE)


def functions_text(template: bytes, rename: Callable[[str], str]) -> list[str]:
    """The functions of a template, all private, as `_jaxlib.functions_text` gives those of a module; `main` first."""
    text = template.decode()
    found = list(_FUNCTION.finditer(text))
    ends = [each.start() for each in found[1:]] + [text.rindex("}")]
    parts = {each[1]: text[each.start() : end].strip() for each, end in zip(found, ends, strict=True)}
    names = {name: rename(name) for name in sorted(parts, key=lambda name: name != "main")}
    used = re.compile(r"@(" + "|".join(map(re.escape, names)) + r")(?![\w$.])")
    renamed = {name: used.sub(lambda use: f"@{names[use[1]]}", part) for name, part in parts.items()}
    return [renamed[name].replace("func.func public", "func.func private", 1) for name in names]


def module_at(name: str, template: bytes, sizes: Mapping[str, Any]) -> bytes:
    """The portable module for sizes of the symbols; a template where these are symbols of another scope.

    Raises:
        NotImplementedError: there is no such program: an operation's translation does more with sizes than arithmetic.
    """
    text = _EXPRESSION.sub(lambda found: str(size_at(found[1], sizes)), template.decode())
    if not all(isinstance(size, int) for size in sizes.values()):
        return text.encode()
    try:
        return _jaxlib.to_portable(_jaxlib.parse_module(text))  # type: ignore[no-any-return]
    except (RuntimeError, ValueError, _jaxlib.ir.MLIRError) as error:
        shown = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
        raise NotImplementedError(
            f"the exported function {name} has no program for {shown}: {str(error).strip().splitlines()[-1]}. Export "
            "it for integer sizes"
        ) from error
