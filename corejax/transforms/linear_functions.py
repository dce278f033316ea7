"""What `vjp` and `linearize` give: linear functions that are pytrees, whose leaves are their residuals.

So they may leave a function that is transformed and enter another: a rule of `custom_vjp` may keep a pullback for its
backward pass, `vmap` of `vjp` gives a batch of pullbacks, `jit` takes and returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import dtypes, tree
from corejax.core.avals import ShapedArray, get_aval
from corejax.interpreters.debug_info import fun_name
from corejax.interpreters.jvp import as_tangent
from corejax.interpreters.linearize import LinearCall, LinearProgram, LinearTape
from corejax.interpreters.transposition import zero_cotangent
from corejax.messages.tracebacks import api_boundary
from corejax.transforms.flattening import arg_names, float0, leaf_names, leaves_like


def differentiable(aval: ShapedArray) -> bool:
    """Whether values of a type have tangents: floats and complex numbers."""
    return dtypes.is_inexact(aval.dtype)


def checked(
    what: str,
    avals: Sequence[ShapedArray],
    given: Sequence[Any],
    names: Callable[[], list[str]],
    integers: bool = False,
) -> list[Any]:
    """Tangents or cotangents of values of these types; None for zero and for those of integers and booleans.

    With `integers` those of integers are integers. `what` begins messages: "jvp of f: the tangent".
    """
    return [
        None if x is None else _checked_one(what, a, x, names, i, integers)
        for i, (a, x) in enumerate(zip(avals, given, strict=True))
    ]


def _checked_one(what: str, aval: ShapedArray, x: Any, names: Callable[[], list[str]], i: int, integers: bool) -> Any:
    if not integers and not differentiable(aval):
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


def user_tangent(tangent: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as users see it: zeros made real, float0 for integers."""
    if tangent is not None:
        return tangent
    return zero_cotangent(aval) if differentiable(aval) else np.zeros(aval.shape, float0)


class Signature(NamedTuple):
    """The function that a linear function is derived from: itself for messages, types and structure of its values."""

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

    def tree_flatten(self) -> tuple[Sequence[Any], tuple[Signature, LinearProgram]]:
        """The residuals, and everything else."""
        return self._call.residuals, (self._signature, self._call.program)

    @classmethod
    def tree_unflatten(cls, metadata: tuple[Signature, LinearProgram], residuals: Sequence[Any]) -> Any:
        """The same function with other residuals."""
        signature, program = metadata
        return cls(signature, LinearCall(program, residuals))


def checked_cotangent(
    what: str, cts: tuple[Any, ...], avals: Sequence[ShapedArray], out_tree: Any, integers: bool = False
) -> list[Any]:
    """Leaves of the one argument of a function (named by `what`) that takes a cotangent; the others as in `checked`.

    Raises:
        TypeError: it is not the only argument, or has not the structure, shapes and dtypes of the output.
    """
    if len(cts) != 1:
        advice = "the cotangent of the output; where that is a tuple, a tuple of them"
        raise TypeError(f"{what} takes one argument ({advice}), got {len(cts)}")
    given = leaves_like(
        out_tree, cts[0], lambda got: f"{what} takes a cotangent of the output's structure\n  {out_tree}\ngot\n  {got}"
    )
    return checked(f"{what}: the cotangent", avals, given, lambda: leaf_names(out_tree, "output"), integers)


@tree.register_pytree_node_class
class Pullback(_LinearFunction):
    """The function from output cotangents to input cotangents that `vjp` gives; a pytree of its residuals."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *cts: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments, from one argument: the output's.

        Raises:
            TypeError: it has not the structure, shapes and dtypes of the function's output, or is not the only one.
        """
        fun, avals_in, avals_out, in_tree, out_tree = self._signature
        real = checked_cotangent(f"the pullback of {fun_name(fun)}", cts, avals_out, out_tree)
        shown = [user_tangent(c, a) for c, a in zip(self._call.pull(real), avals_in, strict=True)]
        return tree.tree_unflatten(in_tree, shown)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<pullback of {fun_name(self._signature.fun)}>"


@tree.register_pytree_node_class
class Pushforward(_LinearFunction):
    """The function from input tangents to output tangents that `linearize` gives; a pytree of its residuals."""

    __slots__ = ()

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        """The output's tangent.

        Raises:
            TypeError: the tangents have not the structure, shapes and dtypes of the function's arguments.
        """
        fun, avals_in, avals_out, in_tree, out_tree = self._signature
        what = f"the linear function of {fun_name(fun)}"
        given = leaves_like(
            in_tree, tangents, lambda got: f"{what} takes tangents of structure\n  {in_tree}\ngot\n  {got}"
        )
        real = checked(f"{what}: the tangent", avals_in, given, lambda: arg_names(fun, in_tree))
        pushed = self._call.push(
            [zero_cotangent(a) if t is None and differentiable(a) else t for t, a in zip(real, avals_in, strict=True)]
        )
        return tree.tree_unflatten(out_tree, [user_tangent(t, a) for t, a in zip(pushed, avals_out, strict=True)])

    def __repr__(self) -> str:
        return f"<linear function of {fun_name(self._signature.fun)}>"
