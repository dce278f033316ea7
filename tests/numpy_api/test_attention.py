"""`dot_product_attention` beside jax's: every argument, types, derivatives, and the number of equations."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.nn import dot_product_attention
from tests.recorded import Recorded

B, T, S, N, K, H = 2, 5, 7, 6, 3, 4
RNG = np.random.default_rng(0)
QUERY = RNG.normal(size=(B, T, N, H)).astype(np.float32)
KEY, VALUE = RNG.normal(size=(2, B, S, K, H)).astype(np.float32)
MASK = RNG.random((B, N, T, S)) > 0.3
BIAS = RNG.normal(size=(1, N, T, S)).astype(np.float32)
LENGTHS = np.array([2, 5], np.int32)
KEY_LENGTHS = np.array([7, 3], np.int32)

CASES: list[dict[str, Any]] = [
    {},
    {"mask": MASK},
    {"bias": BIAS},
    {"mask": MASK[:, :1], "bias": BIAS[:, :1, :1]},
    {"is_causal": True, "scale": 0.3, "implementation": "xla"},
    {"local_window_size": 2},
    {"local_window_size": (1, 0), "is_causal": True},
    {"query_seq_lengths": LENGTHS, "key_value_seq_lengths": KEY_LENGTHS},
    {"key_value_seq_lengths": KEY_LENGTHS, "mask": MASK, "is_causal": True, "bias": BIAS},
    {"return_residual": True, "is_causal": True},
    {"mask": np.zeros((1, 1, T, S), bool)},
]


def leaves(out: Any) -> list[Any]:
    return list(out) if isinstance(out, tuple) else [out]


RECORDED = Recorded("attention")


@functools.cache
def of_jax() -> list[list[Any]]:
    """The results of all cases, of one program."""
    jax = pytest.importorskip("jax")
    attention = jax.nn.dot_product_attention
    values = jax.jit(lambda *xs: [attention(*xs, **case) for case in CASES])(QUERY, KEY, VALUE)
    return [leaves(out) for out in values]


def gradients_of_jax() -> Any:
    """Of a loss."""
    jax = pytest.importorskip("jax")
    return jax.jit(jax.grad(loss(jax.nn.dot_product_attention), argnums=(0, 1, 2)))(QUERY, KEY, VALUE)


def loss(attention: Any) -> Any:
    return lambda q, k, v: (attention(q, k, v, is_causal=True, key_value_seq_lengths=KEY_LENGTHS) ** 2).sum()


@pytest.mark.parametrize("i", range(len(CASES)), ids=lambda i: "-".join(CASES[i]) or "plain")
def test_beside_jax(i: int) -> None:
    case = CASES[i]
    expected = RECORDED.of(str(i), lambda: of_jax()[i])
    found = leaves(dot_product_attention(QUERY, KEY, VALUE, **case))
    for x, y in zip(found, expected, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, atol=1e-5)
    ours = corejax.make_jaxpr(lambda *xs: dot_product_attention(*xs, **case))(QUERY, KEY, VALUE)
    assert len(ours.jaxpr.eqns) <= 40


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_dtypes(dtype: str) -> None:
    q, k, v = (jnp.asarray(x).astype(dtype) for x in (QUERY, KEY, VALUE))
    out = dot_product_attention(q, k, v, is_causal=True)
    assert out.dtype == q.dtype
    exact = dot_product_attention(QUERY, KEY, VALUE, is_causal=True)
    tolerance = {"bfloat16": 0.03, "float16": 4e-3, "float64": 1e-5}[dtype]
    np.testing.assert_allclose(np.asarray(out.astype("float32")), exact, atol=tolerance)


def test_without_a_batch_and_over_one() -> None:
    one = dot_product_attention(QUERY[0], KEY[0], VALUE[0], mask=MASK[0])
    assert one.shape == (T, N, H)
    both = corejax.vmap(lambda *xs: dot_product_attention(*xs[:3], mask=xs[3]))(QUERY, KEY, VALUE, MASK)
    np.testing.assert_allclose(both[0], one, atol=1e-6)
    np.testing.assert_allclose(both, dot_product_attention(QUERY, KEY, VALUE, mask=MASK), atol=1e-6)


def test_gradients() -> None:
    found = corejax.jit(corejax.grad(loss(dot_product_attention), argnums=(0, 1, 2)))(QUERY, KEY, VALUE)
    for x, y in zip(found, RECORDED.of("gradients", gradients_of_jax), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-5)


ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ((QUERY, KEY, VALUE[:, :3]), {}, r"key and value are \[b, s, k, h\], got query f32\[2,5,6,4\], key f32\[2,7,3,4\]"),
    ((QUERY[:, :, :4], KEY, VALUE), {}, "number of query heads must be a multiple"),
    ((QUERY, KEY, VALUE.astype(np.float16)), {}, "one dtype"),
    ((QUERY[0, 0], KEY, VALUE), {}, r"query has 3 or 4 axes, got f32\[6,4\]"),
    ((QUERY, KEY, VALUE), {"mask": BIAS}, "mask must be boolean.*use bias"),
    ((QUERY, KEY, VALUE), {"bias": BIAS[..., :3]}, r"bias must broadcast to .* \(2, 6, 5, 7\), got f32\[1,6,5,3\]"),
    ((QUERY, KEY, VALUE), {"query_seq_lengths": np.ones(3, int)}, "query_seq_lengths are 2 integers"),
    ((QUERY, KEY, VALUE), {"implementation": "cudnn"}, "implementation is None or 'xla', got 'cudnn'"),
]


@pytest.mark.parametrize(("args", "options", "text"), ERRORS)
def test_what_does_not_fit(args: Any, options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        dot_product_attention(*args, **options)
