"""`corejax.experimental.jet`: Taylor series through functions.

jet : (a -> b) -> (a, [T a]) -> (b, [T b])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from corejax.extend import DebugInfo, FlatFunction, dtypes, fun_name, get_aval, tree
from corejax.extend.messages import api_boundary
from corejax_jet.interpreter import Series, jet_flat, jet_jaxpr, jet_rules, real_series, scaled
from corejax_lax_basic import lax

__all__ = ["jet", "jet_jaxpr", "jet_rules"]


@api_boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """Compute derivatives of all orders of a function along a curve.

    The curve is `h(t) = x + x_1 t + x_2 t^2/2! + ... + x_K t^K/K!`, and the results are the derivatives of `fun(h(t))`
    at t = 0. A product costs K(K+1)/2 products, while nested `jvp` takes 2^K.

    Args:
        fun: a function of positional arguments, which are pytrees of arrays.
        primals: the point x, one entry for each argument.
        series: for each argument the list `[x_1, ..., x_K]`; each entry has the structure, shapes and dtypes of the
            argument, and all lists have one length K. Integers and booleans are constant along the curve; their
            entries are zeros.
        factorial_scaled: whether series are derivatives (True, the default) or coefficients of t^k, without
            factorials.

    Returns:
        `fun(*primals)`, and the list of K derivatives for each leaf of the result: a pytree of the result's structure
        with lists as leaves.

    Raises:
        TypeError: an argument is not an array, or an entry differs in structure, shape or dtype from its argument.
        ValueError: the lengths of primals and series, or of the lists, differ.
        MissingRuleError: a primitive has no jet rule, and none can be derived.

    Example:
        >>> from corejax.experimental.jet import jet
        >>> y, [y1, y2] = jet(lambda x: x**3, (2.0,), ([1.0, 0.0],))
        >>> float(y), float(y1), float(y2)
        (8.0, 12.0, 12.0)
    """
    if not callable(fun):
        raise TypeError(f"jet takes a function, got {fun!r} of type {type(fun).__name__}")
    name = fun_name(fun)
    order = _check_lengths(name, primals, series)
    leaves, in_tree = tree.tree_flatten((tuple(primals), {}))
    debug = DebugInfo(fun, "jet", in_tree)
    flat_series = _flat_series(name, debug.arg_names(), primals, leaves, series, order)
    scale = [1 / math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    inner = [None if c is None else [scaled(x, f) for x, f in zip(c, scale, strict=True)] for c in flat_series]
    flat = FlatFunction(fun, in_tree, with_kwargs=True)
    outs, inner_out = jet_flat(flat, leaves, inner, order, debug)
    series_out = [
        real_series(x, None, order) if c is None else [scaled(each, 1 / f) for each, f in zip(c, scale, strict=True)]
        for x, c in zip(outs, inner_out, strict=True)
    ]
    return tree.tree_unflatten(flat.out_tree, outs), tree.tree_unflatten(flat.out_tree, series_out)


def _check_lengths(name: str, primals: Any, series: Any) -> int:
    for what, value in (("primals", primals), ("series", series)):
        if not isinstance(value, list | tuple):
            raise TypeError(f"jet of {name}: {what} are a list or tuple, one entry for each argument, got {value!r}")
    if len(primals) != len(series):
        raise ValueError(f"jet of {name}: one series for each of {len(primals)} primals, got {len(series)}")
    for i, each in enumerate(series):
        if not isinstance(each, list | tuple):
            raise TypeError(f"jet of {name}: series[{i}] is a list of coefficients, got {each!r}")
    orders = {len(each) for each in series}
    if len(orders) != 1 or 0 in orders:
        raise ValueError(
            f"jet of {name}: the series of all arguments have one length, 1 or more, got {[len(s) for s in series]}"
        )
    return orders.pop()


def _flat_series(
    name: str, names: Sequence[str], primals: Any, leaves: Sequence[Any], series: Any, order: int
) -> list[Series]:
    """Return the coefficients of each leaf of the primals; None for integers and booleans."""
    coefficients: list[list[Any]] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        structure = tree.tree_structure(primal)
        flat = []
        for k, term in enumerate(terms):
            values, got = tree.tree_flatten(term)
            if got != structure:
                raise TypeError(
                    f"jet of {name}: series[{i}][{k}] has the structure of argument {i}, {structure}, got {got}"
                )
            flat.append(values)
        coefficients += [list(each) for each in zip(*flat, strict=True)]
    return [_checked(name, names[i], x, c, order) for i, (x, c) in enumerate(zip(leaves, coefficients, strict=True))]


def _checked(name: str, arg: str, x: Any, series: list[Any], order: int) -> Series:
    aval = get_aval(x)
    if not dtypes.is_inexact(aval.dtype):
        return None
    out = []
    for k, c in enumerate(series, 1):
        got = get_aval(c)
        if got.shape != aval.shape or (got.dtype != aval.dtype and not (got.weak_type or aval.weak_type)):
            raise TypeError(
                f"jet of {name}: coefficient {k} of argument {arg} must have its type, {aval.str_short()}, got "
                f"{got.str_short()}"
            )
        out.append(lax.convert_element_type(c, aval.dtype))
    return out
