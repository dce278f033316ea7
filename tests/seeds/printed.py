"""Comparing what the documents print with what corejax prints, layout aside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from corejax.extend import ClosedJaxpr, Jaxpr, ShapedArray, check_jaxpr, close_over_consts
from corejax.ir.hoisting import hoist_literals
from corejax.ir.printer import jaxpr_text


def tokens(text: str) -> list[str]:
    """The words of a jaxpr's text without layout: `( c )` and `(c,)`, ` .` and ` ;` and `let` are all the same.

    Weak types, which autodidax does not have, are left out too.
    """
    text = re.sub(r"\.(?=\s|$)", " . ", text.replace("~", ""))
    text = re.sub(r"[;,]", " ", text)
    text = re.sub(r"([(){}]|\[(?=\s)|(?<=\s)\])", r" \1 ", text)
    return [word for word in text.split() if word not in ("let", ".")]


def long_text(program: Jaxpr | ClosedJaxpr) -> str:
    """A program as autodidax prints it: long types, every literal a constant with a binder."""
    return jaxpr_text(hoist_literals(program) if isinstance(program, ClosedJaxpr) else program, types="long")


def assert_prints(program: Jaxpr | ClosedJaxpr, expected: str) -> None:
    """A program's text is the document's, names included."""
    assert tokens(long_text(program)) == tokens(expected)


def assert_prints_up_to_names(program: Jaxpr | ClosedJaxpr, expected: str) -> None:
    """A program's text is the document's, with variables named in the order in which they come."""
    assert renamed(tokens(long_text(program))) == renamed(tokens(expected))


def renamed(words: Iterable[str]) -> list[str]:
    """Tokens with each bound variable (`name:type`) as `v0`, `v1`, ... in order."""
    names: dict[str, str] = {}
    out = []
    for word in words:
        name, colon, kind = word.partition(":")
        if colon and name.isalpha():
            names.setdefault(name, f"v{len(names)}")
        out.append(names.get(name, name) + colon + kind)
    return out


def type_text(closed: ClosedJaxpr) -> str:
    """A program's checked type as autodidax prints it, `(float64[]) -> (float64[])`; constants are arguments."""
    hoisted = hoist_literals(closed)
    ins, outs = check_jaxpr(close_over_consts(hoisted.jaxpr).jaxpr)
    return f"({_avals(ins)}) -> ({_avals(outs)})"


def _avals(avals: Iterable[ShapedArray]) -> str:
    return ", ".join(aval.str_short(short_dtypes=False).replace("~", "") for aval in avals)


def printed(*values: Any) -> str:
    """What `print` writes."""
    return " ".join(str(value) for value in values)
