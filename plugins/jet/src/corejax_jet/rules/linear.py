"""Jet rules of primitives that are jointly linear in some operands: each coefficient is mapped as the value is."""

from __future__ import annotations

from typing import Any

from corejax.extend import Primitive, dtypes, get_aval, zeros_like
from corejax_jet.interpreter import by_nested_jvp, for_primitive, order_of

_UNARY = """
    neg real imag conj reduce_sum cumsum reshape transpose squeeze rev broadcast_in_dim slice split unstack
    tile dynamic_slice gather reduce_window_sum select_and_gather_add convert_element_type copy fft
"""

# The positions of the operands in which the primitive is jointly linear; other operands are integers, or constant.
_LINEAR: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(_UNARY.split(), (0,)),
    **dict.fromkeys(("add", "sub", "complex", "pad", "dynamic_update_slice"), (0, 1)),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-sub"), (0, 2)),
    **dict.fromkeys(("select_and_scatter_add",), (0,)),
    **dict.fromkeys(("concatenate", "stack", "optimization_barrier"), None),  # None stands for all operands
}


def _linear(
    primitive: Primitive, positions: tuple[int, ...] | None, primals: Any, series: Any, **params: Any
) -> tuple[Any, Any]:
    linear = range(len(primals)) if positions is None else positions
    if any(c is not None for i, c in enumerate(series) if i not in linear):
        return by_nested_jvp(primitive, primals, series, params)
    out = primitive.bind(*primals, **params)
    if not primitive.multiple_results and not dtypes.is_inexact(get_aval(out).dtype):
        return out, None
    results = []
    for k in range(order_of(series)):
        moved = list(primals)
        for i in linear:
            moved[i] = zeros_like(primals[i]) if series[i] is None else series[i][k]
        results.append(primitive.bind(*moved, **params))
    if primitive.multiple_results:
        columns = zip(out, zip(*results, strict=True), strict=True)
        return out, [list(each) if dtypes.is_inexact(get_aval(x).dtype) else None for x, each in columns]
    return out, results


for _name, _positions in _LINEAR.items():
    for_primitive(_name, _linear, _positions)


def _constant(primitive: Primitive, primals: Any, series: Any, **params: Any) -> tuple[Any, Any]:
    """Return the primitive's result without a series: it does not depend on t, or is treated as constant."""
    return primitive.bind(*primals, **params), None


_CONSTANT = """
    sign floor ceil round stop_gradient eq ne lt le gt ge eq_to lt_to le_to is_finite argmax argmin not and or
    xor shift_left shift_right_logical shift_right_arithmetic clz population_count bitcast_convert_type
    nextafter
"""
for _name in _CONSTANT.split():
    for_primitive(_name, _constant)
