"""`to_jax`: corejax primitives and functions in JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from corejax.extend import ClosedJaxpr, Primitive, fun_name, stage_closed, tree
from corejax.extend.messages import UnboundAxisError
from corejax_to_jax import lowering  # noqa: F401
from corejax_to_jax.call import call
from corejax_to_jax.types import aval_from_jax, check_version, key_from_numbers, key_to_numbers, to_numbers


@dataclass(frozen=True)
class Staged:
    """A function staged for one signature.

    Attributes:
        closed: the program, with numbers in place of keys.
        out_tree: the structure of the function's result.
        out_impls: for each result, the name of the generator if the result is an array of keys, else None.
    """

    closed: ClosedJaxpr
    out_tree: Any
    out_impls: list[str | None]


def to_jax(fun: Primitive | Callable[..., Any], **params: Any) -> Callable[..., Any]:
    """Convert a corejax primitive or function to a function of JAX.

    JAX can trace, differentiate, batch, compile, export and shard the result like a function of its own. The rules are
    those of corejax: derivatives of every order, batching and the translation to StableHLO. The function is staged once
    for each signature.

    Args:
        fun: a primitive, or a function of arrays and pytrees of arrays.
        params: the parameters of the primitive, or keyword arguments of the function that are not arrays.

    Returns:
        A function of JAX arrays. It has the arguments and results of `fun`.

    Raises:
        ImportError: the version of JAX is not supported.
        NotImplementedError: when called, if the program has effects or an argument's shape is symbolic.
        NameError: when called, if the program has a collective over an axis that JAX binds.
    """
    name = fun.name if isinstance(fun, Primitive) else fun_name(fun)
    check_version("to_jax", name)
    bound = functools.partial(fun.bind if isinstance(fun, Primitive) else fun, **params)
    staged: dict[Any, Staged] = {}

    def in_jax(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = jax.tree.flatten((args, kwargs))
        numbers = [to_numbers(x) for x in leaves]
        impls = tuple(impl for _, impl in numbers)
        avals = tuple(aval_from_jax(x, name) for x, _ in numbers)
        signature = (in_tree, avals, impls)
        entry = staged.get(signature)
        if entry is None:
            entry = staged[signature] = _stage(bound, name, *signature)
        outs = call(entry.closed, [x for x, _ in numbers])
        wrapped = [
            x if impl is None else jax.random.wrap_key_data(x, impl=impl)
            for x, impl in zip(outs, entry.out_impls, strict=True)
        ]
        return tree.tree_unflatten(entry.out_tree, wrapped)

    in_jax.__code__ = in_jax.__code__.replace(co_name=name)  # corejax's errors begin with it
    in_jax.__name__ = in_jax.__qualname__ = name
    in_jax.__doc__ = f"{name} of corejax, as a function of JAX."
    return jax.jit(in_jax, inline=True)


def _stage(fun: Callable[..., Any], name: str, in_tree: Any, avals: Any, impls: Any) -> Staged:
    """Trace a function with corejax.

    Raises:
        NotImplementedError: the program has effects.
        UnboundAxisError: the program has a collective over an axis that corejax does not bind.
    """
    out_tree, out_impls = None, []

    def flat(*numbers: Any) -> list[Any]:
        nonlocal out_tree, out_impls
        args, kwargs = jax.tree.unflatten(in_tree, map(key_from_numbers, numbers, impls))
        leaves, out_tree = tree.tree_flatten(fun(*args, **kwargs))
        outs = [key_to_numbers(x) for x in leaves]
        out_impls = [impl for _, impl in outs]
        return [x for x, _ in outs]

    try:
        closed = stage_closed(flat, avals)
    except UnboundAxisError as error:
        reason = str(error).partition(";")[0]
        raise UnboundAxisError(
            f"to_jax: {name} has a collective over an axis that it does not bind, and a bridge cannot pass on the "
            f"names that JAX binds ({reason}); call jax.lax's collective around it, or bind the axis inside with "
            "corejax.vmap(..., axis_name=...)"
        ) from error
    if closed.effects:
        effects = ", ".join(sorted(closed.effects))
        raise NotImplementedError(
            f"to_jax: {name} has effects ({effects}), which JAX cannot order; move them out of the function, or use "
            "jax.debug and jax.experimental.io_callback around it"
        )
    return Staged(closed, out_tree, out_impls)
