"""Under `x64_compat` NumPy's 64-bit arrays and scalars enter 32 bits wide, whatever function takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax, random, tree
from corejax.extend import Primitive
from corejax.scipy import special

F64, I64 = np.linspace(0.25, 2.0, 4), np.arange(4)
C128, U64 = F64 + 1j, I64.astype(np.uint64)


@pytest.fixture
def narrow() -> Iterator[None]:
    with corejax.config.override(x64_compat=True):
        yield


def sine(x: Any) -> Any:
    return lax.mul(lax.sin(x), x)


WAYS: dict[str, Callable[[], Any]] = {
    "primitive": lambda: lax.sin(F64),
    "primitive_of_scalar": lambda: lax.sin(np.float64(2)),
    "two_operands": lambda: lax.add(F64, F64),
    "result_type": lambda: jnp.zeros((), jnp.result_type(F64, I64)),
    "result_type_of_scalar": lambda: jnp.zeros((), jnp.result_type(np.float64(2))),
    "array_and_numpy": lambda: lax.add(jnp.ones(4, jnp.result_type(F64)), F64),
    "integers": lambda: lax.add(I64, I64),
    "unsigned": lambda: lax.add(U64, U64),
    "complex": lambda: lax.mul(C128, C128),
    "index_dtype": lambda: lax.argmax(F64, 0, np.int64),
    "identity": lambda: corejax.jit(lambda x: x)(F64),
    "jit": lambda: corejax.jit(sine)(F64),
    "jit_of_scalar": lambda: corejax.jit(sine)(np.float64(2)),
    "jit_of_closed_over": lambda: corejax.jit(lambda: lax.sin(F64))(),
    "grad": lambda: corejax.grad(lambda x: jnp.sum(sine(x)))(F64),
    "jvp": lambda: corejax.jvp(sine, (F64,), (F64,)),
    "vjp": lambda: corejax.vjp(sine, F64)[1](F64),
    "vmap": lambda: corejax.vmap(sine)(F64),
    "vmap_of_grad": lambda: corejax.jit(corejax.vmap(corejax.grad(sine)))(F64),
    "vmap_identity": lambda: corejax.vmap(lambda x: x)(F64),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), np.float64(0), F64),
    "compiled_scan": lambda: corejax.jit(lambda xs: lax.scan(lambda c, x: (c + x, c), np.float64(0), xs))(F64),
    "cond": lambda: lax.cond(True, lax.sin, lax.cos, F64),
    "while_loop": lambda: lax.while_loop(lambda x: x < 5, lambda x: x + 1, np.int64(2)),
    "device_put": lambda: corejax.device_put({"x": F64, "y": I64[0]}),
    "jacfwd": lambda: corejax.jacfwd(sine)(F64),
    "nested": lambda: corejax.jit(corejax.grad(lambda x: jnp.sum(corejax.jit(sine)(x) * F64)))(F64),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("narrow")
def test_what_comes_from_numpy_is_narrow(way: str) -> None:
    with corejax.config.override(x64_compat=False):
        wide = tree.tree_leaves(WAYS[way]())
    outs = tree.tree_leaves(WAYS[way]())
    for out, exact in zip(outs, wide, strict=True):
        assert out.dtype.name in ("float32", "int32", "uint32", "complex64")
        assert np.asarray(out).dtype == out.dtype
        np.testing.assert_allclose(np.asarray(out), np.asarray(exact), rtol=1e-5, atol=1e-6)


def test_programs_and_compiled_functions_follow_the_setting() -> None:
    f = corejax.jit(sine)
    for narrow in (False, True, True, False, False, True):
        with corejax.config.override(x64_compat=narrow):
            expected = "float32" if narrow else "float64"
            assert f(F64).dtype == f(np.float64(2)).dtype == expected
            assert corejax.make_jaxpr(sine)(F64).out_avals[0].dtype == expected


@pytest.mark.usefixtures("narrow")
def test_described_arguments_are_narrow() -> None:
    described = corejax.ShapeDtypeStruct(F64.shape, F64.dtype)
    assert corejax.eval_shape(sine, described).dtype == np.float32
    assert corejax.make_jaxpr(sine)(described).in_avals[0].dtype == np.float32
    assert corejax.jit(sine).lower(described).compile()(F64).dtype == np.float32


@pytest.mark.usefixtures("narrow")
def test_what_does_not_fit_is_infinite_or_wraps_around() -> None:
    assert lax.neg(np.array([1e300, 1.0])).tolist() == [-np.inf, -1.0]
    assert corejax.jit(lax.neg)(np.array([1e300])).tolist() == [-np.inf]
    assert lax.neg(np.array([(1 << 32) + 5])).tolist() == [-5]
    assert jnp.asarray(np.array([1e300])).tolist() == [np.inf]


@pytest.mark.usefixtures("narrow")
def test_what_an_impl_gives_is_as_wide_as_it_says() -> None:
    wide_p = Primitive("narrow_test.wide", impl=lambda x: x.astype(np.float64))
    assert wide_p.bind(jnp.ones(3)).dtype == np.float64


@pytest.mark.usefixtures("narrow")
def test_the_argument_itself_stays_as_it_was() -> None:
    x = np.arange(3.0)
    out = corejax.jit(lambda x: x)(x)
    x[0] = 7
    assert x.dtype == np.float64
    assert out.tolist() == [0, 1, 2]


def test_numbers_in_programs_of_64_bits_stay_as_wide() -> None:
    """Arrays that were 64 bits wide stay so, and so do the literals and fillings beside them, wherever programs go."""
    x = jnp.asarray(F64)

    def f(x: Any) -> Any:
        return lax.sin(x * 0.1) - lax.max(x, lax.full_like(x, 0.7)) + lax.full_like(x, x[1])

    exact = np.sin(F64 * 0.1) - np.maximum(F64, 0.7) + F64[1]
    with corejax.config.override(x64_compat=True):
        program = corejax.make_jaxpr(f)(x)

        def run(x: Any) -> Any:
            return corejax.eval_jaxpr(program.jaxpr, program.consts, [x])[0]

        for out in (f(x), corejax.jit(f)(x), run(x), corejax.jit(run)(x), *corejax.jvp(run, (x,), (0 * x,))[:1]):
            assert out.dtype == np.float64
            np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-15)


def test_special_functions_compute_as_they_do_without() -> None:
    """Formulas in float64 were half in float32: refused (`gamma`), or wrong numbers (`boxcox`)."""
    x = jnp.asarray(F64, dtype="float32")

    def f(x: Any) -> Any:
        return special.betaln(x, x + 1), special.boxcox(x, x), corejax.grad(lax.igamma, 1)(2.5, x[0])

    exact = f(x)
    with corejax.config.override(x64_compat=True):
        outs = corejax.jit(f)(x)
    for out, want in zip(outs, exact, strict=True):
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, want, rtol=1e-6)


def test_random_bits_of_programs_of_64_bits() -> None:
    """Traced while 64 bits were the default, and compiled when they are not any more."""
    key = random.key(0)
    with corejax.config.override(default_dtype_bits=64):
        exact = random.bits(key, (2,), "uint64")
        traced = corejax.jit(lambda key: random.bits(key, (2,), "uint64")).trace(key)
    with corejax.config.override(x64_compat=True):
        assert traced.lower().compile()(key).tolist() == exact.tolist()
