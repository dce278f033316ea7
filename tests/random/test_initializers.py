"""`corejax.nn.initializers` that draw give what jax's give."""

import numpy as np
import pytest

import corejax
import corejax.random as random
from corejax.nn import initializers

jax = pytest.importorskip("jax")

KEY, JAX_KEY = random.key(3), jax.random.key(3)
CASES = [
    ("uniform", (2.0,), (4, 3), "float32"),
    ("normal", (2.0,), (4, 3), "bfloat16"),
    ("truncated_normal", (0.5,), (4, 3), "float32"),
    ("glorot_uniform", (), (4, 3), "float32"),
    ("xavier_normal", (), (2, 4, 3), "float32"),
    ("lecun_normal", (), (4, 3), "complex64"),
    ("he_uniform", (), (4, 3), "complex64"),
    ("kaiming_normal", ((0, 1), 2), (3, 2, 5), "float32"),
    ("variance_scaling", (2.0, "fan_geo_avg", "normal", -2, -1, 0), (2, 4, 3), "float32"),
]


@pytest.mark.parametrize(("name", "args", "shape", "dtype"), CASES)
def test_as_jax(name, args, shape, dtype):
    got = getattr(initializers, name)(*args)(KEY, shape, dtype)
    wanted = np.asarray(getattr(jax.nn.initializers, name)(*args)(JAX_KEY, shape, dtype))
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    error = 2e-2 if dtype == "bfloat16" else 2e-5
    np.testing.assert_allclose(np.asarray(got).astype(wide), wanted.astype(wide), rtol=error, atol=error)


@pytest.mark.parametrize("name", ["orthogonal", "delta_orthogonal"])
def test_orthogonal(name):
    pytest.importorskip("corejax.numpy.linalg")
    got = getattr(initializers, name)()(KEY, (3, 2, 4))
    wanted = getattr(jax.nn.initializers, name)()(JAX_KEY, (3, 2, 4))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_names_and_defaults():
    assert {"constant", "he_normal", "orthogonal"} <= set(dir(initializers))
    assert set(dir(jax.nn.initializers)) <= set(dir(initializers))
    init = initializers.he_normal(dtype="float16")
    assert init(KEY, (2, 2)).dtype == np.float16
    assert corejax.jit(lambda key: init(key, (2, 2)))(KEY).shape == (2, 2)


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: initializers.he_normal(), (3,), r"weights of shape \(3,\) have no axis -2"),
        (lambda: initializers.variance_scaling(1.0, "fan", "normal"), (3, 3), "mode must be one of .*'fan_in'.*'fan'"),
        (lambda: initializers.variance_scaling(1.0, "fan_in", "cauchy"), (3, 3), "distribution must be .*'cauchy'"),
        (lambda: initializers.orthogonal(), (3,), "at least two axes"),
        (lambda: initializers.delta_orthogonal(), (3, 4, 2), "as many outputs"),
    ],
)
def test_refused(make, shape, message):
    with pytest.raises(ValueError, match=message):
        make()(KEY, shape)
