"""Products of narrow numbers with scales for blocks: values, rounding errors, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import nn

RNG = np.random.default_rng(0)
A, B = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 64), (2, 5, 64)))
OF_A, OF_B = (RNG.random(size=shape).astype(np.float32) for shape in ((2, 3, 4), (2, 5, 4)))
NUMBERS = (((2,), (2,)), ((0,), (0,)))


def test_scaled_matmul() -> None:
    exact = np.einsum("bmk,bnk->bmn", A * np.repeat(OF_A, 16, -1), B * np.repeat(OF_B, 16, -1))
    np.testing.assert_allclose(nn.scaled_matmul(A, B, OF_A, OF_B), exact, atol=1e-5)
    narrow = [jnp.asarray(x).astype("float8_e4m3fn") for x in (A, B)]
    out = corejax.jit(lambda *xs: nn.scaled_matmul(*xs, preferred_element_type="bfloat16"))(*narrow, OF_A, OF_B)
    assert out.dtype == "bfloat16"
    np.testing.assert_allclose(np.asarray(out.astype("float32")), exact, atol=0.6)


@pytest.mark.parametrize(("mode", "error"), [("mxfp8", 0.1), ("nvfp4", 0.2)])
def test_rounding(mode: str, error: float) -> None:
    configs = [nn.get_scaled_dot_general_config(mode)] * 3

    def product(a: Any, b: Any) -> Any:
        return nn.scaled_dot_general(a, b, NUMBERS, configs=configs)

    exact = np.einsum("bmk,bnk->bmn", A, B)
    out = product(A, B)
    assert 0 < np.abs(out - exact).max() < error * np.abs(exact).max()
    np.testing.assert_allclose(corejax.jit(product)(A, B), out, rtol=1e-5)
    assert not product(A * 0, B).any()
    if mode == "mxfp8":  # which has powers of two as they are
        powers = np.exp2(RNG.integers(-2, 2, size=(2, 3, 64))).astype(np.float32)
        np.testing.assert_allclose(product(powers, powers), np.einsum("bmk,bnk->bmn", powers, powers), rtol=1e-6)
    slope = corejax.grad(lambda a: product(a, B).sum())(A)
    np.testing.assert_allclose(slope, np.broadcast_to(B.sum(1, keepdims=True), A.shape), atol=error * 8)


def test_without_configs_it_is_dot_general() -> None:
    np.testing.assert_allclose(nn.scaled_dot_general(A, B, NUMBERS), np.einsum("bmk,bnk->bmn", A, B), rtol=1e-5)
    with pytest.warns(DeprecationWarning, match="ignored"):
        nn.scaled_dot_general(A, B, NUMBERS, implementation="cudnn")


MXFP8 = [nn.get_scaled_dot_general_config("mxfp8")] * 3
ERRORS = [
    (lambda: nn.scaled_matmul(A[0], B[0], OF_A[0], OF_B[0]), "have 3 axes, got f32"),
    (lambda: nn.scaled_matmul(A, B, OF_A, OF_B[:, :, :2]), r"got f32\[2,3,64\], f32\[2,5,64\]"),
    (lambda: nn.scaled_matmul(A[..., :63], B[..., :63], OF_A, OF_B), "multiple of the number of scales"),
    (lambda: nn.get_scaled_dot_general_config("fp8"), "mode is 'nvfp4' or 'mxfp8', got 'fp8'"),
    (lambda: nn.scaled_dot_general(A[..., :40], B[..., :40], NUMBERS, configs=MXFP8), "multiple of 32"),
    (
        lambda: nn.scaled_dot_general(A, A, (((1, 2), (1, 2)), ((), ())), configs=MXFP8),
        "exactly one axis must be",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_what_does_not_fit(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
