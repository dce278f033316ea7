"""Translation rules of elementwise primitives and reductions in StableHLO's own reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax_lax_basic import lax
from tests.lax_basic.support import assert_same, sample

pytest.importorskip("jaxlib")
compiling = pytest.importorskip("corejax_xla_backend._xla.compiling")
jaxlib_adapter = pytest.importorskip("corejax_xla_backend._jaxlib")

INEXACT = [
    *(
        getattr(lax, name)
        for name in (
            "neg",
            "abs",
            "sign",
            "exp",
            "expm1",
            "log",
            "log1p",
            "sqrt",
            "rsqrt",
            "sin",
            "cos",
            "tan",
            "tanh",
            "logistic",
        )
    ),
    *(lambda x, n=n: lax.integer_pow(x, n) for n in (-2, 0, 3)),
    *(lambda x, f=f: f(x, lax.mul(x, x)) for f in (lax.add, lax.sub, lax.mul, lax.div, lax.pow)),
    *(lambda x, f=f: f(x, 0.5) for f in (lax.eq, lax.ne)),
    *(lambda x, f=f: f(x, (1,)) for f in (lax.reduce_sum, lax.reduce_prod)),
    lambda x: lax.convert_element_type(x, bool),
    lambda x: lax.select_n(np.bool_(True), x, lax.neg(x)),
]
FLOATING = [
    *(getattr(lax, name) for name in ("floor", "ceil", "is_finite")),
    *(lambda x, f=f: f(x, 0.75) for f in (lax.rem, lax.max, lax.min, lax.lt, lax.ge)),
    *(lambda x, f=f: f(x, (0,)) for f in (lax.reduce_max, lax.reduce_min)),
    *(lambda x, f=f: f(x, 1) for f in (lax.argmax, lax.argmin)),
    lambda x: lax.clamp(0.3, x, 0.6),
    lambda x: lax.convert_element_type(x, np.int8),
    lambda x: lax.complex(x, 1.0),
]
COMPLEX = [lax.real, lax.imag, lax.conj]
# Division by zero would end the process: the reference interpreter leaves it to the processor.
INTEGER = [
    *(lambda x, f=f: f(x, -4) for f in (lax.div, lax.rem, lax.max, lax.min, lax.gt)),
    *(lambda x, f=f: f(x, 3) for f in (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.pow)),
    *(lambda x, f=f: f(x, (0,)) for f in (lax.reduce_sum, lax.reduce_and, lax.reduce_or)),
    *(lambda x, f=f: f(x, 0) for f in (lax.argmax, lax.argmin)),
    lambda x: lax.select_n(lax.rem(x, 4), x, lax.neg(x), lax.mul(x, 2)),
    lambda x: lax.pow(2, x),
    *(getattr(lax, name) for name in ("neg", "abs", "sign", "square")),
    lax.bitwise_not,
]


@pytest.mark.parametrize(
    ("functions", "dtype"),
    [(INEXACT + FLOATING, np.float32), (INEXACT + COMPLEX, np.complex64), (INTEGER, np.int32)],
    ids=["float32", "complex64", "int32"],
)
def test_reference_interpreter_agrees_with_eager(functions: Any, dtype: Any) -> None:
    def everything(x: Any) -> Any:
        return [f(x) for f in functions]

    x = sample(dtype, (3, 4), low=0.2, high=1.0)
    text, *_ = compiling.lower(corejax.make_jaxpr(everything)(x), "everything", "cpu")
    got = jaxlib_adapter.reference_eval(text, [x])
    for value, expected in zip(got, everything(x), strict=True):
        assert_same(value, expected, rtol=1e-5, atol=1e-6)
