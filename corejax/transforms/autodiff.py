"""`jvp`, `linearize`, `vjp`, `linear_transpose`: differentiation of functions on pytrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes, tree
from corejax.array import as_array
from corejax.avals import ShapedArray, get_aval
from corejax.interpreters.debug_info import DebugInfo, fun_name
from corejax.interpreters.jvp import as_tangent, jvp_flat, zeros_like
from corejax.interpreters.linearize import LinearTape, linearize_flat
from corejax.interpreters.staging import stage
from corejax.interpreters.transposition import UndefPrimal, backward_pass, pull, zero_cotangent
from corejax.source_info import JVP, TRANSPOSE
from corejax.trace import in_scope
from corejax.transforms.flattening import (
    FlatFunction,
    abstractified,
    arg_names,
    check_arguments,
    check_outputs,
    float0,
    leaf_names,
    leaves_like,
)


def _check_callable(transform: str, fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"{transform} transforms a function, got {fun!r} of type {type(fun).__name__}")


def _differentiable(aval: ShapedArray) -> bool:
    return dtypes.is_inexact(aval.dtype)


def _checked(
    what: str, avals: Sequence[ShapedArray], given: Sequence[Any], names: Callable[[], list[str]]
) -> list[Any]:
    """Tangents or cotangents of values of these types; None for zero and for those of integers and booleans.

    Args:
        what: "jvp of f: the tangent", say.
        avals: types of the values.
        given: what the user passed.
        names: gives the values' names.
    """
    return [
        None if x is None else _checked_one(what, a, x, names, i)
        for i, (a, x) in enumerate(zip(avals, given, strict=True))
    ]


def _checked_one(what: str, aval: ShapedArray, x: Any, names: Callable[[], list[str]], i: int) -> Any:
    if not _differentiable(aval):
        if getattr(x, "dtype", None) == float0:
            return None
        raise TypeError(
            f"{what} of {names()[i]} is None or of dtype float0, since it is of dtype {aval.dtype.name}; got {x!r}"
        )
    try:
        got = get_aval(x)
    except TypeError as error:
        raise TypeError(f"{what} of {names()[i]}: {error}") from None
    fits = got.dtype == aval.dtype or (got.weak_type and dtypes.is_complex(got.dtype) <= dtypes.is_complex(aval.dtype))
    if got.shape != aval.shape or not fits:
        raise TypeError(
            f"{what} of {names()[i]} has type {got.str_short(short_dtypes=False)}, but the value has type "
            f"{aval.str_short(short_dtypes=False)}; shape and dtype have to be the same"
        )
    return as_tangent(x, aval)


def _user_tangent(tangent: Any, primal: Any) -> Any:
    """A tangent or cotangent as users see it: zeros made real, float0 for integers."""
    if tangent is not None:
        return tangent
    aval = get_aval(primal)
    return zeros_like(primal) if _differentiable(aval) else np.zeros(aval.shape, float0)


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
    _check_callable("jvp", fun)
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
    real = _checked(what, [get_aval(x) for x in leaves], given, lambda: arg_names(fun, in_tree))
    flat: Any = _AuxFunction(fun, in_tree) if has_aux else FlatFunction(fun, in_tree)
    outs, tangents_out = jvp_flat(in_scope(JVP, flat), leaves, real, DebugInfo(fun, "jvp"))
    n = flat.num_out if has_aux else len(outs)
    shown = [_user_tangent(t, x) for t, x in zip(tangents_out[:n], outs[:n], strict=True)]
    result = (_unflatten_outputs(flat, outs[:n]), tree.tree_unflatten(flat.out_tree, shown))
    return (*result, tree.tree_unflatten(flat.aux_tree, outs[n:])) if has_aux else result


def _unflatten_outputs(flat: Any, outs: Sequence[Any]) -> Any:
    return tree.tree_unflatten(flat.out_tree, [as_array(x) for x in outs])


class _AuxFunction:
    """A flat function whose result is `(out, aux)`: the leaves of out, then those of aux."""

    __slots__ = ("aux_tree", "fun", "in_tree", "num_out", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: Any) -> None:
        self.fun = fun
        self.in_tree = in_tree
        self.num_out = 0
        self.out_tree: Any = None
        self.aux_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        result = self.fun(*tree.tree_unflatten(self.in_tree, leaves))
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"with has_aux=True function {fun_name(self.fun)} returns a pair (out, aux), got "
                f"{type(result).__name__}: {result!r}"
            )
        outs, self.out_tree = tree.tree_flatten(result[0])
        check_outputs(self.fun, outs, self.out_tree)
        aux, self.aux_tree = tree.tree_flatten(result[1])
        self.num_out = len(outs)
        return [*outs, *aux]


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
    _check_callable("linearize", fun)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments("linearize", fun, leaves, lambda: arg_names(fun, in_tree))
    avals = [get_aval(x) for x in leaves]
    flat: Any = _AuxFunction(fun, in_tree) if has_aux else FlatFunction(fun, in_tree)
    outs, tape = linearize_flat(
        in_scope(JVP, flat), leaves, [_differentiable(a) for a in avals], DebugInfo(fun, "linearize")
    )
    out_tree = flat.out_tree
    n = flat.num_out if has_aux else len(outs)
    tape.outs = tape.outs[:n]

    def f_lin(*tangents: Any) -> Any:
        what = f"the linear function of {fun_name(fun)}"
        given = leaves_like(
            in_tree, tangents, lambda got: f"{what} takes tangents of structure\n  {in_tree}\ngot\n  {got}"
        )
        real = _checked(f"{what}: the tangent", avals, given, lambda: arg_names(fun, in_tree))
        pushed = tape.push(
            [zero_cotangent(a) if t is None and _differentiable(a) else t for t, a in zip(real, avals, strict=True)]
        )
        shown = [_user_tangent(t, x) for t, x in zip(pushed, outs, strict=False)]
        return tree.tree_unflatten(out_tree, shown)

    out = _unflatten_outputs(flat, outs[:n])
    return (out, f_lin, tree.tree_unflatten(flat.aux_tree, outs[n:])) if has_aux else (out, f_lin)


class Pullback:
    """The function from output cotangents to input cotangents that `vjp` gives."""

    __slots__ = ("_avals_out", "_fun", "_in_tree", "_out_tree", "_primals", "_tape")

    def __init__(
        self, fun: Any, tape: LinearTape, primals: list[Any], in_tree: Any, avals_out: list[ShapedArray], out_tree: Any
    ):
        self._fun = fun
        self._tape = tape
        self._primals = primals
        self._in_tree = in_tree
        self._avals_out = avals_out
        self._out_tree = out_tree

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments.

        Raises:
            TypeError: `ct` has not the structure, shapes and dtypes of the function's output.
        """
        what = f"the pullback of {fun_name(self._fun)}"
        out_tree = self._out_tree
        given = leaves_like(
            out_tree, ct, lambda got: f"{what} takes a cotangent of the output's structure\n  {out_tree}\ngot\n  {got}"
        )
        cts = _checked(f"{what}: the cotangent", self._avals_out, given, lambda: leaf_names(out_tree, "output"))
        cts_in = pull(self._tape, cts)
        shown = [_user_tangent(c, x) for c, x in zip(cts_in, self._primals, strict=True)]
        return tree.tree_unflatten(self._in_tree, shown)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<pullback of {fun_name(self._fun)}>"


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
    _check_callable("vjp", fun)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments("vjp", fun, leaves, lambda: arg_names(fun, in_tree))
    flat: Any = _AuxFunction(fun, in_tree) if has_aux else FlatFunction(fun, in_tree)
    active = [_differentiable(get_aval(x)) for x in leaves]
    outs, tape = linearize_flat(in_scope(JVP, flat), leaves, active, DebugInfo(fun, "vjp"))
    n = flat.num_out if has_aux else len(outs)
    tape.outs = tape.outs[:n]
    pullback = Pullback(fun, tape, leaves, in_tree, [get_aval(x) for x in outs[:n]], flat.out_tree)
    out = _unflatten_outputs(flat, outs[:n])
    return (out, pullback, tree.tree_unflatten(flat.aux_tree, outs[n:])) if has_aux else (out, pullback)


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a function that is linear in all of its arguments.

    Args:
        fun: the linear function.
        primals: arrays or `ShapeDtypeStruct`s: only their types matter.

    Returns:
        The function from a cotangent of the output to a tuple of cotangents of the arguments.

    Raises:
        TypeError: an argument's dtype has no cotangents, or `fun` is found not to be linear.
    """
    _check_callable("linear_transpose", fun)
    leaves, in_tree = tree.tree_flatten(primals)
    avals = abstractified("linear_transpose", fun, leaves, lambda: arg_names(fun, in_tree))
    for name, aval in zip(arg_names(fun, in_tree), avals, strict=True):
        if not _differentiable(aval):
            raise TypeError(
                f"linear_transpose of {fun_name(fun)}: argument {name} has dtype {aval.dtype.name}, which has no "
                "cotangents"
            )
    flat = FlatFunction(fun, in_tree)
    debug = DebugInfo(fun, "linear_transpose", tree.tree_structure((primals, {})))
    jaxpr, consts = stage(flat, avals, debug)
    out_tree = flat.out_tree

    def transposed(ct: Any) -> tuple[Any, ...]:
        what = f"the transpose of {fun_name(fun)}"
        given = leaves_like(
            out_tree, ct, lambda got: f"{what} takes a cotangent of structure\n  {out_tree}\ngot\n  {got}"
        )
        cts = _checked(f"{what}: the cotangent", jaxpr.out_avals, given, lambda: leaf_names(out_tree, "output"))
        cts_in = in_scope(TRANSPOSE, backward_pass)(jaxpr, consts, [UndefPrimal(a) for a in avals], cts)
        shown = [zero_cotangent(a) if c is None else c for c, a in zip(cts_in, avals, strict=True)]
        return tree.tree_unflatten(in_tree, shown)  # type: ignore[no-any-return]

    return transposed


__all__ = ["Pullback", "jvp", "linear_transpose", "linearize", "vjp"]
