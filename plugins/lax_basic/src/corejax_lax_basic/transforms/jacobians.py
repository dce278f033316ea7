"""`jacfwd`, `jacrev` and `hessian`: `jvp` and `vjp` along a whole basis at once, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from corejax import jvp, vjp, vmap
from corejax.extend import Array, ShapedArray, dtypes, get_aval, tree
from corejax.extend.transforms import Differentiation, differentiated, float0, named_as, structural, tangent_aval
from corejax.extend.types import ValueType
from corejax_lax_basic.values.pack import pack, unpack

Argnums = int | Sequence[int]
P = ParamSpec("P")
Aux = TypeVar("Aux")


def _tangent_types(leaves: Sequence[Any]) -> list[ShapedArray]:
    return [tangent_aval(get_aval(x)) for x in leaves]


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """Return the standard basis of the tangents of several values: for each, the basis along a new leading axis.

    The basis of a value type that is its own tangent type consists of the elements of the arrays that store it.
    """
    types = _tangent_types(leaves)
    total = sum(part.size for t in types for part in t.parts())
    out = []
    start = 0
    for t in types:
        parts = []
        for part in t.parts():
            rows = np.zeros((total, part.size), part.dtype)
            rows[start : start + part.size] = np.eye(part.size, dtype=part.dtype)
            parts.append(Array(rows.reshape(total, *part.shape)))
            start += part.size
        out.append(_packed(t, parts, 1))
    return out


def _packed(element: ShapedArray, parts: Sequence[Any], ndim: int) -> Any:
    """Return a batch of values with `ndim` leading axes from the arrays that store it."""
    if not isinstance(element, ValueType):
        return parts[0]
    pack_batch: Callable[..., Any] = functools.partial(pack, element)
    for _ in range(ndim):
        pack_batch = vmap(pack_batch)
    return pack_batch(*parts)


def _split(x: Any, axis: int, leaves: Sequence[Any]) -> list[Any]:
    """Cut the basis axis (0, or -1 for the last) of `x` into the shapes of the leaves' tangents."""
    types = _tangent_types(leaves)
    no_tangent = getattr(x, "dtype", None) == float0
    aval = x if no_tangent else get_aval(x)
    if isinstance(aval, ValueType):
        element, columns = aval.update(shape=aval.shape[1:]), [_split(part, 0, leaves) for part in vmap(unpack)(x)]
        return [_packed(element, parts, t.ndim) for t, parts in zip(types, zip(*columns, strict=True), strict=True)]
    out = []
    start = 0
    shape = aval.shape
    axis %= len(shape)
    reshape = np.reshape if no_tangent else structural.reshape
    for t in types:
        parts = []
        for a in t.parts():
            part = _slice_axis(x, start, start + a.size, axis)
            parts.append(reshape(part, (*shape[:axis], *a.shape, *shape[axis + 1 :])))
            start += a.size
        out.append(_packed(t, parts, axis))
    return out


def _check_outputs(asked: Differentiation, tangents: Sequence[ShapedArray]) -> None:
    """Raise TypeError if an output is of a value type that is its own tangent type."""
    for aval in tangents:
        if isinstance(aval, ValueType):
            raise TypeError(
                f"{asked.transform} of {asked.fun_name}: derivatives of the output have the type {aval.str_short()}, "
                "which cannot have the axes of an input behind its own. Differentiate a function of the arrays that "
                "store values: let it take them (corejax.lax.pack) and return them (corejax.lax.unpack)"
            )


def _slice_axis(x: Any, start: int, stop: int, axis: int) -> Any:
    if start == 0 and stop == x.shape[axis]:
        return x
    return x[(slice(None),) * axis + (slice(start, stop),)]


def _function_of(chosen: Any) -> Callable[..., Any]:
    """Return the function of the chosen arguments, named after the user's function."""
    return named_as(chosen.asked.fun)(lambda *wanted: chosen.call(*wanted))


@overload
def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Return the Jacobian of `fun` by forward mode: a tangent per input element, batched; best for few inputs.

    Args:
        fun: function of arrays (in pytrees).
        argnums: positional argument, or several, to differentiate with respect to.
        has_aux: whether `fun` returns `(out, aux)`; the result is then `(jacobian, aux)`.
        holomorphic: whether `fun` is holomorphic.

    Returns:
        A function that computes the Jacobian: the structure of the output with that of the input inside; each leaf has
        the shape of the output followed by that of the input. For an input of a value type, it has the shape of the
        input's tangents, and is a batch of these, as the gradient of each element of the output.

    Raises:
        TypeError: an input is not real floating-point (complex with `holomorphic`), or derivatives of an output are of
            a value type.
    """
    return differentiated(Differentiation("jacfwd", fun, argnums, has_aux, holomorphic, forward=True), _forward)


def _forward(chosen: Any) -> Any:
    partial, has_aux = _function_of(chosen), chosen.asked.has_aux

    def push(*tangents: Any) -> Any:
        result = jvp(partial, chosen.wanted, chosen.in_tree.unflatten(tangents), has_aux=has_aux)
        _check_outputs(chosen.asked, [get_aval(t) for t in tree.tree_leaves(result[1])])
        return result[1], (result[2] if has_aux else None)

    tangents_out, aux = vmap(push, out_axes=(-1, None))(*_basis(chosen.leaves))
    outs, out_tree = tree.tree_flatten(tangents_out)
    per_out = [chosen.select(chosen.in_tree.unflatten(_split(x, -1, chosen.leaves))) for x in outs]
    jacobian = tree.tree_unflatten(out_tree, per_out)
    return (jacobian, aux) if has_aux else jacobian


@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return the Jacobian of `fun` by reverse mode: a cotangent per output element, batched; best for few outputs.

    Args:
        fun: as in `jacfwd`.
        argnums: as in `jacfwd`.
        has_aux: as in `jacfwd`.
        holomorphic: as in `jacfwd`.
        allow_int: whether integer inputs are accepted; their derivatives have the dtype `float0`.

    Returns:
        A function that computes the Jacobian, as `jacfwd` does.

    Raises:
        TypeError: an input or output is not real floating-point (complex with `holomorphic`), or derivatives of an
            output are of a value type.
    """
    return differentiated(Differentiation("jacrev", fun, argnums, has_aux, holomorphic, allow_int), _reverse)


def _reverse(chosen: Any) -> Any:
    asked = chosen.asked
    value, pullback, *aux = vjp(_function_of(chosen), *chosen.wanted, has_aux=asked.has_aux)
    outs, out_tree = tree.tree_flatten(value)
    for y in outs:
        dtype = get_aval(y).dtype
        if not (dtypes.is_complex if asked.holomorphic else dtypes.is_float)(dtype):
            needs = "with holomorphic=True needs complex" if asked.holomorphic else "needs real floating-point"
            raise TypeError(f"jacrev {needs} outputs, but {asked.fun_name} returns {dtype.name}")

    _check_outputs(asked, _tangent_types(outs))

    def pull_back(*cts: Any) -> Any:
        return pullback(tree.tree_unflatten(out_tree, cts))

    cts_in = vmap(pull_back, in_axes=0)(*_basis(outs))
    columns = [_split(x, 0, outs) for x in tree.tree_leaves(cts_in)]
    per_out = [chosen.select(chosen.in_tree.unflatten([c[k] for c in columns])) for k in range(len(outs))]
    jacobian = tree.tree_unflatten(out_tree, per_out)
    return (jacobian, *aux) if asked.has_aux else jacobian


jacobian = jacrev


@overload
def hessian(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def hessian(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]:
    """Return the Hessian of `fun`, by forward mode over reverse mode: `jacfwd(jacrev(fun))`."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
