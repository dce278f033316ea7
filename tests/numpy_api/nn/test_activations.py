"""Activations, standardisation and initialisers beside jax.nn, derivatives at kinks included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import nn

jax = pytest.importorskip("jax")

X = np.array([-7, -3, -1.5, -1, -0.3, 0, 0.4, 1, 2, 3, 6, 8], np.float32)
POSITIVE = np.array([0, 1e-8, 0.1, 0.6, 0.7, 5, 100], np.float32)
SMOOTH = ["celu", "selu", "mish", "soft_sign", "squareplus", "gelu exact"]
IN_PIECES = ["relu6", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "sparse_plus", "sparse_sigmoid"]


def _functions(name: str) -> tuple[Any, Any, np.ndarray]:
    if name == "gelu exact":
        return lambda x: nn.gelu(x, approximate=False), lambda x: jax.nn.gelu(x, approximate=False), X
    return getattr(nn, name), getattr(jax.nn, name), POSITIVE if name == "log1mexp" else X


@pytest.mark.parametrize("name", [*SMOOTH, *IN_PIECES, "log1mexp"])
def test_as_in_jax(name: str) -> None:
    ours, theirs, x = _functions(name)
    for given in (x, x.astype(np.int32)):
        got, wanted = ours(given), theirs(given)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    halves = x.astype(np.float16)
    got, wanted = ours(halves), np.asarray(ours(halves.astype(np.float32)))
    assert got.dtype == np.float16
    np.testing.assert_allclose(np.asarray(got, np.float32), wanted, rtol=4e-3, atol=4e-3)
    assert ours(2.0).weak_type and not ours(x).weak_type


@pytest.mark.parametrize("name", [*SMOOTH, *IN_PIECES, "log1mexp"])
def test_derivatives_as_in_jax(name: str) -> None:
    ours, theirs, x = _functions(name)
    got = corejax.jit(corejax.vmap(corejax.grad(ours)))(x)
    np.testing.assert_allclose(got, jax.vmap(jax.grad(theirs))(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(corejax.vmap(corejax.grad(ours))(x), got, rtol=1e-5, atol=1e-6)


def test_derivatives_at_kinks() -> None:
    at = {
        "relu": {0: 0}, "relu6": {0: 0, 6: 0}, "hard_sigmoid": {-3: 0, 3: 0}, "hard_tanh": {-1: 1, 1: 1},
        "celu": {0: 1}, "sparse_plus": {-1: 0, 1: 1}, "leaky_relu": {0: 1}, "log_sigmoid": {0: 0.5}, "mish": {0: 0.6},
    }  # fmt: skip
    for name, slopes in at.items():
        for x, slope in slopes.items():
            assert float(corejax.grad(getattr(nn, name))(float(x))) == pytest.approx(slope), (name, x)


def test_exact_gelu_of_large_negative_numbers() -> None:
    """By `erfc`: `1 + erf` would be 0 from -6 on."""
    assert float(nn.gelu(-6.0, approximate=False)) == pytest.approx(-6 * 9.865876e-10, rel=1e-4)


def test_glu() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7
    for axis in (-1, 0):
        np.testing.assert_allclose(nn.glu(x, axis), jax.nn.glu(x, axis), rtol=1e-6)
    with pytest.raises(ValueError, match=r"even size, got size 3 for axis 1 of shape \(2, 3, 4\)"):
        nn.glu(x, 1)
    with pytest.raises(ValueError, match="axis 3 is out of bounds"):
        nn.glu(x, 3)


Y = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
MASK = Y > -0.5


@pytest.mark.parametrize(
    "given",
    [{}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "where": MASK}, {"algorithm": "stable"}, {"mean": 0.5},
     {"variance": 2.0}, {"epsilon": 0.1}],
    ids=str,
)  # fmt: skip
def test_standardize(given: dict[str, Any]) -> None:
    got, wanted = nn.standardize(Y, **given), jax.nn.standardize(Y, **given)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_standardize_of_other_input() -> None:
    assert nn.standardize(Y.astype(np.int32)).dtype == np.float32
    assert nn.standardize(np.zeros((0, 3), np.float16)).shape == (0, 3)
    np.testing.assert_allclose(nn.standardize(np.full((2, 3), 5.0)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="must be 'fast' or 'stable', got 'slow'"):
        nn.standardize(Y, algorithm="slow")


@pytest.mark.parametrize(
    "given", [{}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"axis": 1, "where": MASK}], ids=str
)
def test_logmeanexp(given: dict[str, Any]) -> None:
    np.testing.assert_allclose(nn.logmeanexp(Y, **given), jax.nn.logmeanexp(Y, **given), rtol=1e-5)


@pytest.mark.parametrize("given", [{"b": Y}, {"b": Y, "axis": 0, "keepdims": True}, {"axis": 1, "where": MASK}])
def test_logsumexp_with_its_sign(given: dict[str, Any]) -> None:
    ours, theirs = (lib.logsumexp(Y, return_sign=True, **given) for lib in (nn, jax.nn))
    for got, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_initializers() -> None:
    for name in ("zeros", "ones"):
        got = getattr(nn.initializers, name)(None, (2, 3))
        assert (got.shape, got.dtype) == ((2, 3), np.float32)
        assert getattr(nn.initializers, name)(None, (2,), "int8").dtype == np.int8
    np.testing.assert_array_equal(nn.initializers.constant(-7, "float16")(None, (2, 2)), np.full((2, 2), -7))
    np.testing.assert_array_equal(nn.initializers.constant([1.0, 2.0])(None, (2, 2)), [[1, 2], [1, 2]])
    with pytest.raises(TypeError, match="zeros: out_sharding: expected one of"):
        nn.initializers.zeros(None, (2,), out_sharding="x")


def test_programs_are_short() -> None:
    """As in jax, where each call of a helper is a nested program."""
    for name, most in {"relu6": 1, "hard_sigmoid": 3, "hard_silu": 4, "glu": 4, "soft_sign": 3, "identity": 0}.items():
        assert len(corejax.make_jaxpr(getattr(nn, name))(np.ones(4, np.float32)).jaxpr.eqns) <= most, name


def test_misspelt_names_are_helped() -> None:
    with pytest.raises(AttributeError, match="did you mean 'hard_tanh'"):
        nn.hard_tahn  # noqa: B018
    assert {"celu", "initializers", "standardize"} <= set(dir(nn))


def test_soft_sign_of_complex_numbers() -> None:
    """It needs no order: the direction stays, the size is that of the size."""
    z = np.array([3 + 4j, -2j, 0], np.complex64)
    np.testing.assert_allclose(nn.soft_sign(z), z / (1 + np.abs(z)), rtol=1e-6)
    assert nn.soft_sign(1.0).weak_type and nn.soft_sign(z).dtype == z.dtype
