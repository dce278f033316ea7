"""Bounds of the results of a function for all arguments within bounds: `corejax.interval_bounds`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corejax.extend import DebugInfo, FlatFunction, Tracer, arg_names, as_array, check_arguments, fun_name, tree
from corejax_interval_bounds.interpreter import interval_flat as _interval_flat
from corejax_interval_bounds.interpreter import interval_rules as interval_rules
from corejax_interval_bounds.interval import Bounds as Bounds
from corejax_interval_bounds.interval import Interval as Interval
from corejax_interval_bounds.rounding import ROUNDINGS as _ROUNDINGS
from corejax_interval_bounds.rounding import Rounding
from corejax_interval_bounds.rounding import outward as outward


def propagate(fun: Callable[..., Any], *, rounding: Rounding = "outward") -> Callable[..., Any]:
    """Transform a function of arrays to a function of intervals.

    Args:
        fun: function of pytrees of arrays.
        rounding: "outward" gives bounds that hold in exact arithmetic and for the results of any implementation, see
            `corejax_interval_bounds.rounding`. "nearest" is cheaper, and correct to within rounding errors.

    Returns:
        A function of the same positional and keyword arguments, any array of which may be an `Interval`. It returns the
        result of `fun` with an `Interval` in place of each array. For all arguments within the intervals, the result
        lies within these intervals. Each operation is bounded separately, so that two uses of a value count as
        independent (except `x * x`, which is a square). A result with NaN as bounds may have any value, including NaN:
        some argument may be outside of the domain of `log`, `sqrt`, ...

    Raises:
        TypeError: `fun` is not a function, or an argument is neither an array nor an interval.
        ValueError: `rounding` is neither "outward" nor "nearest".
        MissingRuleError: at a call, if `fun` applies a primitive without an interval rule to an interval.

    Example:
        >>> from corejax.interval_bounds import Interval, propagate
        >>> propagate(lambda x: x * x)(Interval(-1, 2))
        Interval(Array(0, dtype=int32, weak_type=True), Array(4, dtype=int32, weak_type=True))
    """
    if not callable(fun):
        raise TypeError(f"propagate transforms a function, got {fun!r} of type {type(fun).__name__}")
    if rounding not in _ROUNDINGS:
        raise ValueError(f"propagate: rounding is one of {', '.join(map(repr, _ROUNDINGS))}, got {rounding!r}")

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def propagated(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree.tree_flatten((args, kwargs), is_leaf=_is_interval)

        def names() -> list[str]:
            return arg_names(fun, in_tree, with_kwargs=True)

        check_arguments("propagate", fun, [x.lower if _is_interval(x) else x for x in leaves], names)
        operands = [_bounds(fun, x, i, names) for i, x in enumerate(leaves)]
        flat = FlatFunction(fun, in_tree, with_kwargs=True)
        outs = _interval_flat(flat, operands, rounding, DebugInfo(fun, "propagate", in_tree))
        return tree.tree_unflatten(flat.out_tree, [Interval.of(_array(b.lower), _array(b.upper)) for b in outs])

    propagated.__doc__ = f"{fun_name(fun)} on intervals.\n\n{fun.__doc__ or ''}"
    return propagated


def _is_interval(x: Any) -> bool:
    return type(x) is Interval


def _array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else as_array(x)


def _bounds(fun: Any, x: Any, position: int, names: Callable[[], list[str]]) -> Bounds:
    if not _is_interval(x):
        return Bounds.point(x)
    try:
        checked = Interval(x.lower, x.upper)  # `tree_unflatten` creates intervals without checks
    except (TypeError, ValueError) as error:
        raise type(error)(f"propagate of {fun_name(fun)}: argument {names()[position]}: {error}") from None
    return Bounds(checked.lower, checked.upper)


__all__ = ["Bounds", "Interval", "interval_rules", "outward", "propagate"]
