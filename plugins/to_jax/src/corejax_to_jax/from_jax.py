"""`from_jax`: JAX functions in corejax."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, dtypes, fun_name, get_aval, tree
from corejax_to_jax.jax_call import JaxProgram, jax_call_p
from corejax_to_jax.types import check_version


def from_jax(fun: Any, **params: Any) -> Callable[..., Any]:
    """Convert a JAX function or primitive to a function of corejax.

    corejax can trace, differentiate, batch and compile the result. The rules are those of JAX, and a compiled program
    contains the StableHLO that JAX writes. The function is traced once for each signature.

    Args:
        fun: a function of arrays and pytrees of arrays, or a primitive of JAX.
        params: the parameters of the primitive, or keyword arguments of the function that are not arrays.

    Returns:
        A function of corejax arrays. It has the arguments and results of `fun`.

    Raises:
        ImportError: the version of JAX is not supported.
        NotImplementedError: when called, if the function has effects or calls back, or a size is symbolic.
    """
    bound = functools.partial(getattr(fun, "bind", fun), **params)
    name = getattr(fun, "name", None) or fun_name(fun)
    check_version("from_jax", name)
    traced: dict[Any, tuple[JaxProgram, Any]] = {}

    def in_corejax(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs))
        avals = tuple(_aval(x, name) for x in leaves)
        entry = traced.get((in_tree, avals))
        if entry is None:
            entry = traced[in_tree, avals] = _trace(bound, name, in_tree, avals)
        program, out_tree = entry
        return tree.tree_unflatten(out_tree, jax_call_p.bind(*leaves, program=program))

    in_corejax.__name__ = in_corejax.__qualname__ = name
    in_corejax.__doc__ = f"{name} of JAX, as a function of corejax."
    return in_corejax


def _aval(x: Any, name: str) -> ShapedArray:
    """Return the type of an argument.

    Raises:
        NotImplementedError: a size is symbolic.
        TypeError: the argument holds random keys or other extended elements.
    """
    aval = get_aval(x)
    if not all(isinstance(size, int) for size in aval.shape):
        raise NotImplementedError(
            f"from_jax: {name}: an argument has symbolic sizes, {aval.str_short()}; trace it for known sizes"
        )
    if dtypes.is_extended(aval.dtype):
        raise TypeError(f"from_jax: {name}: an argument is {aval.str_short()}; pass corejax.random.key_data of it")
    return ShapedArray(aval.shape, np.dtype(aval.dtype))


def _trace(fun: Callable[..., Any], name: str, in_tree: Any, avals: tuple[ShapedArray, ...]) -> tuple[JaxProgram, Any]:
    """Trace a function with JAX.

    Raises:
        NotImplementedError: the function has effects or calls back.
    """
    out_tree = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        args, kwargs = tree.tree_unflatten(in_tree, leaves)
        outs, out_tree = tree.tree_flatten(fun(*args, **kwargs))
        return outs

    program = JaxProgram(flat, avals)
    if program.effects:
        effects = ", ".join(sorted(map(str, program.effects)))
        raise NotImplementedError(
            f"from_jax: {name} has effects ({effects}), which corejax cannot order; use corejax.debug and "
            "corejax.io_callback around it"
        )
    return program, out_tree
