"""`grad`, `value_and_grad` and the Jacobians, all from `linearize`, `transpose`, `jvp` and `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes, tree
from corejax.array import Array, as_array
from corejax.avals import ShapedArray, get_aval
from corejax.interpreters.debug_info import DebugInfo, fun_name
from corejax.interpreters.jvp import zeros_like
from corejax.interpreters.linearize import linearize_flat
from corejax.interpreters.transposition import pull
from corejax.source_info import JVP
from corejax.structural import structural
from corejax.trace import Tracer, escaped, in_scope
from corejax.tracebacks import api_boundary
from corejax.transforms.autodiff import _check_callable, jvp, vjp
from corejax.transforms.flattening import Aux, arg_names, check_argument, check_outputs, float0
from corejax.transforms.vmapping import vmap

Argnums = int | Sequence[int]


def _positions(transform: str, fun: Any, argnums: Argnums, count: int) -> tuple[int, ...]:
    """`argnums` as non-negative positions among `count` arguments."""
    if type(argnums) is int and 0 <= argnums < count:
        return (argnums,)
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    out = []
    for i in wanted:
        if not isinstance(i, int):
            raise TypeError(f"{transform}: argnums is an integer or a sequence of integers, got {argnums!r}")
        if not -count <= i < count:
            raise TypeError(
                f"{transform} of {fun_name(fun)} with argnums={argnums!r} needs positional argument {i}, but it was "
                f"called with {count} positional argument{'' if count == 1 else 's'}"
            )
        out.append(i % count)
    if len(set(out)) != len(out):
        raise ValueError(f"{transform} of {fun_name(fun)}: argnums={argnums!r} names an argument twice")
    return tuple(out)


def _check_input(transform: str, fun: Any, x: Any, name: Callable[[], str], holomorphic: bool, allow_int: bool) -> bool:
    """Whether a leaf is differentiated; refuses what cannot be."""
    if type(x) is not Array:
        check_argument(transform, fun, x, name)
    dtype = get_aval(x).dtype
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(
            f"{transform} with holomorphic=True takes complex inputs, but argument {name()} of {fun_name(fun)} is "
            f"{dtype.name}"
        )
    if dtypes.is_inexact(dtype):
        return True
    if allow_int:
        return False
    raise TypeError(
        f"{transform} takes real- or complex-valued inputs, but argument {name()} of {fun_name(fun)} is {dtype.name}. "
        "Convert it to a floating-point dtype, choose other argnums, or pass allow_int=True (then its gradient is "
        "float0)."
    )


def _check_scalar_output(transform: str, fun: Any, y: Any, holomorphic: bool) -> ShapedArray:
    if type(y) is not Array and not isinstance(y, Tracer):
        try:
            get_aval(y)
        except TypeError:
            raise TypeError(
                f"{transform} is only defined for functions with one scalar output, but {fun_name(fun)} returns {y!r}"
                + (" (for a pair (out, aux) pass has_aux=True)" if isinstance(y, tuple) else "")
            ) from None
    aval = get_aval(y)
    if aval.shape != ():
        raise TypeError(
            f"{transform} is only defined for scalar-output functions, but the output of {fun_name(fun)} has shape "
            f"{aval.shape}. "
            "Use jacrev or jacfwd, or reduce the output to a scalar."
        )
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{transform} with holomorphic=True needs a complex output, but {fun_name(fun)} returns {aval.dtype.name}"
        )
    if not holomorphic and not dtypes.is_float(aval.dtype):
        advice = (
            "For holomorphic functions pass holomorphic=True; otherwise use vjp."
            if dtypes.is_complex(aval.dtype)
            else "Its derivative is zero everywhere; return a floating-point value."
        )
        raise TypeError(
            f"{transform} needs a real floating-point output, but {fun_name(fun)} returns {aval.dtype.name}. {advice}"
        )
    return aval


class _ScalarFunction:
    """A function of some of its positional arguments' leaves: its value first, then the leaves of aux."""

    __slots__ = ("args", "aux", "fun", "has_aux", "holomorphic", "in_trees", "kwargs", "positions", "transform")

    def __init__(
        self,
        transform: str,
        fun: Any,
        args: Any,
        kwargs: Any,
        positions: Any,
        in_trees: Any,
        has_aux: bool,
        holomorphic: bool,
    ):
        self.transform = transform
        self.fun = fun
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        self.in_trees = in_trees
        self.has_aux = has_aux
        self.holomorphic = holomorphic
        self.aux = Aux()

    def __call__(self, *leaves: Any) -> list[Any]:
        args = list(self.args)
        start = 0
        for position, (treedef, count) in zip(self.positions, self.in_trees, strict=True):
            args[position] = (
                leaves[start] if treedef is None else tree.tree_unflatten(treedef, leaves[start : start + count])
            )
            start += count
        y = self.fun(*args, **self.kwargs)
        aux: list[Any] = []
        if self.has_aux:
            if not isinstance(y, tuple | list) or len(y) != 2:
                raise TypeError(f"with has_aux=True function {fun_name(self.fun)} returns a pair (out, aux), got {y!r}")
            y, value = y
            aux = self.aux.flatten(value)
        _check_scalar_output(self.transform, self.fun, y, self.holomorphic)
        if isinstance(y, Tracer) and not y._trace.alive:
            raise escaped(y, f"the result of function {fun_name(self.fun)}")
        return [y, *aux]


def _leaf_names(fun: Any, args: tuple[Any, ...], positions: tuple[int, ...]) -> list[str]:
    """Names of the leaves of the arguments at these positions."""
    names = arg_names(fun, tree.tree_structure(args))
    counts = [tree.tree_structure(a).num_leaves for a in args]
    starts = [sum(counts[:i]) for i in range(len(args))]
    return [name for p in positions for name in names[starts[p] : starts[p] + counts[p]]]


def _value_and_grad(
    transform: str,
    fun: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    args: Any,
    kwargs: Any,
) -> tuple[Any, Any, Any]:
    """Value, aux (or None) and gradient of one call."""
    positions = _positions(transform, fun, argnums, len(args))
    leaves: list[Any] = []
    in_trees: list[tuple[Any, int]] = []
    for position in positions:
        x = args[position]
        if type(x) is Array:
            leaves.append(x)
            in_trees.append((None, 1))
        else:
            new, treedef = tree.tree_flatten(x)
            leaves.extend(new)
            in_trees.append((treedef, len(new)))

    active = [
        _check_input(transform, fun, x, lambda i=i: _leaf_names(fun, args, positions)[i], holomorphic, allow_int)  # type: ignore[misc]
        for i, x in enumerate(leaves)
    ]
    flat = _ScalarFunction(transform, fun, args, kwargs, positions, in_trees, has_aux, holomorphic)
    outs, tape = linearize_flat(in_scope(JVP, flat), leaves, active, DebugInfo(fun, transform))
    value, aux = as_array(outs[0]), outs[1:]
    tape.outs = tape.outs[:1]
    if tape.outs[0] is None:
        cts: list[Any] = [None] * len(leaves)
    else:
        cts = pull(tape, [_one(get_aval(value).dtype)])
    shown = [
        ct if ct is not None else (zeros_like(x) if on else np.zeros(get_aval(x).shape, float0))
        for ct, x, on in zip(cts, leaves, active, strict=True)
    ]
    grads = []
    start = 0
    for treedef, count in in_trees:
        grads.append(shown[start] if treedef is None else tree.tree_unflatten(treedef, shown[start : start + count]))
        start += count
    gradient = grads[0] if isinstance(argnums, int) else tuple(grads)
    return value, (flat.aux.unflatten(aux) if has_aux else None), gradient


@functools.cache
def _one(dtype: np.dtype[Any]) -> Array:
    return Array(np.ones((), dtype))


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function.

    Args:
        fun: function whose output is one real floating-point scalar (complex with `holomorphic`).
        argnums: positional argument, or several, to differentiate by.
        has_aux: `fun` returns `(out, aux)`; the result is then `(gradient, aux)`.
        holomorphic: `fun` is holomorphic: complex inputs and output.
        allow_int: integer arguments are allowed; their gradients are float0 zeros.

    Returns:
        A function with the arguments of `fun` that gives the gradient, of the structure of the chosen argument
        (a tuple of them where `argnums` is a sequence).

    Raises:
        TypeError: the output is not a scalar or not floating-point, an input is an integer, or the call has no
            argument of a wanted position.
        ValueError: `argnums` names an argument twice.
    """
    _check_callable("grad", fun)

    @api_boundary
    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def gradient(*args: Any, **kwargs: Any) -> Any:
        _, aux, out = _value_and_grad("grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)
        return (out, aux) if has_aux else out

    gradient.__doc__ = (
        f"Gradient of {fun_name(fun)} with respect to positional argument(s) {argnums}.\n\n{fun.__doc__ or ''}"
    )
    return gradient


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """As `grad`; the result is `(value, gradient)`, or `((value, aux), gradient)` with `has_aux`."""
    _check_callable("value_and_grad", fun)

    @api_boundary
    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        value, aux, out = _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, args, kwargs)
        return ((value, aux), out) if has_aux else (value, out)

    value_and_gradient.__doc__ = (
        f"Value and gradient of {fun_name(fun)} by positional argument(s) {argnums}.\n\n{fun.__doc__ or ''}"
    )
    return value_and_gradient


# -- Jacobians ---------------------------------------------------------------------------------------------------


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


def _partial(fun: Any, args: Any, kwargs: Any, positions: tuple[int, ...]) -> Callable[..., Any]:
    def of_wanted(*wanted: Any) -> Any:
        full = list(args)
        for position, x in zip(positions, wanted, strict=True):
            full[position] = x
        return fun(*full, **kwargs)

    return functools.update_wrapper(of_wanted, fun, assigned=("__module__", "__name__", "__qualname__"))


def _check_jacobian_inputs(
    transform: str, fun: Any, leaves: Sequence[Any], names: Callable[[], list[str]], holomorphic: bool, allow_int: bool
) -> None:
    for i, x in enumerate(leaves):
        _check_input(transform, fun, x, lambda i=i: names()[i], holomorphic, allow_int)  # type: ignore[misc]
        dtype = get_aval(x).dtype
        if transform == "jacfwd" and not holomorphic and dtypes.is_complex(dtype):
            raise TypeError(
                f"jacfwd takes real inputs, but argument {names()[i]} of {fun_name(fun)} is {dtype.name}; for "
                "holomorphic functions pass holomorphic=True, otherwise use jvp"
            )


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
    _check_callable("jacfwd", fun)

    @api_boundary
    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def jacobian_forward(*args: Any, **kwargs: Any) -> Any:
        positions = _positions("jacfwd", fun, argnums, len(args))
        wanted = tuple(args[i] for i in positions)
        leaves, in_tree = tree.tree_flatten(wanted)
        _check_jacobian_inputs("jacfwd", fun, leaves, lambda: _leaf_names(fun, args, positions), holomorphic, False)
        partial = _partial(fun, args, kwargs, positions)

        def push(*tangents: Any) -> Any:
            result = jvp(partial, wanted, tree.tree_unflatten(in_tree, tangents), has_aux=has_aux)
            return result[1], (result[2] if has_aux else None)

        tangents_out, aux = vmap(push, out_axes=(-1, None))(*_basis(leaves))
        outs, out_tree = tree.tree_flatten(tangents_out)
        parts = [_split(x, -1, leaves) for x in outs]
        per_out = [_select(tree.tree_unflatten(in_tree, p), argnums) for p in parts]
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
    _check_callable("jacrev", fun)

    @api_boundary
    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__"))
    def jacobian_reverse(*args: Any, **kwargs: Any) -> Any:
        positions = _positions("jacrev", fun, argnums, len(args))
        wanted = tuple(args[i] for i in positions)
        leaves, in_tree = tree.tree_flatten(wanted)
        _check_jacobian_inputs("jacrev", fun, leaves, lambda: _leaf_names(fun, args, positions), holomorphic, allow_int)
        result = vjp(_partial(fun, args, kwargs, positions), *wanted, has_aux=has_aux)
        outs, out_tree = tree.tree_flatten(result[0])
        for y in outs:
            _check_jacrev_output(fun, get_aval(y).dtype, holomorphic)
        pullback = result[1]

        def pull_back(*cts: Any) -> Any:
            return pullback(tree.tree_unflatten(out_tree, cts))

        cts_in = vmap(pull_back, in_axes=0)(*_basis(outs))
        columns = [_split(x, 0, outs) for x in tree.tree_leaves(cts_in)]
        per_out = [_select(tree.tree_unflatten(in_tree, [c[k] for c in columns]), argnums) for k in range(len(outs))]
        jacobian = tree.tree_unflatten(out_tree, per_out)
        return (jacobian, result[2]) if has_aux else jacobian

    return jacobian_reverse


def _check_jacrev_output(fun: Any, dtype: Any, holomorphic: bool) -> None:
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(f"jacrev with holomorphic=True needs complex outputs, but {fun_name(fun)} returns {dtype.name}")
    if not holomorphic and not dtypes.is_float(dtype):
        raise TypeError(f"jacrev needs real floating-point outputs, but {fun_name(fun)} returns {dtype.name}")


def _select(jacobians: tuple[Any, ...], argnums: Argnums) -> Any:
    return jacobians[0] if isinstance(argnums, int) else jacobians


jacobian = jacrev


def hessian(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Hessian, forward mode over reverse mode: `jacfwd(jacrev(fun))`."""
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


__all__ = ["check_outputs", "grad", "hessian", "jacfwd", "jacobian", "jacrev", "value_and_grad"]
