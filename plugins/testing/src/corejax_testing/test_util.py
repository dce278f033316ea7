"""`corejax.test_util`: compare derivatives of functions with finite differences along a random direction.

One random direction and cotangent are enough, since a wrong derivative is right along few of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import as_array, dtypes, fun_name, tree
from corejax.extend.types import ValueType

__all__ = ["check_grads", "check_jvp", "check_vjp"]

Tolerance = float | Mapping[Any, float] | None

_SEED = 0
_MODES = ("fwd", "rev")
# The default tolerances and steps, by the number of bits of a real number.
_TOLERANCES = {8: 0.5, 16: 0.2, 32: 2e-3, 64: 1e-6}
_STEPS = {8: 0.25, 16: 0.05, 32: 1e-3, 64: 1e-5}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: str | Sequence[str] = _MODES,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of a function with central differences.

    Args:
        f: a function of arrays in pytrees. Values of a value type are differentiated as the arrays that store them.
        args: the arguments at which to differentiate. Arguments that are neither floating-point nor complex stay
            constant.
        order: the number of nested derivatives, 1 or more.
        modes: "fwd", "rev" or both. For orders above 1, all combinations of the modes are checked.
        atol: absolute tolerance. By default it depends on the coarsest dtype of arguments and results. In a dict of
            dtypes, the largest tolerance for a dtype of arguments and results counts.
        rtol: relative tolerance, as `atol`.
        eps: step of the differences; by default it depends on the coarsest dtype of the arguments.

    Raises:
        AssertionError: a derivative differs; the message names its order and mode.
        ValueError: a mode is unknown, or the order is below 1.
    """
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= set(_MODES):
        raise ValueError(f"check_grads of {fun_name(f)}: modes are 'fwd' and 'rev', got {modes!r}")
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"check_grads of {fun_name(f)}: order is a number of derivatives, 1 or more, got {order!r}")
    parts, by_parts = _by_parts(f, tuple(args))
    _check(by_parts, parts, order, chosen, (atol, rtol, eps), fun_name(f))


def _by_parts(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Callable[..., Any]]:
    """Return arguments and a function in which a list of arrays stands for each value of a value type."""
    leaves, structure = tree.flatten(args)
    types = [getattr(x, "aval", None) for x in leaves]

    def parts_of(x: Any) -> Any:
        return list(corejax.lax.unpack(x)) if isinstance(getattr(x, "aval", None), ValueType) else x

    @functools.wraps(f)
    def by_parts(*args: Any) -> Any:
        given = structure.flatten_up_to(args)
        vals = [corejax.lax.pack(t, *x) if isinstance(t, ValueType) else x for t, x in zip(types, given, strict=True)]
        return tree.map(parts_of, f(*tree.unflatten(structure, vals)))

    return tree.map(parts_of, args), by_parts


def _check(f: Any, args: tuple[Any, ...], order: int, modes: Sequence[str], given: Any, what: str) -> None:
    atol, rtol, eps = given
    step = _of_bits(_STEPS, args) if eps is None else eps
    if "fwd" in modes:
        check_jvp(f, functools.partial(corejax.jvp, f), args, atol, rtol, step, f"jvp of {what}")
        if order > 1:
            tangents = _direction(args)

            def forward(*args: Any) -> Any:
                return corejax.jvp(f, args, tangents)[1]

            _check(forward, args, order - 1, modes, given, f"jvp of {what}")
    if "rev" in modes:
        check_vjp(f, functools.partial(corejax.vjp, f), args, atol, rtol, step, f"vjp of {what}")
        if order > 1:
            ct = _direction(f(*args))

            def backward(*args: Any) -> Any:
                return [
                    x for x in tree.leaves(corejax.vjp(f, *args)[1](ct)) if getattr(x, "dtype", None) != corejax.float0
                ]

            _check(backward, args, order - 1, modes, given, f"vjp of {what}")


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Compare a function's forward-mode derivative with central differences.

    Args:
        f: a function of arrays in pytrees.
        f_jvp: its derivative: `f_jvp(args, tangents)` returns `f(*args)` and its tangents, as
            `functools.partial(corejax.jvp, f)` does.
        args: the arguments at which to differentiate.
        atol: absolute tolerance; by default it depends on the coarsest dtype.
        rtol: relative tolerance, as `atol`.
        eps: step of the differences.
        err_msg: the beginning of error messages.

    Raises:
        AssertionError: a value or a tangent differs.
    """
    args = tuple(args)
    tangents = _direction(args)
    out, tangents_out = f_jvp(args, tangents)
    tolerances = _tolerances(atol, rtol, (args, out))
    what = err_msg or f"jvp of {fun_name(f)}"
    _compare(out, f(*args), tolerances, f"{what}: the value")
    _compare(tangents_out, _difference(f, args, tangents, eps), tolerances, f"{what}: the tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = 1e-4,
    err_msg: str = "",
) -> None:
    """Compare a function's reverse-mode derivative with central differences.

    Args:
        f: a function of arrays in pytrees.
        f_vjp: its derivative: `f_vjp(*args)` returns `f(*args)` and the pullback, as
            `functools.partial(corejax.vjp, f)` does.
        args: the arguments at which to differentiate.
        atol: absolute tolerance; by default it depends on the coarsest dtype.
        rtol: relative tolerance, as `atol`.
        eps: step of the differences.
        err_msg: the beginning of error messages.

    Raises:
        AssertionError: a value differs, or the inner product of a direction and the cotangents.
    """
    args = tuple(args)
    tangents = _direction(args)
    out, pullback = f_vjp(*args)
    tolerances = _tolerances(atol, rtol, (args, out))
    what = err_msg or f"vjp of {fun_name(f)}"
    _compare(out, f(*args), tolerances, f"{what}: the value")
    ct = _direction(out)
    product = _inner(tangents, pullback(ct))
    _compare(product, _inner(_difference(f, args, tangents, eps), ct), tolerances, f"{what}: the cotangent's product")


# -- trees of arrays ---------------------------------------------------------------------------------------------


def _is_inexact(x: Any) -> bool:
    return dtypes.is_inexact(as_array(x).dtype)


def _direction(values: Any) -> Any:
    """Return random tangents or cotangents; values that have none get zeros of float0."""
    numbers = np.random.default_rng(_SEED)

    def one(x: Any) -> Any:
        x = as_array(x)
        if not dtypes.is_inexact(x.dtype):
            return np.zeros(x.shape, corejax.float0)
        drawn = numbers.standard_normal(x.shape)
        if dtypes.is_complex(x.dtype):
            drawn = drawn + 1j * numbers.standard_normal(x.shape)
        return as_array(np.asarray(drawn).astype(x.dtype))

    return tree.map(one, values)


def _difference(f: Callable[..., Any], args: tuple[Any, ...], tangents: Any, step: float) -> Any:
    """Return the derivative of `f` along tangents by central differences, in float64 or complex128."""

    def at(sign: float) -> Any:
        def moved(x: Any, t: Any) -> Any:
            return as_array((_wide(x) + sign * step * _wide(t)).astype(as_array(x).dtype)) if _is_inexact(x) else x

        return f(*tree.map(moved, args, tangents))

    return tree.map(lambda a, b: (_wide(a) - _wide(b)) / (2 * step) if _is_inexact(a) else a, at(1.0), at(-1.0))


def _wide(x: Any) -> Any:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _inner(xs: Any, ys: Any) -> Any:
    """Return the real part of the sum of the products of all elements, without conjugation."""
    pairs = zip(tree.leaves(xs), tree.leaves(ys), strict=True)
    return np.float64(sum(np.sum(_wide(x) * _wide(y)).real for x, y in pairs if _is_number(x) and _is_number(y)))


def _is_number(x: Any) -> bool:
    return getattr(x, "dtype", None) != corejax.float0 and _is_inexact(x)


def _of_bits(table: dict[int, float], values: Any) -> float:
    """Return a table's entry for the coarsest dtype among values."""
    found = [dtypes.real_dtype_of(x.dtype).itemsize * 8 for x in map(as_array, tree.leaves(values)) if _is_inexact(x)]
    return table[min(found, default=64)]


def _tolerances(atol: Tolerance, rtol: Tolerance, values: Any) -> tuple[float, float]:
    default = _of_bits(_TOLERANCES, values)
    there = {as_array(x).dtype for x in tree.leaves(values) if _is_inexact(x)}

    def one(given: Tolerance) -> float:
        if isinstance(given, Mapping):
            return max((tol for dtype, tol in given.items() if np.dtype(dtype) in there), default=default)
        return default if given is None else given

    return one(atol), one(rtol)


def _compare(got: Any, wanted: Any, tolerances: tuple[float, float], what: str) -> None:
    structures = [tree.structure(x) for x in (got, wanted)]
    assert structures[0] == structures[1], f"{what} has the structure {structures[0]}, but should have {structures[1]}"
    atol, rtol = tolerances
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        if getattr(a, "dtype", None) == corejax.float0 or not _is_inexact(a):
            continue
        np.testing.assert_allclose(_wide(a), _wide(b), rtol=rtol, atol=atol, err_msg=f"{what} differs")
