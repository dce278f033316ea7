"""With `x64_compat`, a call that asks for 64 bits warns if it does in JAX; against jax."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax

WIDE: Any = np.float64
CALLS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda j: j.numpy.zeros(3, WIDE),
    "zeros by name": lambda j: j.numpy.zeros(3, "float64"),
    "zeros of NumPy's dtype": lambda j: j.numpy.zeros(3, np.ones(3).dtype),
    "zeros of its dtype": lambda j: j.numpy.zeros(3, j.numpy.float64),
    "zeros of float": lambda j: j.numpy.zeros(3, float),
    "array": lambda j: j.numpy.array([1], "complex128"),
    "asarray": lambda j: j.numpy.asarray([1], np.uint64),
    "asarray of int": lambda j: j.numpy.asarray([1], int),
    "asarray of NumPy's array": lambda j: j.numpy.asarray(np.ones(3)),
    "arange": lambda j: j.numpy.arange(3, dtype=np.int64),
    "linspace": lambda j: j.numpy.linspace(0, 1, 3, dtype=WIDE),
    "full_like": lambda j: j.numpy.full_like(j.numpy.ones(3), 1, dtype=WIDE),
    "full_like of NumPy's array": lambda j: j.numpy.full_like(np.ones(3), 1),
    "sum": lambda j: j.numpy.ones(3).sum(dtype=WIDE),
    "mean": lambda j: j.numpy.mean(j.numpy.ones(3), dtype=WIDE),
    "mean of NumPy's array": lambda j: j.numpy.mean(np.ones(3)),
    "astype": lambda j: j.numpy.ones(3).astype(WIDE),
    "astype of float": lambda j: j.numpy.ones(3).astype(float),
    "astype in jit": lambda j: j.jit(lambda x: x.astype(WIDE))(j.numpy.ones(3)),
    "convert_element_type": lambda j: j.lax.convert_element_type(1.0, WIDE),
    "bitcast_convert_type": lambda j: j.lax.bitcast_convert_type(j.numpy.ones((2, 2)), WIDE),
    "full": lambda j: j.lax.full((2,), 1, WIDE),
    "iota": lambda j: j.lax.iota(np.int64, 3),
    "eye": lambda j: j.numpy.eye(2, dtype=WIDE),
    "one_hot": lambda j: j.nn.one_hot(1, 3, dtype=WIDE),
    "normal": lambda j: j.random.normal(j.random.key(0), (2,), WIDE),
    "normal of float": lambda j: j.random.normal(j.random.key(0), (2,), float),
    "randint": lambda j: j.random.randint(j.random.key(0), (2,), 0, 5, np.int64),
    "truncated_normal": lambda j: j.random.truncated_normal(j.random.key(0), 5.0, 6.0, (2,)),
    "poisson": lambda j: j.random.poisson(j.random.key(0), 1e6, (2,)),
    "binomial": lambda j: j.random.binomial(j.random.key(0), 1e6, 0.5, (2,)),
    "device_put": lambda j: j.device_put(np.ones(3)),
    "grad": lambda j: j.grad(lambda x: x**2)(WIDE(2)),
}


def given(call: Callable[[Any], Any], module: Any) -> tuple[list[str], Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = call(module)
    return [str(w.message) for w in caught], out.dtype


@pytest.mark.parametrize("name", CALLS)
def test_a_call_warns_if_it_warns_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False), corejax.config.override(x64_compat=True):
        theirs, dtype = given(CALLS[name], jax)
        ours, own_dtype = given(CALLS[name], corejax)
    assert bool(ours) == bool(theirs) and own_dtype == dtype
    assert all(text.startswith("Explicitly requested dtype ") for text in [*ours, *theirs])
    assert given(CALLS[name], corejax)[0] == [], "without x64_compat"


def test_the_warning_names_the_function_and_the_users_line() -> None:
    with corejax.config.override(x64_compat=True), pytest.warns(UserWarning, match="in arange: it becomes int32") as w:
        corejax.numpy.arange(3, dtype=np.int64)
    assert w[0].filename == __file__
