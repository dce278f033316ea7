"""The residuals that a gradient saves between its forward and its backward pass, and their sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.extend import (
    DebugInfo,
    FlatFunction,
    JaxprEqn,
    ShapedArray,
    Tracer,
    arg_names,
    check_arguments,
    dtypes,
    stage,
    tree,
)
from corejax.extend.messages import describe_source
from corejax.extend.transforms import linearize_flat
from corejax.extend.types import shaped_abstractify
from corejax_control_flow.markers.name import name_p


class Residual(NamedTuple):
    """One value that is saved.

    Attributes:
        aval: type of the value.
        source: description of its source: an argument, a name from `checkpoint_name`, the user's line, a constant.
    """

    aval: ShapedArray
    source: str

    def __str__(self) -> str:
        return f"{self.aval.str_short()} {self.source}"


def saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Residual]:
    """Return the values that the gradient of a function saves in its forward pass for its backward pass.

    Nothing is computed: the function is traced, so its Python control flow cannot depend on the arguments' values.

    Args:
        fun: function of arrays (in pytrees).
        *args: positional arguments, arrays or `ShapeDtypeStruct`s.
        **kwargs: keyword arguments.

    Returns:
        Each value once: arguments, then constants, then results of operations, each in order.

    Raises:
        TypeError: if an argument has no shape and dtype.
    """
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    debug = DebugInfo(fun, "saved_residuals", in_tree)
    known = [x for x in leaves if not hasattr(x, "shape") or isinstance(x, Tracer)]
    check_arguments("saved_residuals", fun, known, debug.arg_names)
    avals = [shaped_abstractify(x) for x in leaves]
    flat = FlatFunction(fun, in_tree, with_kwargs=True)
    active = [dtypes.is_inexact(a.dtype) for a in avals]

    def residuals_of(*primals: Any) -> list[Any]:
        _, tape = linearize_flat(flat, primals, active, debug)
        return tape.to_jaxpr()[1]

    jaxpr, _ = stage(residuals_of, avals, debug)
    sources: dict[Any, str] = {}
    for v, name in zip(jaxpr.invars, arg_names(fun, in_tree, with_kwargs=True), strict=True):
        sources[v] = f"from the argument {name}"
    for v in jaxpr.constvars:
        sources[v] = "from a constant"
    for eqn in jaxpr.eqns:
        sources.update((v, _made_by(eqn)) for v in eqn.outvars)
    kept = set(jaxpr.outvars)
    return [Residual(v.aval, source) for v, source in sources.items() if v in kept]


def _made_by(eqn: JaxprEqn) -> str:
    where = describe_source(eqn.source_info)
    if eqn.primitive is name_p:
        return f"named {eqn.params['name']!r} from {where}"
    return f"output of {eqn.primitive.name} from {where}"


def print_saved_residuals(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the result of `saved_residuals`, one value on each line: its type and its source.

    Args:
        fun: function of arrays (in pytrees).
        *args: positional arguments, arrays or `ShapeDtypeStruct`s.
        **kwargs: keyword arguments.

    Raises:
        TypeError: if an argument has no shape and dtype.
    """
    for residual in saved_residuals(fun, *args, **kwargs):
        print(residual)
