"""`jvp`, `linearize`, `vjp`, `linear_transpose`: differentiation of functions on pytrees.

`vjp` and `linearize` return linear functions that are pytrees; the leaves are their residuals. A transformed function
can therefore return a linear function or take one as an argument: the forward rule of a `custom_vjp` may save a
pullback for the backward pass, `vmap` of `vjp` returns a batch of pullbacks, and `jit` takes and returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import dtypes, tree
from corejax.arrays.array import Value, as_array
from corejax.arrays.cells import cell_arguments, refuse_cells
from corejax.core.avals import Avals, Operands, ShapedArray, get_aval
from corejax.core.trace import in_scope
from corejax.interpreters.jvp import as_tangent, jvp_flat
from corejax.interpreters.linearize import LinearCall, LinearProgram, LinearTape, linearize_flat
from corejax.interpreters.staging import stage
from corejax.interpreters.transposition import UndefPrimal, backward_pass, zero_cotangent
from corejax.ir.debug_info import DebugInfo, fun_name
from corejax.messages.source_info import JVP, TRANSPOSE
from corejax.messages.tracebacks import api_boundary
from corejax.programs.splitting import unzipped
from corejax.transforms.flattening import (
    FlatFunction,
    Names,
    abstractified,
    arg_names,
    check_arguments,
    check_function,
    float0,
    leaf_names,
    leaves_like,
)


@api_boundary
def jvp(fun: Callable[..., object], primals: Operands, tangents: Operands, has_aux: bool = False) -> Any:
    """Compute a Jacobian-vector product: `f(x)` and the derivative of `f` at `x` along a tangent.

    Args:
        fun: function of arrays (in pytrees).
        primals: tuple or list of the arguments at which `fun` is differentiated.
        tangents: the direction, with the structure, shapes and dtypes of `primals`; None or float0 for integers.
        has_aux: if True, `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, tangent_out)`, or `(out, tangent_out, aux)` if `has_aux`.

    Raises:
        TypeError: primals and tangents differ in structure, shape or dtype.
    """
    check_function("jvp", fun)
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple | list):
            raise TypeError(f"jvp: {name} must be a tuple or list with an entry for each argument, got {value!r}")
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments("jvp", fun, leaves, lambda: arg_names(fun, in_tree))
    refuse_cells("jvp", primals)
    tangent_leaves = leaves_like(
        in_tree,
        tangents,
        lambda got: (
            f"jvp of {fun_name(fun)}: primals and tangents differ in structure:\n"
            f"  primals:  {in_tree}\n  tangents: {got}"
        ),
    )
    what = f"jvp of {fun_name(fun)}: the tangent"
    real = checked(what, [get_aval(x) for x in leaves], tangent_leaves, lambda: arg_names(fun, in_tree))
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    outs, tangents_out = jvp_flat(in_scope(JVP, flat), leaves, real, DebugInfo(fun, "jvp"))
    n = flat.num_out
    shown = [user_tangent(t, get_aval(x)) for t, x in zip(tangents_out[:n], outs[:n], strict=True)]
    return _results(flat, outs, tree.tree_unflatten(flat.out_tree, shown))


def _results(flat: FlatFunction, outs: Operands, derivative: object) -> tuple[Any, ...]:
    """Return `(out, derivative)`, or `(out, derivative, aux)`."""
    n = flat.num_out
    out = tree.tree_unflatten(flat.out_tree, [as_array(x) for x in outs[:n]])
    return (out, derivative) if flat.aux is None else (out, derivative, flat.aux.unflatten(outs[n:]))


@api_boundary
def linearize(fun: Callable[..., object], *primals: object, has_aux: bool = False) -> Any:
    """Compute `f(x)` and the derivative of `f` at `x` as a linear function. Its residuals are computed once.

    Args:
        fun: function of arrays (in pytrees).
        primals: the arguments at which `fun` is linearised.
        has_aux: if True, `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, f_lin)`, or `(out, f_lin, aux)` if `has_aux`; `f_lin(*tangents)` returns the output tangent.

    Raises:
        TypeError: an argument is not an array; in `f_lin`, a tangent has another structure, shape or dtype.
    """
    return _linear_at("linearize", Pushforward, fun, primals, has_aux)


@api_boundary
def vjp(fun: Callable[..., object], *primals: object, has_aux: bool = False) -> Any:
    """Compute `f(x)` and the pullback of `f` at `x`, which computes vector-Jacobian products.

    Args:
        fun: function of arrays (in pytrees).
        primals: the arguments at which `fun` is differentiated.
        has_aux: if True, `fun` returns `(out, aux)`; aux is not differentiated.

    Returns:
        `(out, f_vjp)`, or `(out, f_vjp, aux)` if `has_aux`; `f_vjp(ct)` returns a tuple with a cotangent for each
        argument (float0 zeros for integers).

    Raises:
        TypeError: an argument is not an array.
    """
    return _linear_at("vjp", Pullback, fun, primals, has_aux)


def _linear_at(transform: str, kind: Any, fun: Any, primals: tuple[object, ...], has_aux: bool) -> Any:
    """Return `f(x)`, the derivative at `x` as a `kind` of linear function, and aux if `has_aux`."""
    check_function(transform, fun)
    leaves, in_tree = tree.tree_flatten(primals)
    check_arguments(transform, fun, leaves, lambda: arg_names(fun, in_tree))
    refuse_cells(transform, primals)
    avals_in = tuple(get_aval(x) for x in leaves)
    flat = FlatFunction(fun, in_tree, has_aux=has_aux)
    active = [a.has_tangents for a in avals_in]
    outs, tape = linearize_flat(in_scope(JVP, flat), leaves, active, DebugInfo(fun, transform))
    tape.outs = tape.outs[: flat.num_out]
    avals_out = tuple(get_aval(x) for x in outs[: flat.num_out])
    return _results(flat, outs, kind(Signature(fun, avals_in, avals_out, in_tree, flat.out_tree), tape))


@api_boundary
def linear_transpose(fun: Callable[..., object], *primals: object) -> Callable[[Any], tuple[Any, ...]]:
    """Transpose a function that is linear in all of its arguments.

    Args:
        fun: the linear function. It may be a function of integers; the cotangents are then integers.
        primals: arrays or `ShapeDtypeStruct`s; only their types are used.

    Returns:
        The function from a cotangent of the output to a tuple of cotangents of the arguments. It is a pytree; its
        leaves are the arrays that `fun` closes over.

    Raises:
        TypeError: arguments and results are neither all floating-point or complex nor all integers, or `fun` is not
            linear.
    """
    check_function("linear_transpose", fun)
    leaves, in_tree = tree.tree_flatten(primals)
    avals = abstractified("linear_transpose", fun, leaves, lambda: arg_names(fun, in_tree))
    flat = FlatFunction(fun, in_tree)
    debug = DebugInfo(fun, "linear_transpose", tree.tree_structure((primals, {})))
    jaxpr, consts = stage(flat, avals, debug)
    integers = all(dtypes.is_integer(a.dtype) for a in (*avals, *jaxpr.out_avals))
    for i, aval in enumerate(avals):
        if not integers and not aval.has_tangents:
            raise TypeError(
                f"linear_transpose of {fun_name(fun)}: argument {arg_names(fun, in_tree)[i]} has dtype "
                f"{aval.dtype.name}, which has no cotangents unless all arguments and results are integers"
            )
    # A loop carries a counter, which is not linear, beside values that may be. `unzipped` separates the two.
    jaxpr = unzipped(jaxpr, [True] * len(avals)) or jaxpr
    out_tree = flat.out_tree

    @api_boundary
    def transposed(consts: Operands, *cts: object) -> tuple[Any, ...]:
        real = checked_cotangent(f"the transpose of {fun_name(fun)}", cts, jaxpr.out_avals, out_tree, integers)
        cts_in = in_scope(TRANSPOSE, backward_pass)(jaxpr, consts, [UndefPrimal(a) for a in avals], real)
        shown = [zero_cotangent(a) if c is None else c for c, a in zip(cts_in, avals, strict=True)]
        return tree.tree_unflatten(in_tree, shown)  # type: ignore[no-any-return]  # the tree is a tuple

    return tree.Partial(transposed, consts)


# -- linear functions as values; tangents in the form that users see ---------------------------------------------------


def checked(what: str, avals: Avals, values: Operands, names: Names, integers: bool = False) -> list[Any]:
    """Check a user's tangents or cotangents, and return None for zeros and for those of integers and booleans.

    If `integers`, tangents of integers are integers. `what` begins messages: "jvp of f: the tangent".
    """
    return [
        None if x is None else _checked_one(what, a, x, names, i, integers)
        for i, (a, x) in enumerate(zip(avals, values, strict=True))
    ]


def _checked_one(what: str, aval: ShapedArray, x: object, names: Names, i: int, integers: bool) -> Any:
    if not integers and not aval.has_tangents:
        if getattr(x, "dtype", None) == float0:
            return None
        raise TypeError(
            f"{what} of {names()[i]} must be None or of dtype float0, since the value has dtype {aval.dtype.name}; "
            f"got {x!r}"
        )
    try:
        aval, got = aval.tangent_type(), get_aval(x)
    except TypeError as error:
        raise TypeError(f"{what} of {names()[i]}: {error}") from None
    fits = got.dtype == aval.dtype or (got.weak_type and dtypes.is_complex(got.dtype) <= dtypes.is_complex(aval.dtype))
    if not fits or got.update(dtype=aval.dtype, weak_type=False).refined(None) is not aval.refined(None):
        raise TypeError(
            f"{what} of {names()[i]} has type {got.str_short(short_dtypes=False)}, but the value has type "
            f"{aval.str_short(short_dtypes=False)}; shape and dtype must be the same"
        )
    return as_tangent(x, aval)


def user_tangent(tangent: object, aval: ShapedArray) -> Any:
    """Convert a tangent or cotangent to the form that users see: None to an array of zeros, float0 for integers."""
    if tangent is not None:
        return tangent
    return zero_cotangent(aval) if aval.has_tangents else np.zeros(aval.shape, float0)


class Signature(NamedTuple):
    """The function that a linear function is derived from, and the types and structures of its inputs and outputs."""

    fun: Any
    avals_in: tuple[ShapedArray, ...]
    avals_out: tuple[ShapedArray, ...]
    in_tree: Any
    out_tree: Any


class _LinearFunction:
    __slots__ = ("_call", "_signature")

    def __init__(self, signature: Signature, call: LinearTape | LinearCall):
        self._signature = signature
        self._call = call

    def tree_flatten(self) -> tuple[Sequence[Value], tuple[Signature, LinearProgram]]:
        """Return the residuals as children, and the signature and the program as metadata."""
        return self._call.residuals, (self._signature, self._call.program)

    @classmethod
    def tree_unflatten(cls, metadata: tuple[Signature, LinearProgram], residuals: Sequence[Value]) -> _LinearFunction:
        """Build the function with these residuals."""
        signature, program = metadata
        return cls(signature, LinearCall(program, residuals))


def checked_cotangent(what: str, cts: Operands, avals: Avals, out_tree: Any, integers: bool = False) -> list[Any]:
    """Check the cotangent that a linear function (named by `what`) is called with, and return its leaves.

    Raises:
        TypeError: `cts` has other than one entry, or its structure, shapes or dtypes differ from the output's.
    """
    if len(cts) != 1:
        advice = "the cotangent of the output; a tuple of cotangents if the output is a tuple"
        raise TypeError(f"{what} takes one argument ({advice}), got {len(cts)}")
    leaves = leaves_like(
        out_tree, cts[0], lambda got: f"{what} takes a cotangent of the output's structure\n  {out_tree}\ngot\n  {got}"
    )
    return checked(f"{what}: the cotangent", avals, leaves, lambda: leaf_names(out_tree, "output"), integers)


@tree.register_pytree_node_class
class Pullback(_LinearFunction):
    """The function from output cotangents to input cotangents that `vjp` returns; a pytree of its residuals."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *cts: object) -> tuple[Any, ...]:
        """Return the cotangents of the function's arguments for one argument, the cotangent of the output.

        Raises:
            TypeError: there is more than one argument, or its structure, shapes or dtypes differ from the output's.
        """
        fun, avals_in, avals_out, in_tree, out_tree = self._signature
        real = checked_cotangent(f"the pullback of {fun_name(fun)}", cts, avals_out, out_tree)
        shown = [user_tangent(c, a) for c, a in zip(self._call.pull(real), avals_in, strict=True)]
        return tree.tree_unflatten(in_tree, shown)  # type: ignore[no-any-return]  # the tree is a tuple

    def with_refs(self, *places: Any) -> Callable[[Any], tuple[Any, ...]]:
        """Return the pullback that adds cotangents to references, one for each argument, in place of returning them."""
        return lambda ct: cell_arguments.get().accumulate(self(ct), places)

    def __repr__(self) -> str:
        return f"<pullback of {fun_name(self._signature.fun)}>"


@tree.register_pytree_node_class
class Pushforward(_LinearFunction):
    """The function from input tangents to output tangents that `linearize` returns; a pytree of its residuals."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *tangents: object) -> Any:
        """Return the tangent of the output for tangents of the arguments.

        Raises:
            TypeError: structure, shapes or dtypes of the tangents differ from those of the function's arguments.
        """
        fun, avals_in, avals_out, in_tree, out_tree = self._signature
        what = f"the linear function of {fun_name(fun)}"
        leaves = leaves_like(
            in_tree, tangents, lambda got: f"{what} takes tangents of structure\n  {in_tree}\ngot\n  {got}"
        )
        real = checked(f"{what}: the tangent", avals_in, leaves, lambda: arg_names(fun, in_tree))
        pushed = self._call.push(
            [zero_cotangent(a) if t is None and a.has_tangents else t for t, a in zip(real, avals_in, strict=True)]
        )
        return tree.tree_unflatten(out_tree, [user_tangent(t, a) for t, a in zip(pushed, avals_out, strict=True)])

    def __repr__(self) -> str:
        return f"<linear function of {fun_name(self._signature.fun)}>"
