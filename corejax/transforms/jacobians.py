"""`jacfwd`, `jacrev` and `hessian`: `jvp` and `vjp` along a whole basis at once, by `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes, tree
from corejax.core.array import Array
from corejax.core.avals import get_aval
from corejax.core.structural import structural
from corejax.interpreters.debug_info import fun_name, named_as
from corejax.messages.tracebacks import api_boundary
from corejax.transforms.autodiff import jvp, vjp
from corejax.transforms.flattening import check_function, float0
from corejax.transforms.gradients import Argnums, Chosen, Differentiation
from corejax.transforms.vmapping import vmap


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """The standard basis of the space of several arrays: for each, an array with the whole basis as leading axis."""
    avals = [get_aval(x) for x in leaves]
    total = sum(a.size for a in avals)
    out = []
    start = 0
    for a in avals:
        rows = np.zeros((total, a.size), a.dtype)
        rows[start : start + a.size] = np.eye(a.size, dtype=a.dtype)
        out.append(Array(rows.reshape(total, *a.shape)))
        start += a.size
    return out


def _split(x: Any, axis: int, leaves: Sequence[Any]) -> list[Any]:
    """Cut the basis axis (-1: the last) of `x` into the shapes of the leaves."""
    out = []
    start = 0
    no_tangent = getattr(x, "dtype", None) == float0
    shape = x.shape if no_tangent else get_aval(x).shape
    axis %= len(shape)
    reshape = np.reshape if no_tangent else structural.reshape
    for leaf in leaves:
        aval = get_aval(leaf)
        part = _slice_axis(x, start, start + aval.size, axis)
        out.append(reshape(part, (*shape[:axis], *aval.shape, *shape[axis + 1 :])))
        start += aval.size
    return out


def _slice_axis(x: Any, start: int, stop: int, axis: int) -> Any:
    if start == 0 and stop == x.shape[axis]:
        return x
    return x[(slice(None),) * axis + (slice(start, stop),)]


def jacfwd(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one tangent for each element of the input, batched; good for few inputs.

    Args:
        fun: function of arrays (in pytrees).
        argnums: positional argument, or several, to differentiate by.
        has_aux: `fun` returns `(out, aux)`; the result is then `(jacobian, aux)`.
        holomorphic: `fun` is holomorphic.

    Returns:
        A function that gives the Jacobian: the structure of the output with that of the input inside; each leaf has
        the shape of the output followed by that of the input.

    Raises:
        TypeError: an input is not real floating-point (complex with `holomorphic`).
    """
    check_function("jacfwd", fun)
    asked = Differentiation("jacfwd", fun, argnums, has_aux, holomorphic, False)

    @api_boundary
    @named_as(fun)
    def jacobian_forward(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(asked, args, kwargs)
        partial = chosen.named()

        def push(*tangents: Any) -> Any:
            result = jvp(partial, chosen.wanted, chosen.in_tree.unflatten(tangents), has_aux=has_aux)
            return result[1], (result[2] if has_aux else None)

        tangents_out, aux = vmap(push, out_axes=(-1, None))(*_basis(chosen.leaves))
        outs, out_tree = tree.tree_flatten(tangents_out)
        per_out = [chosen.select(chosen.in_tree.unflatten(_split(x, -1, chosen.leaves))) for x in outs]
        jacobian = tree.tree_unflatten(out_tree, per_out)
        return (jacobian, aux) if has_aux else jacobian

    return jacobian_forward


def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one cotangent for each element of the output, batched; good for few outputs.

    Arguments, result and errors as `jacfwd`.
    """
    check_function("jacrev", fun)
    asked = Differentiation("jacrev", fun, argnums, has_aux, holomorphic, allow_int)

    @api_boundary
    @named_as(fun)
    def jacobian_reverse(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(asked, args, kwargs)
        result = vjp(chosen.named(), *chosen.wanted, has_aux=has_aux)
        outs, out_tree = tree.tree_flatten(result[0])
        for y in outs:
            _check_jacrev_output(fun, get_aval(y).dtype, holomorphic)
        pullback = result[1]

        def pull_back(*cts: Any) -> Any:
            return pullback(tree.tree_unflatten(out_tree, cts))

        cts_in = vmap(pull_back, in_axes=0)(*_basis(outs))
        columns = [_split(x, 0, outs) for x in tree.tree_leaves(cts_in)]
        per_out = [chosen.select(chosen.in_tree.unflatten([c[k] for c in columns])) for k in range(len(outs))]
        jacobian = tree.tree_unflatten(out_tree, per_out)
        return (jacobian, result[2]) if has_aux else jacobian

    return jacobian_reverse


def _check_jacrev_output(fun: Any, dtype: Any, holomorphic: bool) -> None:
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(f"jacrev with holomorphic=True needs complex outputs, but {fun_name(fun)} returns {dtype.name}")
    if not holomorphic and not dtypes.is_float(dtype):
        raise TypeError(f"jacrev needs real floating-point outputs, but {fun_name(fun)} returns {dtype.name}")


jacobian = jacrev


def hessian(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Hessian, forward mode over reverse mode: `jacfwd(jacrev(fun))`."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
