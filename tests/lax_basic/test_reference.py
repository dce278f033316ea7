"""Translation rules of elementwise primitives and reductions in StableHLO's own reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax_lax_basic.conversion import convert
from corejax_lax_basic.elementwise import arithmetic as binary
from corejax_lax_basic.elementwise import comparison, complex_numbers, logical, select, unary
from corejax_lax_basic.reductions import reduce as reductions
from tests.lax_basic.support import assert_same, sample

pytest.importorskip("jaxlib")
execution = pytest.importorskip("corejax_xla_backend.execution")
jaxlib_adapter = pytest.importorskip("corejax_xla_backend._jaxlib")

INEXACT = [
    *(
        getattr(unary, name)
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
    *(lambda x, n=n: binary.integer_pow(x, n) for n in (-2, 0, 3)),
    *(lambda x, f=f: f(x, binary.mul(x, x)) for f in (binary.add, binary.sub, binary.mul, binary.div, binary.pow)),
    *(lambda x, f=f: f(x, 0.5) for f in (comparison.eq, comparison.ne)),
    *(lambda x, f=f: f(x, (1,)) for f in (reductions.reduce_sum, reductions.reduce_prod)),
    lambda x: convert.convert_element_type(x, bool),
    lambda x: select.select_n(np.bool_(True), x, binary.neg(x)),
]
FLOATING = [
    *(getattr(unary, name) for name in ("floor", "ceil", "is_finite")),
    *(lambda x, f=f: f(x, 0.75) for f in (binary.rem, binary.max, binary.min, comparison.lt, comparison.ge)),
    *(lambda x, f=f: f(x, (0,)) for f in (reductions.reduce_max, reductions.reduce_min)),
    *(lambda x, f=f: f(x, 1) for f in (reductions.argmax, reductions.argmin)),
    lambda x: select.clamp(0.3, x, 0.6),
    lambda x: convert.convert_element_type(x, np.int8),
    lambda x: complex_numbers.complex(x, 1.0),
]
COMPLEX = [complex_numbers.real, complex_numbers.imag, complex_numbers.conj]
# Division by zero would end the process: the reference interpreter leaves it to the processor.
INTEGER = [
    *(lambda x, f=f: f(x, -4) for f in (binary.div, binary.rem, binary.max, binary.min, comparison.gt)),
    *(lambda x, f=f: f(x, 3) for f in (logical.bitwise_and, logical.bitwise_or, logical.bitwise_xor, binary.pow)),
    *(lambda x, f=f: f(x, (0,)) for f in (reductions.reduce_sum, reductions.reduce_and, reductions.reduce_or)),
    *(lambda x, f=f: f(x, 0) for f in (reductions.argmax, reductions.argmin)),
    lambda x: select.select_n(binary.rem(x, 4), x, binary.neg(x), binary.mul(x, 2)),
    lambda x: binary.pow(2, x),
    *(getattr(unary, name) for name in ("neg", "abs", "sign", "square")),
    logical.bitwise_not,
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
    text, *_ = execution.lower(corejax.make_jaxpr(everything)(x), "everything", "cpu")
    got = jaxlib_adapter.reference_eval(text, [x])
    for value, expected in zip(got, everything(x), strict=True):
        assert_same(value, expected, rtol=1e-5, atol=1e-6)
