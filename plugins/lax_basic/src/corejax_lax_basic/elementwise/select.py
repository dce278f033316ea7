"""Selection between values, element by element: select_n, select, clamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.extend import (
    Primitive,
    ShapedArray,
    defbroadcasting,
    defjvp,
    dtypes,
    impl_rules,
    is_undef_primal,
    jvp_rules,
    transpose_rules,
)
from corejax.extend.speed import HostCode
from corejax_lax_basic import _speed
from corejax_lax_basic._base.arity import takes
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS
from corejax_lax_basic._base.scalars import make_scalar
from corejax_lax_basic._base.type_rules import ORDERED, check_equal_dtypes, elementwise, joint_shape
from corejax_lax_basic._promotion import scalars_yield
from corejax_lax_basic._speed import SMALL_SELECT
from corejax_lax_basic.elementwise._family import constant, spread, unbroadcast
from corejax_lax_basic.elementwise.comparison import gt, lt
from corejax_lax_basic.elementwise.logical import bitwise_and, bitwise_or

if TYPE_CHECKING:
    from corejax_lax_basic._base.prepared import Avals

__all__ = ["clamp", "clamp_p", "select", "select_n", "select_n_p"]

# -- select_n ----------------------------------------------------------------------------------------------


def select_n(which: Any, *cases: Any) -> Any:
    """Choose each element from the case that `which` names: `cases[which]`.

    Args:
        which: bool (at most two cases: False chooses the first) or int32; a scalar, or of the cases' shape. Indices
            below 0 count as 0, and indices past the end as the last one.
        cases: arrays of one dtype and shape; scalars may stand beside arrays.

    Returns:
        Array of the cases' dtype; weakly typed if all of them are.

    Raises:
        TypeError: `which` is neither bool nor int32, there are no cases or too many, or types disagree.
    """
    if type(which) is int:
        which = make_scalar(which, np.dtype(np.int32))
    return select_n_p.bind(which, *(scalars_yield(*cases) if len(cases) > 1 else cases))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Choose `on_true` where `pred` is True and `on_false` elsewhere: `select_n(pred, on_false, on_true)`."""
    return select_n(pred, on_false, on_true)


def _select_impl(which: Any, *cases: Any) -> Any:
    if which.dtype is dtypes.bool_ and len(cases) == 2:
        return _select_of_two(which, *cases)
    shape = np.broadcast_shapes(which.shape, *(c.shape for c in cases))
    out = np.broadcast_to(cases[0], shape)
    if which.dtype is dtypes.bool_:
        return out
    for i, case in enumerate(cases[1:], 1):
        out = np.where(which >= i, case, out)
    return out


@takes("select_n", 2, at_least=True)
def _select_abstract_eval(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    if which.dtype != np.bool_ and which.dtype != np.int32:
        raise TypeError(f"select_n: `which` has to be bool or int32, got {which.str_short(short_dtypes=False)}")
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError(f"select_n: a boolean `which` chooses between two cases, got {len(cases)}; use int32 indices")
    check_equal_dtypes("select_n", cases, first=1)
    shape = joint_shape("select_n", (which, *cases))
    return ShapedArray(shape, cases[0].dtype, all(c.weak_type for c in cases))


select_n_p = Primitive(
    "select_n",
    abstract_eval=_select_abstract_eval,
    tags=("elementwise", "structural", "cheap"),
    doc="Choose each element from the case that the first operand names.",
)


def _select_prepared(avals: Avals, **params: Any) -> Any:
    which, *cases = avals
    if which.dtype is not dtypes.bool_ or len(cases) != 2:
        return None
    if not _by_mask(which, *cases):
        return _select_of_two
    if cases[0].shape:
        return HostCode("{out} = {1}.copy()\n{putmask}({out}, {0}, {2})", putmask=np.putmask)
    return HostCode(
        "{out} = {empty}({shape}, {dtype})\n{out}.fill({1})\n{putmask}({out}, {0}, {2})",
        empty=np.empty,
        putmask=np.putmask,
        shape=which.shape,
        dtype=cases[0].dtype,
    )


_NUMPY_KINDS = frozenset("biufc")


def _by_mask(which: Any, on_false: Any, on_true: Any) -> bool:
    """Return whether to write elements over a copy of one case; `np.where` is three times slower on small arrays."""
    shape = which.shape
    if (
        not shape
        or which.size > SMALL_SELECT
        or not (on_true.dtype.kind in _NUMPY_KINDS or on_true.dtype in NARROW_FLOATS)
    ):
        return False
    return (not on_false.shape or on_false.shape == shape) and (not on_true.shape or on_true.shape == shape)


def _select_of_two(which: Any, on_false: Any, on_true: Any) -> Any:
    if not _by_mask(which, on_false, on_true):
        return np.where(which, on_true, on_false)
    if on_false.shape:
        out = on_false.copy()
    else:
        out = np.empty(which.shape, on_false.dtype)
        out.fill(on_false)
    np.putmask(out, which, on_true)
    return out


impl_rules.register(select_n_p, _select_impl, large=_speed.elementwise("select_n"), prepared=_select_prepared)
defbroadcasting(select_n_p)


def _select_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    which, *cases = primals
    case_tangents = tangents[1:]
    out = select_n_p.bind(which, *cases)
    if all(t is None for t in case_tangents):
        return out, None
    zero = constant(out, 0)
    # Broadcast if the only case that is not a scalar has no tangent.
    return out, spread(select_n_p.bind(which, *(zero if t is None else t for t in case_tangents)), out)


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    zero = constant(ct, 0)
    chosen: list[Any] = []
    for i, case in enumerate(cases):
        if not is_undef_primal(case):
            chosen.append(None)
            continue
        one_of = [ct if j == i else zero for j in range(len(cases))]
        chosen.append(unbroadcast(case.aval, select_n_p.bind(which, *one_of)))
    return [None, *chosen]


jvp_rules.register(select_n_p, _select_jvp, symbolic_zeros=True)
transpose_rules.register(select_n_p, _select_transpose)

# -- clamp -------------------------------------------------------------------------------------------------


def clamp(min: Any, x: Any, max: Any) -> Any:
    """Limit `x` to the interval from `min` to `max`: `minimum(maximum(x, min), max)`.

    Args:
        min: lower bound, a scalar or of the shape of `x`.
        x: boolean, integer or floating-point array.
        max: upper bound, as `min`; it wins if the bounds cross.

    Returns:
        Array of the dtype of `x`, NaN where an operand is NaN. The derivative is that of the chosen operand, and zero
        where `x` lies on a bound.

    Raises:
        TypeError: dtypes or shapes disagree, or the dtype is complex.
    """
    return clamp_p.bind(*scalars_yield(min, x, max))


def _clamp_prepared(avals: Avals) -> Any:
    if not avals[1].shape or avals[1].dtype.kind not in _NUMPY_KINDS:
        return None
    lines = "{out} = {maximum}({1}, {0})\n{out} = {minimum}({out}, {2})"
    return HostCode(lines, maximum=np.maximum, minimum=np.minimum)


def _clamp_impl(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


clamp_p = Primitive(
    "clamp",
    abstract_eval=elementwise("clamp", 3, ORDERED),
    tags=("elementwise", "cheap", "exact"),
    doc="Limit x to an interval: minimum(maximum(x, low), high).",
)
impl_rules.register(clamp_p, _clamp_impl, large=_speed.elementwise("clamp"), prepared=_clamp_prepared)
defbroadcasting(clamp_p)


def _where(mask: Any, t: Any) -> Any:
    return select_n_p.bind(mask, constant(t, 0), t)


defjvp(
    clamp_p,
    lambda t, low, x, high: _where(bitwise_and(lt(x, low), lt(low, high)), t),
    lambda t, low, x, high: _where(bitwise_and(gt(x, low), lt(x, high)), t),
    lambda t, low, x, high: _where(bitwise_or(gt(x, high), gt(low, high)), t),
)
