"""Rows of special functions: each defines a public function and a primitive with all of its rules.

    erfcx, erfcx_p = row("erfcx", formula, [lambda out, x: 2 * x * out - TWO_OVER_ROOT_PI], "...")

Eagerly, SciPy computes the function. Compiled, the formula computes it, in float64 for every dtype, rounded once at the
end. Some rows have a formula for float32, which is as fast as the compiler's own functions and accurate to three units
in the last place.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax
from corejax.extend import (
    Array,
    BackendError,
    MissingRuleError,
    Primitive,
    ShapedArray,
    defbroadcasting,
    defjvp_with_result,
    defvectorized,
    dtypes,
    get_aval,
    xla_translations,
)
from corejax_lax_basic import lax
from corejax_scipy._arguments import broadcast, inexact, taking, together
from corejax_scipy.special._formulas import where, widened

__corejax_registers_for_caller__ = True  # a row's provenance is its own line, not one of this file

Function = Callable[..., Any]
_NATIVE = ("float32", "float64", "complex64", "complex128")

# The primitives and SciPy's functions by name, for `corejax accuracy`.
ROWS: dict[str, tuple[Primitive, Function]] = {}


@functools.cache
def scipy_special(name: str) -> Function:
    """Return a function of `scipy.special`, which takes 0.1 s to import and is imported at first use."""
    function: Function = getattr(importlib.import_module("scipy.special"), name)
    return function


def by_scipy(function: str | Function) -> Function:
    """Return an impl rule that calls a function of SciPy; 16-bit floats are computed in float32."""

    def impl(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype.name not in _NATIVE:
            arrays = tuple([x.astype(np.float32) for x in arrays])
        out = np.asarray((scipy_special(function) if isinstance(function, str) else function)(*arrays))
        for x in arrays if len(arrays) > 1 else ():  # SciPy's `beta` and others do not propagate every NaN
            if np.isnan(x).any():
                out = np.where(np.isnan(x), np.nan, out)
        return out.astype(dtype, copy=False)

    return impl


_MANY = 1 << 13  # the number of elements from which on a compiled program replaces a slow function of SciPy


@functools.cache
def _program(primitive: Primitive, params: tuple[tuple[str, Any], ...]) -> Function:
    return corejax.jit(functools.partial(primitive.bind, **dict(params)))


def compiled_if_many(primitive: Callable[[], Primitive], impl: Function) -> Function:
    """Return an impl rule that calls `impl`, or for many numbers of at most 32 bits a compiled program, if possible."""

    def rule(*arrays: Any, **params: Any) -> Any:
        many = max(x.size for x in arrays) >= _MANY and arrays[0].dtype.itemsize <= 4
        if many and not corejax.config.disable_jit:
            try:
                # Return the program's own array: converting it to NumPy would copy it.
                return _program(primitive(), tuple(params.items()))(*[Array(x) for x in arrays])
            except (MissingRuleError, BackendError):
                pass  # no backend can compile or run the program
        return impl(*arrays, **params)

    return rule


def scipys_or(scipys: Function, formula: Function, is_lost: Function) -> Function:
    """Return an impl rule that calls `scipys`, and `formula` for the elements where `is_lost(out, *operands)`."""
    own = in_float64(formula)

    def impl(*arrays: Any) -> Any:
        xs = [x.astype(np.float64) for x in arrays]
        with np.errstate(all="ignore"):
            out = np.array(scipys(*xs))
            lost = is_lost(out, *xs)
        if lost.any():
            lost, *xs = np.broadcast_arrays(lost, *xs)
            out[lost] = np.asarray(own(*[Array(x[lost]) for x in xs]))
        return out

    return impl


def _type_rule(name: str, operands: int, complexes: bool) -> Function:
    def rule(*avals: ShapedArray) -> ShapedArray:
        if len(avals) != operands:
            raise TypeError(f"{name} takes {operands} operands, got {len(avals)}")
        dtype = avals[0].dtype
        known = dtypes.is_complex(dtype) if complexes else dtypes.is_inexact(dtype) and not dtypes.is_complex(dtype)
        if not known or any(x.dtype != dtype for x in avals):
            wanted = "one complex dtype" if complexes else "one floating-point dtype"
            raise TypeError(f"{name} takes operands of {wanted}, got {', '.join(x.str_short() for x in avals)}")
        shapes = {x.shape for x in avals if x.shape}
        if len(shapes) > 1:
            raise TypeError(
                f"{name} takes operands of one shape, or scalars, got {', '.join(x.str_short() for x in avals)}; "
                f"corejax.scipy.special.{name} broadcasts"
            )
        return ShapedArray(next(iter(shapes), ()), dtype, all(x.weak_type for x in avals))

    return rule


def in_float64(formula: Function) -> Function:
    """Return a function that evaluates a formula in float64 (complex128) and converts the result to the input dtype."""

    def decomposition(*xs: Any) -> Any:
        aval = get_aval(xs[0])
        wide = np.dtype(np.complex128 if dtypes.is_complex(aval.dtype) else np.float64)
        shape = max((get_aval(x).shape for x in xs), key=len)
        operands = [lax.in_dtype(x, wide) for x in xs]
        out = formula(*operands)
        for x in operands if len(operands) > 1 else ():
            out = where(x == x, out, x)
        return lax.broadcast_to(_converted(out, xs), shape)

    return decomposition


def _converted(out: Any, xs: Sequence[Any]) -> Any:
    """Convert a result to the dtype of the operands; it is weakly typed if all of them are."""
    avals = [get_aval(x) for x in xs]
    weak = all(aval.weak_type for aval in avals)
    return lax.convert_element_type_p.bind(out, new_dtype=avals[0].dtype, weak_type=weak)


def _by_dtype(formula: Function, single: Function | None) -> Function:
    """Return the decomposition: `single` in float32 for dtypes up to 32 bits, if given, else `formula` in float64."""
    wide = in_float64(formula)
    if single is None:
        return wide

    def decomposition(*xs: Any) -> Any:
        dtype = get_aval(xs[0]).dtype
        if dtypes.finfo(dtype).bits > 32:
            return wide(*xs)
        shape = max((get_aval(x).shape for x in xs), key=len)
        out = single(*[lax.convert_element_type(x, np.dtype(np.float32)) for x in xs])
        return lax.broadcast_to(_converted(out, xs), shape)

    return decomposition


def _slope(coefficient: Any) -> Any:
    """Return the jvp rule of an operand with the derivative `coefficient(out, *operands)`, in 32 bits or more."""
    if not callable(coefficient) or hasattr(coefficient, "reason"):
        return coefficient

    def rule(tangent: Any, out: Any, *xs: Any) -> Any:
        aval = get_aval(out)
        if dtypes.finfo(aval.dtype).bits < 32:
            slope = coefficient(*[lax.convert_element_type(x, np.dtype(np.float32)) for x in (out, *xs)])
        else:
            slope = coefficient(out, *xs)
        return lax.mul(lax.in_dtype(slope, aval.dtype), lax.broadcast_to(tangent, aval.shape))

    return rule


def widely(coefficient: Function) -> Function:
    """Return a derivative that is computed in float64 for every dtype, for differences that cancel."""

    def wide(*xs: Any) -> Any:
        dtype = get_aval(xs[0]).dtype
        out = coefficient(*[widened(x) for x in xs])
        return lax.in_dtype(out, dtype)

    return wide


def row(
    name: str,
    formula: Function,
    derivatives: Sequence[Any] | None,
    doc: str,
    *,
    single: Function | None = None,
    impl: str | Function | None = None,
    complexes: bool = False,
    of_complex: Function | None = None,
    many: bool = False,
    arguments: str = "x",
) -> tuple[Function, Primitive]:
    """Return a special function and its primitive.

    Args:
        name: the name of both.
        formula: the function of float64 (complex128) values, in terms of `corejax.lax`.
        derivatives: `coefficient(out, *operands)` for each operand; None if a derivative is zero,
            `nondifferentiable(why)` if it does not exist. None for the whole list derives them from the formula.
        doc: the docstring of both.
        single: a faster formula for float32 and narrower dtypes, on float32 values, if there is one.
        impl: SciPy's function, if it is not `scipy.special.<name>`.
        complexes: whether operands are complex, not real.
        of_complex: the function of complex numbers, if it also accepts these; an expression, not a primitive.
        many: whether SciPy takes several times as long as the compiled formula.
        arguments: the names of the operands, separated by spaces.
    """
    count, scipys = len(arguments.split()), by_scipy(impl or name)
    primitive = Primitive(
        name,
        impl=compiled_if_many(lambda: primitive, scipys) if many else scipys,
        abstract_eval=_type_rule(name, count, complexes),
        decomposition=_by_dtype(formula, single),
        tags=("elementwise",),
        doc=doc.partition("\n")[0],
    )
    (defvectorized if count == 1 else defbroadcasting)(primitive)
    if derivatives is not None:
        defjvp_with_result(primitive, *[_slope(d) for d in derivatives])
    xla_translations.register(primitive, by="decomposition")
    ROWS[name] = primitive, scipys
    function = _function(name, primitive, complexes, of_complex, arguments)
    lax.named(function, name, doc).__module__ = primitive.provenance.module
    return function, primitive


def _function(
    name: str, primitive: Primitive, complexes: bool, of_complex: Function | None, arguments: str
) -> Function:
    """Return the public function, which promotes and broadcasts its arguments and binds the primitive."""

    def applied(*xs: Any) -> Any:
        if of_complex is not None:
            found = inexact(name, *xs)
            if dtypes.is_complex(found[0].dtype):
                return of_complex(*broadcast(name, found))
        return primitive.bind(*together(name, *xs))

    def complex_operand(x: Any) -> Any:
        (x,) = inexact(name, x)
        if not dtypes.is_complex(x.dtype):
            x = lax.in_dtype(x, np.dtype(np.complex128 if x.dtype == np.float64 else np.complex64))
        return primitive.bind(x)

    return taking(complex_operand if complexes else applied, arguments)
