"""Calls of JAX programs, for checks of the rules of `jax.call`. Imports jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from corejax.extend import Example, ShapedArray
from corejax_to_jax.jax_call import JaxProgram

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def _example(fun: Callable[..., Any], reference: Callable[..., Any], *types: ShapedArray) -> Example:
    program = JaxProgram(fun, types)
    no_text = {"text": "a program of JAX is an object, which the text of a program cannot contain"}
    return Example(types, {"program": program}, reference=lambda *xs, program: reference(*xs), fails=no_text)


def jax_call_examples() -> list[Example]:
    """Return calls of a smooth, a bilinear and an integer program, and of one with several results."""
    vector, matrix, integers = ShapedArray((3,), F32), ShapedArray((2, 3), F32), ShapedArray((3,), I32)
    return [
        _example(lambda x: [jnp.sin(x) * x], lambda x: [np.sin(x) * x], vector),
        _example(lambda a, x: [a @ x], lambda a, x: [a @ x], matrix, vector),
        _example(lambda i: [i * 2 + 1], lambda i: [i * 2 + 1], integers),
        _example(lambda x, i: [x * i, i + 1], lambda x, i: [x * i.astype(x.dtype), i + 1], vector, integers),
    ]
