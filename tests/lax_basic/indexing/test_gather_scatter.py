"""gather and scatters against jax: run and compiled, every mode, many dimension numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax as jax_lax

import corejax
from corejax import lax

# shape of the operand, of the indices, dimension numbers, slice sizes
CASES: list[tuple[Any, Any, Any, Any]] = [
    ((5,), (3, 1), ((), (0,), (0,)), (1,)),
    ((5, 4), (3, 1), ((1,), (0,), (0,)), (1, 4)),
    ((5, 4), (2, 3, 1), ((0,), (1,), (1,)), (5, 1)),
    ((5, 4), (3, 2), ((), (0, 1), (0, 1)), (1, 1)),
    ((5, 4), (3, 2), ((), (0, 1), (1, 0)), (1, 1)),
    ((5, 4, 3), (3, 2), ((0, 2), (1,), (2, 0)), (2, 1, 2)),
    ((5, 4, 3), (3, 2), ((1,), (0, 1), (0, 1)), (1, 1, 2)),
    ((3, 5, 4), (3, 2, 1), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
    ((5, 3, 2, 4), (2, 7, 3, 2), ((0,), (0,), (3, 0), (1, 2), (2, 0)), (1, 1, 1, 3)),
    ((5, 4), (0,), ((0, 1), (), ()), (2, 3)),
    ((5, 4), (2, 0), ((1, 2), (), ()), (2, 3)),
    ((5, 4), (0, 1), ((1,), (0,), (0,)), (1, 4)),
    ((0, 4), (0, 1), ((1,), (0,), (0,)), (1, 4)),
    ((5, 0), (3, 1), ((1,), (0,), (0,)), (1, 0)),
    ((5, 4), (3, 1), ((0, 2), (), (1,)), (5, 2)),
    ((5, 4), (3, 1), ((1, 2), (), (0,)), (1, 4)),
]
MODES = ["clip", "fill", "promise_in_bounds"]
SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


def _operands(case: Any, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    shape, places, _, _ = case
    x = (rng.normal(size=shape) * 3).astype(dtype)
    indices = rng.integers(-3, 8, size=places).astype(np.int32)
    updates = jax.eval_shape(lambda x, i: _gathers(jax_lax, case, "clip")(x, i), x, indices)
    return x, indices, (rng.normal(size=updates.shape) * 3).astype(dtype)


def _gathers(module: Any, case: Any, mode: str) -> Any:
    _, _, numbers, sizes = case
    numbers = module.GatherDimensionNumbers(*numbers)
    return lambda x, i: module.gather(x, i, numbers, sizes, mode=mode)


def _scatters(module: Any, name: str, case: Any, mode: str, **promises: bool) -> Any:
    numbers = module.ScatterDimensionNumbers(*case[2])
    return lambda x, i, updates: getattr(module, name)(x, i, updates, numbers, mode=mode, **promises)


@pytest.mark.parametrize("mode", MODES)
def test_values(mode: str) -> None:
    """One program of all cases."""
    operands = [_operands(case) for case in CASES]

    def everything(module: Any) -> Any:
        def f(operands: Any) -> Any:
            out = []
            for case, (x, i, updates) in zip(CASES, operands, strict=True):
                out.append(_gathers(module, case, mode)(x, i))
                out.extend(_scatters(module, name, case, mode)(x, i, updates) for name in SCATTERS)
            return out

        return f

    expected = jax.jit(everything(jax_lax))(operands)
    for outs in (everything(lax)(operands), corejax.jit(everything(lax))(operands)):
        for i, (out, wanted) in enumerate(zip(outs, expected, strict=True)):
            np.testing.assert_array_equal(out, wanted, err_msg=f"{CASES[i // 7]} {i % 7}")
