"""`jvp`, `linearize`, `vjp`, `linear_transpose`: differentiation of functions on pytrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax import dtypes, tree
from corejax.core.array import as_array
from corejax.core.avals import get_aval
from corejax.core.trace import in_scope
from corejax.interpreters.debug_info import DebugInfo, fun_name
from corejax.interpreters.jvp import jvp_flat
from corejax.interpreters.linearize import linearize_flat
from corejax.interpreters.splitting import unzipped
from corejax.interpreters.staging import stage
from corejax.interpreters.transposition import UndefPrimal, backward_pass, zero_cotangent
from corejax.messages.source_info import JVP, TRANSPOSE
from corejax.messages.tracebacks import api_boundary
from corejax.transforms.flattening import (
    FlatFunction,
    abstractified,
    arg_names,
    check_arguments,
    check_function,
    leaves_like,
)
from corejax.transforms.linear_functions import (
    Pullback,
    Pushforward,
    Signature,
    checked,
    checked_cotangent,
    differentiable,
    user_tangent,
)


@api_boundary
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Jacobian-vector product: `f(x)` and the derivative of `f` at `x` along a tangent.

    Args:
        fun: function of arrays (in pytrees).
        primals: tuple or list of its arguments.
        tangents: of the same structure, shapes and dtypes; None or float0 for integers.
        has_aux: `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, tangent_out)`, or `(out, tangent_out, aux)`.

    Raises:
        TypeError: primals and tangents differ in structure, shape or dtype.
    """
    check_function("jvp", fun)
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise TypeError(f"jvp: {name} are a tuple or list, one for each argument of the function, got {value!r}")
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments("jvp", fun, leaves, lambda: arg_names(fun, in_tree))
    given = leaves_like(
        in_tree,
        tangents,
        lambda got: (
            f"jvp of {fun_name(fun)}: primals and tangents differ in structure:\n"
            f"  primals:  {in_tree}\n  tangents: {got}"
        ),
    )
    what = f"jvp of {fun_name(fun)}: the tangent"
    real = checked(what, [get_aval(x) for x in leaves], given, lambda: arg_names(fun, in_tree))
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    outs, tangents_out = jvp_flat(in_scope(JVP, flat), leaves, real, DebugInfo(fun, "jvp"))
    n = flat.num_out
    shown = [user_tangent(t, get_aval(x)) for t, x in zip(tangents_out[:n], outs[:n], strict=True)]
    return _results(flat, outs, tree.tree_unflatten(flat.out_tree, shown))


def _results(flat: FlatFunction, outs: Sequence[Any], derivative: Any) -> tuple[Any, ...]:
    """Return `(out, derivative)`, or `(out, derivative, aux)`."""
    n = flat.num_out
    out = tree.tree_unflatten(flat.out_tree, [as_array(x) for x in outs[:n]])
    return (out, derivative) if flat.aux is None else (out, derivative, flat.aux.unflatten(outs[n:]))


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`f(x)` and the derivative of `f` at `x` as a linear function, whose residuals are computed once.

    Args:
        fun: function of arrays (in pytrees).
        primals: its arguments.
        has_aux: `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, f_lin)`, or `(out, f_lin, aux)`; `f_lin(*tangents)` gives the output tangent.

    Raises:
        TypeError: an argument is not an array; `f_lin` is given tangents of another structure, shape or dtype.
    """
    return _linear_at("linearize", Pushforward, fun, primals, has_aux)


@api_boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Vector-Jacobian product: `f(x)` and the pullback of `f` at `x`.

    Args:
        fun: function of arrays (in pytrees).
        primals: its arguments.
        has_aux: `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, f_vjp)`, or `(out, f_vjp, aux)`; `f_vjp(ct)` gives a tuple with a cotangent for each argument
        (float0 zeros for integers).

    Raises:
        TypeError: an argument is not an array.
    """
    return _linear_at("vjp", Pullback, fun, primals, has_aux)


def _linear_at(transform: str, kind: Any, fun: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """`f(x)`, its derivative at `x` as a linear function of one kind, and the auxiliary results if there are any."""
    check_function(transform, fun)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments(transform, fun, leaves, lambda: arg_names(fun, in_tree))
    avals_in = tuple(get_aval(x) for x in leaves)
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    active = [differentiable(a) for a in avals_in]
    outs, tape = linearize_flat(in_scope(JVP, flat), leaves, active, DebugInfo(fun, transform))
    tape.outs = tape.outs[: flat.num_out]
    avals_out = tuple(get_aval(x) for x in outs[: flat.num_out])
    return _results(flat, outs, kind(Signature(fun, avals_in, avals_out, in_tree, flat.out_tree), tape))


@api_boundary
def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a function that is linear in all of its arguments.

    Args:
        fun: the linear function.
        primals: arrays or `ShapeDtypeStruct`s: only their types matter.

    Returns:
        The function from a cotangent of the output to a tuple of cotangents of the arguments: a pytree of what `fun`
        closes over. It may be a function of integers, whose cotangents are integers then.

    Raises:
        TypeError: arguments and results are neither all floating-point or complex nor all integers, or `fun` is found
            not to be linear.
    """
    check_function("linear_transpose", fun)
    leaves, in_tree = tree.tree_flatten(primals)
    avals = abstractified("linear_transpose", fun, leaves, lambda: arg_names(fun, in_tree))
    flat = FlatFunction(fun, in_tree)
    debug = DebugInfo(fun, "linear_transpose", tree.tree_structure((primals, {})))
    jaxpr, consts = stage(flat, avals, debug)
    integers = all(dtypes.is_integer(a.dtype) for a in (*avals, *jaxpr.out_avals))
    for i, aval in enumerate(avals):
        if not integers and not differentiable(aval):
            raise TypeError(
                f"linear_transpose of {fun_name(fun)}: argument {arg_names(fun, in_tree)[i]} has dtype "
                f"{aval.dtype.name}, which has no cotangents unless all arguments and results are integers"
            )
    jaxpr = unzipped(jaxpr, [True] * len(avals)) or jaxpr  # a loop counts, and what it carries may be linear
    out_tree = flat.out_tree

    @api_boundary
    def transposed(consts: Sequence[Any], *cts: Any) -> tuple[Any, ...]:
        real = checked_cotangent(f"the transpose of {fun_name(fun)}", cts, jaxpr.out_avals, out_tree, integers)
        cts_in = in_scope(TRANSPOSE, backward_pass)(jaxpr, consts, [UndefPrimal(a) for a in avals], real)
        shown = [zero_cotangent(a) if c is None else c for c, a in zip(cts_in, avals, strict=True)]
        return tree.tree_unflatten(in_tree, shown)  # type: ignore[no-any-return]

    return tree.Partial(transposed, consts)
