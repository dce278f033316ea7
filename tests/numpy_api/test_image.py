"""corejax.image: against jax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import image

jax = pytest.importorskip("jax")
pytest.importorskip("jax.image")

X = np.random.default_rng(0).normal(size=(7, 9, 2)).astype("f")
METHODS = ("linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area")
SHAPES = ((14, 5, 2), (3, 20, 2), (7, 9, 2), (1, 1, 3), (0, 4, 2))
SCALE, TRANSLATION = np.array([0.63, 1.7], "f"), np.array([1.2, -2.1], "f")


def resized(library: Any, x: Any) -> dict[str, Any]:
    out = {}
    for method in METHODS:
        out[f"{method} wide"] = library.image.resize(x, (14, 5, 2), method)
        out[f"{method} high"] = library.image.resize(x, (3, 20, 2), method, False)
    for shape in SHAPES:
        out[f"linear {shape}"] = library.image.resize(x, shape, "triangle")
        out[f"nearest {shape}"] = library.image.resize(x, shape, "nearest")
    return out


def test_sizes_are_changed_as_in_jax() -> None:
    wanted = jax.jit(lambda x: resized(jax, x))(X)
    for name, got in resized(corejax, X).items():
        assert (got.shape, got.dtype) == (wanted[name].shape, wanted[name].dtype)
        np.testing.assert_allclose(got, wanted[name], rtol=1e-4, atol=2e-5, err_msg=name)


WAYS = [("linear", True), ("lanczos3", True), ("cubic", False), ("cubic-pytorch", False), ("area", True)]


def moved(library: Any, scale: Any, translation: Any) -> dict[str, Any]:
    return {
        method: library.image.scale_and_translate(X, (6, 11, 2), (0, -2), scale, translation, method, antialias)
        for method, antialias in WAYS
    }


def test_images_are_moved_as_in_jax_by_known_and_traced_numbers() -> None:
    wanted = jax.jit(lambda s, t: moved(jax, s, t))(SCALE, TRANSLATION)
    traced = corejax.jit(lambda s, t: moved(corejax, s, t))(SCALE, TRANSLATION)
    for name, got in moved(corejax, SCALE, TRANSLATION).items():
        np.testing.assert_allclose(got, wanted[name], rtol=1e-4, atol=5e-5, err_msg=name)
        np.testing.assert_allclose(traced[name], wanted[name], rtol=1e-4, atol=5e-5, err_msg=name)


def test_derivatives_by_image_scale_and_translation() -> None:
    def loss(library: Any) -> Any:
        def f(x: Any, scale: Any, translation: Any) -> Any:
            out = library.image.scale_and_translate(x, (6, 11, 2), range(2), scale, translation, "cubic")
            return (out**2).sum() + (library.image.resize(x, (4, 4, 2), "lanczos3") ** 2).sum()

        return library.grad(f, (0, 1, 2))

    wanted = jax.jit(loss(jax))(X, SCALE, TRANSLATION)
    for got, right in zip(loss(corejax)(X, SCALE, TRANSLATION), wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=2e-3, atol=2e-3)


def test_dtypes() -> None:
    for dtype, out in (("bfloat16", "bfloat16"), ("int32", "float32"), ("complex64", "complex64"), ("bool", "float32")):
        x = (X > 0).astype(dtype)
        for shape in ((3, 4, 2), (7, 9, 2)):
            assert image.resize(x, shape, "linear").dtype == out
            assert image.resize(x, shape, "nearest").dtype == dtype
    assert image.resize(X.astype("d"), (3, 4, 2), "cubic").dtype == np.float64


def test_a_program_has_a_product_for_each_axis_that_changes() -> None:
    program = corejax.make_jaxpr(lambda x: image.resize(x, (3, 4, 2), "linear"))(X)
    assert [eqn.primitive.name for eqn in program.eqns] == ["dot_general", "dot_general", "transpose"]
    assert not corejax.make_jaxpr(lambda x: image.resize(x, X.shape, "linear"))(X).eqns


def test_names() -> None:
    assert dir(image) == ["ResizeMethod", "resize", "scale_and_translate"]
    assert {m.name: m.value for m in image.ResizeMethod} == {m.name: m.value for m in jax.image.ResizeMethod}
    assert image.ResizeMethod.from_string("triangle") is image.ResizeMethod.LINEAR


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: image.resize(X, (3, 4), "linear"), ValueError, r"shape \(3, 4\) .* each axis of \(7, 9, 2\)"),
        (lambda: image.resize(X, (3, -4, 2), "linear"), ValueError, "non-negative"),
        (
            lambda: image.resize(X, (3, 4, 2), "linaer"),
            ValueError,
            "unknown method 'linaer'; the methods are 'nearest'",
        ),
        (lambda: image.resize(X, (3, 4, 2), 1), TypeError, "a ResizeMethod or its name, got 1"),
        (lambda: image.resize(X[:0], (3, 4, 2), "linear"), ValueError, "has no pixels"),
        (lambda: image.scale_and_translate(X, (3, 4, 2), (0,), SCALE[:1], SCALE[:1], "cubic"), ValueError, "axis 1"),
        (
            lambda: image.scale_and_translate(X, (3, 4, 2), (0, 1), SCALE[:1], SCALE, "cubic"),
            ValueError,
            "a number for each of",
        ),
        (
            lambda: image.scale_and_translate(X, (3, 4, 2), (0, 0), SCALE, SCALE, "cubic"),
            ValueError,
            "spatial_dims",
        ),
        (
            lambda: image.scale_and_translate(X, (3, 4, 2), (0, 1), SCALE, SCALE, "nearest"),
            ValueError,
            "method 'nearest' is supported by resize only",
        ),
    ],
)
def test_what_does_not_fit_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
