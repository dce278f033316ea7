"""What functions read: names in their code, as `dis` has them; values that make a state known, equal or unknown."""

from __future__ import annotations

import argparse
import ast
import dis
import functools
import json.decoder
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import function_state
from corejax.extend import as_array, same_state, state_of
from corejax.primitive import Primitive


def by_dis(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """Globals with the attributes that follow, and imports, by the disassembler."""
    chain: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if chain and name in ("LOAD_ATTR", "LOAD_METHOD"):
            chain += (instruction.argval,)
        elif name not in ("CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG"):
            if chain:
                yield chain
            chain = (instruction.argval,) if name in ("LOAD_GLOBAL", "LOAD_NAME") else ()
            if name == "IMPORT_NAME":
                yield "import", instruction.argval
            elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                yield ("global",)
    if chain:
        yield chain
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from by_dis(constant)


@pytest.mark.parametrize("module", [argparse, ast, functools, json.decoder, textwrap, function_state])
def test_names_in_code(module: Any) -> None:
    source = Path(module.__file__).read_text("utf-8")
    code = compile(source, module.__file__, "exec")
    found = list(function_state._globals_of(code))
    assert found == list(by_dis(code)) and len(found) > 10


COUNT = 3


def test_states() -> None:
    text, number = "a", 1.0
    f = lambda x: x * number + len(text) + COUNT
    g = lambda x: x * number + len(text) + COUNT
    a, b = state_of(f), state_of(f)
    assert a is not None and b is not None and same_state(a, b)
    other = state_of(g)
    assert other is not None and not same_state(a, other)  # of other code: lines differ
    number = 2.0
    changed = state_of(f)
    assert changed is not None and not same_state(a, changed)
    number = float("nan")
    a, b = state_of(f), state_of(f)
    assert a is not None and b is not None and same_state(a, b)


def test_what_a_state_may_keep() -> None:
    array, table, primitive = as_array(np.ones(100, np.float32)), [1], Primitive("of_a_test")
    of_array, of_table, of_primitive = lambda: array, lambda: table, lambda: primitive
    assert state_of(of_array) is not None and state_of(of_array, most_bytes=399) is None
    assert state_of(of_table) is not None and state_of(of_table, objects=False) is None
    assert state_of(of_primitive) is None and state_of(of_primitive, constants=(Primitive,)) is not None
    held = corejax.jit(lambda x: x * COUNT)
    assert state_of(lambda x: held(x)) is not None


def test_random_numbers_under_other_names() -> None:
    def imported() -> Any:
        from numpy import random

        return random.normal()

    def renamed() -> Any:
        m = np
        return m.random.normal()

    def closed_over(xp: Any) -> Any:
        return lambda: xp.random.normal()

    for f in (imported, renamed, closed_over(np), lambda: np.random.normal(), np.random.normal):
        assert state_of(f) is None
    for f in (lambda: np.sin(COUNT), closed_over(corejax)):
        assert state_of(f) is not None
