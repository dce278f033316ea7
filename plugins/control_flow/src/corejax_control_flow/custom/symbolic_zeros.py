"""Symbolic zeros, as users' rules receive and return them, and checks of the results of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import ShapedArray, as_array, dtypes, get_aval, leaf_names
from corejax.extend import tree as pytrees
from corejax.extend.transforms import as_tangent, float0, leaves_like, structural
from corejax_control_flow.programs.messages import shown, typed_tree, typed_value
from corejax_control_flow.programs.weak_types import same_but_weak_type, same_class


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, for rules with `symbolic_zeros=True`."""

    __slots__ = ("_aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self._aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Dtype of the zero: the value's if it is inexact, else `float0`."""
        return self._aval.dtype if dtypes.is_inexact(self._aval.dtype) else float0

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._aval.ndim

    def instantiate(self) -> Any:
        """Return the zeros as an array."""
        return real_zero(self._aval)

    def __repr__(self) -> str:
        return f"SymbolicZero({shown(self._aval)})"


class CustomVJPPrimal:
    """An argument of the forward pass of a rule with `symbolic_zeros=True`.

    Attributes:
        value: the value.
        perturbed: True if the call is differentiated with respect to the value.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def real_zero(aval: ShapedArray) -> Any:
    """Return an array of zeros as tangents of a type: `float0` if its dtype is not inexact."""
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, float0)
    return structural.zeros(aval.strip_weak_type())


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return zero tangents for a pytree of values, as a rule returns them for results without a derivative.

    Args:
        val: pytree of arrays.
        symbolic_zeros: if True, return `SymbolicZero`s, which allocate nothing. If False, return arrays, which are
            `float0` for integers and booleans.

    Raises:
        TypeError: if a leaf is not an array.
    """
    zero = SymbolicZero if symbolic_zeros else real_zero
    return pytrees.tree_map(lambda x: zero(get_aval(x)), val)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return the values of a pytree of `CustomVJPPrimal`s, the arguments of a forward pass with `symbolic_zeros=True`.

    Raises:
        TypeError: if a leaf is not a `CustomVJPPrimal`.
    """

    def value(x: Any) -> Any:
        if type(x) is not CustomVJPPrimal:
            raise TypeError(
                f"custom_vjp_primal_tree_values takes a pytree of CustomVJPPrimals, got a {type(x).__name__}"
            )
        return x.value

    return pytrees.tree_map(value, tree)


def for_rule(x: Any, aval: ShapedArray, symbolic: bool) -> Any:
    """Convert a tangent or cotangent (None for zero) to an argument of a user's rule."""
    if x is not None:
        return x
    return SymbolicZero(aval) if symbolic else real_zero(aval)


def is_zero(x: Any) -> bool:
    """Return whether a rule's result is a symbolic zero: None, a `SymbolicZero` or of dtype `float0`."""
    return x is None or isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0


# -- results of rules ----------------------------------------------------------------------------------------


def checked_linear(
    what: Callable[[], str], avals: Sequence[ShapedArray], tangents: Sequence[Any], names: Callable[[], Sequence[str]]
) -> list[Any]:
    """Check tangents or cotangents from a rule, and convert them to the tangent types of values.

    Args:
        what: returns the name of the tangents, for messages.
        avals: types of the values.
        tangents: tangent or cotangent of each value, or a symbolic zero.
        names: returns names of the values, for messages.

    Returns:
        The tangents; zeros as None.

    Raises:
        TypeError: if a tangent has the wrong type. The message names the value and both types.
    """
    out: list[Any] = []
    for i, (aval, x) in enumerate(zip(avals, tangents, strict=True)):
        if is_zero(x):
            if x is not None and tuple(x.shape) != aval.shape:
                raise TypeError(
                    f"{what()} has zeros of shape {tuple(x.shape)} for {names()[i]}, which is {shown(aval)}"
                )
            out.append(None)
            continue
        try:
            got = get_aval(x)
        except TypeError as error:
            raise TypeError(f"{what()} for {names()[i]}: {error}") from None
        expected = aval.dtype if dtypes.is_inexact(aval.dtype) else float0
        weaker = expected != float0 and got.weak_type and dtypes.is_complex(got.dtype) <= dtypes.is_complex(aval.dtype)
        unlike = not same_class(got, aval.tangent_type())
        if unlike or got.shape != aval.shape or not (got.dtype == expected or weaker):
            kind = shown(aval.tangent_type()) if dtypes.is_inexact(aval.dtype) else "None or float0 zeros"
            castable = dtypes.is_inexact(aval.dtype) and got.shape == aval.shape and not unlike
            advice = f" (.astype('{aval.dtype.name}'))" if castable else ""
            raise TypeError(
                f"{what()} has type {shown(got)} for {names()[i]}, which is {shown(aval)}: it must be {kind}{advice}"
            )
        out.append(as_tangent(x, aval))
    return out


def unflattened_like(what: Callable[[], str], treedef: Any, value: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Return the leaves of a rule's result, which must have the structure `treedef`; None stands for a zero.

    Raises:
        TypeError: if the structure differs. The message shows both structures.
    """

    def mismatch(got: Any) -> str:
        return (
            f"{what()} has the structure\n  {typed_value(value)}\nit must have the structure\n  "
            f"{typed_tree(treedef, avals)}"
        )

    return leaves_like(treedef, value, mismatch)


def check_primals(
    what: Callable[[], str], treedef: Any, avals: Sequence[ShapedArray], out_tree: Any, outs: Sequence[Any]
) -> None:
    """Check that a rule's result has the structure and types of the function's result.

    Raises:
        TypeError: if structure, shape or dtype differ. The message names the leaf and both types.
    """
    got = [get_aval(x) for x in outs]
    if treedef != out_tree:
        raise TypeError(
            f"{what()} returns a result of another structure than the function:\n"
            f"  rule:     {typed_tree(out_tree, got)}\n  function: {typed_tree(treedef, avals)}"
        )
    for i, (a, b) in enumerate(zip(got, avals, strict=True)):
        if not same_but_weak_type(a, b):
            name = leaf_names(treedef, "result")[i]
            raise TypeError(f"{what()} returns {name} of type {shown(a)}, the function of type {shown(b)}")


def with_types(outs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Convert a rule's results to the weak types of the program's results."""
    return [_with_weak_type(x, aval) for x, aval in zip(outs, avals, strict=True)]


def _with_weak_type(x: Any, aval: ShapedArray) -> Any:
    if get_aval(x).weak_type == aval.weak_type:
        return x
    from corejax_lax_basic import lax

    return lax.convert_element_type_p.bind(as_array(x), new_dtype=aval.dtype, weak_type=aval.weak_type)
