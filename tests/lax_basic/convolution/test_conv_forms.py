"""What is said in terms of conv_general_dilated: against jax."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import lax

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 5, 6, 3)).astype("f")
K, TURNED = RNG.normal(size=(3, 2, 3, 4)).astype("f"), RNG.normal(size=(3, 2, 4, 3)).astype("f")
LAST, MIXED = ("NHWC", "HWIO", "NHWC"), ("NHWC", "HIOW", "WNHC")
PADS = ("SAME", "VALID", ((1, 2), (0, 1)))


def forms(L: Any) -> dict[str, Any]:
    """Each of the functions, in several ways."""
    out: dict[str, Any] = {}
    for pad in PADS:
        for strides in ((1, 1), (2, 3), (4, 1)):
            way = f"{pad} {strides}"
            out[f"transpose {way}"] = L.conv_transpose(X, K, strides, pad)
            out[f"consistent {way}"] = L.conv_transpose(X, K, strides, pad, use_consistent_padding=True)
            out[f"turned {way}"] = L.conv_transpose(X, TURNED, strides, pad, (2, 1), transpose_kernel=True)
        out[f"patches {pad}"] = L.conv_general_dilated_patches(X, (2, 3), (1, 2), pad, rhs_dilation=(1, 2))
        patches = L.conv_general_dilated_patches(X, (2, 3), (1, 2), pad, dimension_numbers=MIXED)
        out[f"mixed patches {pad}"] = patches
        width, _, height, features = patches.shape
        kernels = np.linspace(-1, 1, height * features * 4 * width, dtype="f").reshape(height, features, 4, width)
        out[f"local {pad}"] = L.conv_general_dilated_local(
            X, kernels, (1, 2), pad, (2, 3), dimension_numbers=MIXED, precision="highest"
        )
    first = X.transpose(0, 3, 1, 2)
    out["conv"] = L.conv(first, K.transpose(3, 2, 0, 1), (2, 1), "SAME")
    out["general"] = L.conv_with_general_padding(
        first, K.transpose(3, 2, 0, 1), (1, 1), ((1, 1), (0, -1)), (1, 2), (2, 1)
    )
    out["1d"] = L.conv_transpose(X[:, 0], K[0], (2,), "SAME")
    return out


def test_values_are_those_of_jax() -> None:
    wanted = jax.jit(lambda: forms(jax.lax))()
    got = forms(lax)
    for name, right in wanted.items():
        np.testing.assert_allclose(got[name], right, rtol=1e-4, atol=1e-5, err_msg=name)


def test_the_transpose_with_consistent_padding_is_a_gradient() -> None:
    y = RNG.normal(size=(2, 3, 3, 4)).astype("f")

    def f(x: Any) -> Any:
        return (y * lax.conv_general_dilated(x, K, (2, 2), ((1, 1), (0, 1)), dimension_numbers=LAST)).sum()

    ct = corejax.grad(f)(X)
    back = lax.conv_transpose(
        y, K, (2, 2), ((1, 1), (0, 1)), dimension_numbers=LAST, transpose_kernel=True, use_consistent_padding=True
    )
    np.testing.assert_allclose(back, ct[:, : back.shape[1], : back.shape[2]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "shape",
    [
        lambda L: L.conv_general_shape_tuple((2, 5, 6, 3), (2, 3, 3, 4), (2, 1), "SAME", ("NHWC", "HWIO", "NCHW")),
        lambda L: L.conv_transpose_shape_tuple((2, 5, 6, 3), (2, 3, 3, 4), (2, 1), "SAME", LAST),
        lambda L: L.conv_transpose_shape_tuple((2, 5, 6, 3), (2, 3, 3, 4), (2, 1), ((1, 2), (0, 3)), LAST),
        lambda L: L.conv_shape_tuple((2, 3, 5, 6), (4, 3, 2, 2), (1, 2), ((1, 0), (0, 3))),
        lambda L: L.conv_shape_tuple((4, 3, 5, 6), (4, 3, 2, 2), (1, 2), ((1, 0), (0, 3)), 2),
        lambda L: L.padtype_to_pads((5, 6), (2, 3), (2, 2), "same_lower"),
        lambda L: L.padtype_to_pads((5, 6), (2, 3), (2, 2), "VALID"),
        lambda L: L.reduce_window_shape_tuple((5, 6), (2, 3), (2, 2), ((1, 1), (0, 0)), (1, 2), (2, 1)),
        lambda L: L.conv_general_permutations(MIXED),
        lambda L: tuple(L.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), MIXED)),
        lambda L: tuple(L.conv_dimension_numbers((1, 2, 3), (1, 2, 3), None)),
    ],
)
def test_shapes_are_those_of_jax(shape: Any) -> None:
    assert shape(lax) == shape(jax.lax)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="no default dimension_numbers"):
        lax.conv_transpose(np.zeros((1,) * 6, "f"), np.zeros((1,) * 6, "f"), (1,) * 4, "SAME")
    with pytest.raises(ValueError, match="'SAME', 'VALID' or a"):
        lax.conv_transpose(X, K, (1, 1), "SAME_LOWER")
    with pytest.raises(TypeError, match="conv_general_dilated_patches: filter_shape"):
        lax.conv_general_dilated_patches(X, (2,), (1, 1), "SAME")
    with pytest.raises(TypeError, match=r"lhs_spec .* does not name each of 4 axes once"):
        lax.conv_general_dilated(
            X, K, (1, 1), "SAME", dimension_numbers=lax.ConvDimensionNumbers((0, 0, 1, 2), *[(0, 1, 2, 3)] * 2)
        )


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("conv_shape_tuple", (None, (3, 3, 3), (1,), "SAME"), "Shapes must be"),
        ("conv_shape_tuple", ((1, 3, 8), (3, 3), (1,), "SAME"), "the same number each, got (1, 3, 8) and (3, 3)"),
        ("conv_shape_tuple", ((1, 3, 8), (4, 3, 3), (0,), "SAME"), "strides must have every element be at least 1"),
        ("conv_shape_tuple", ((1, 3, 8), (4, 3, 3), (1,), 3), "padding argument is one of"),
        ("conv_general_shape_tuple", ((1, 8, 8), (3, 3, 3, 4), (1, 1), "SAME", MIXED), "4 sizes each"),
        ("conv_general_shape_tuple", ((1, 8, 8, 3), (3, 3, 3, 4), (1, 1), "SAME", None), "three strings, got None"),
        ("conv_transpose_shape_tuple", ((1, 4, 4, 1), (2, 2, 1, 1), (2,), "SAME", MIXED), "window_strides (2,)"),
        ("conv_transpose_shape_tuple", ((1, 4, 4, 1), (2, 2, 1, 1), (2, 2), [(0, 1)], MIXED), "a pair for each of 2"),
    ],
)
def test_bad_shapes_are_named(name: str, args: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        getattr(lax, name)(*args)


def test_a_residual_block_with_its_gradient() -> None:
    """Convolutions, normalisation, pooling and a shortcut, differentiated and compiled."""
    x = RNG.normal(size=(2, 8, 8, 4)).astype("f")
    params = [RNG.normal(size=(3, 3, 4, 4)).astype("f") / 6, RNG.normal(size=(1, 1, 4, 4)).astype("f") / 2]

    def block(library: Any, params: Any, x: Any) -> Any:
        L, np_ = library.lax, library.numpy

        def conv(x: Any, w: Any, strides: Any = (1, 1)) -> Any:
            return L.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=LAST)

        h = conv(x, params[0])
        h = (h - h.mean((0, 1, 2))) / np_.sqrt(h.var((0, 1, 2)) + 1e-5)
        h = np_.maximum(h, 0)
        h = conv(h, params[0], (2, 2)) + conv(x, params[1], (2, 2))
        h = L.reduce_window(h, -np.inf, L.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        mean = L.reduce_window(h, 0.0, L.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
        return (mean**2).sum()

    wanted = jax.jit(jax.value_and_grad(lambda p: block(jax, p, x)))(params)
    ours = corejax.value_and_grad(lambda p: block(corejax, p, x))
    for value, gradients in (ours(params), corejax.jit(ours)(params)):
        np.testing.assert_allclose(value, wanted[0], rtol=1e-4)
        for got, right in zip(gradients, wanted[1], strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)
