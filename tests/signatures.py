"""Signatures of public functions beside jax's: names, order, kinds and defaults of their arguments."""

from __future__ import annotations

import inspect
from typing import Any

# Placement on devices and meshes is not an argument here: sharding is another plugin's.
PLACEMENT = frozenset({"out_sharding", "sharding"})
_SIMPLE = (bool, int, float, str, type(None))


def names_in(text: str) -> set[str]:
    """Names that a text lists."""
    return set(text.split())


def public(module: Any) -> list[str]:
    """Public names of a module of functions, without its submodules."""
    return [n for n in dir(module) if not n.startswith("_") and not inspect.ismodule(getattr(module, n, None))]


def difference(ours: Any, theirs: Any, ignored: frozenset[str] = frozenset()) -> str:
    """How a signature differs from jax's, in words; nothing where it does not, or neither is a function with one."""
    try:
        mine, wanted = (list(inspect.signature(f).parameters.values()) for f in (ours, theirs))
    except (TypeError, ValueError):
        return ""
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in wanted):
        return ""
    wanted = [p for p in wanted if p.name not in ignored | PLACEMENT]
    taken = {p.name for p in wanted}
    mine = [p for p in mine if p.name not in ignored and (p.name in taken or p.name not in PLACEMENT)]
    shown = [f"({', '.join(map(_text, ps))})" for ps in (mine, wanted)]
    if list(map(_key, mine)) != list(map(_key, wanted)):
        return f"{shown[0]} is not {shown[1]}"
    for a, b in zip(mine, wanted, strict=True):
        if (a.default is a.empty) != (b.default is b.empty):
            return f"{a.name} has a default in one of {shown[0]}, {shown[1]}"
        if isinstance(b.default, _SIMPLE) and isinstance(a.default, _SIMPLE) and a.default != b.default:
            return f"{a.name}: {a.default!r} is not {b.default!r}"
    return ""


def _key(p: inspect.Parameter) -> Any:
    return p.kind if p.kind is p.POSITIONAL_ONLY else (p.name, p.kind)


def _text(p: inspect.Parameter) -> str:
    mark = {p.KEYWORD_ONLY: "*", p.POSITIONAL_ONLY: "/"}.get(p.kind, "")
    return f"{mark}{p.name}" + ("" if p.default is p.empty else f"={p.default!r}")
