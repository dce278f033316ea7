"""What distributions refuse, with function, argument and value; and what they take."""

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.random as random
from corejax.extend import dtypes

KEY = random.key(1)
REFUSED = [
    (lambda: random.normal(KEY, (2, -1)), ValueError, r"normal: shape .* nonnegative integers, got \(2, -1\)"),
    (lambda: random.normal(KEY, 1.5), TypeError, "normal: shape must consist of concrete integers"),
    (lambda: random.normal(KEY, (), "int32"), ValueError, "normal: dtype must be floating-point or complex, got i32"),
    (lambda: random.uniform(KEY, (), "complex64"), ValueError, "uniform: dtype must be floating-point, got c64"),
    (lambda: random.uniform(KEY, (), "float4_e2m1fn"), ValueError, "uniform: dtype must have 8, 16, 32 or 64 bits"),
    (lambda: random.bits(KEY, (), "int32"), ValueError, "argument to bits must be an unsigned int dtype, got i32"),
    (lambda: random.randint(KEY, (3,), 0, 1, "float32"), TypeError, "randint: dtype must be an integer dtype, got f32"),
    (lambda: random.uniform(KEY, (3,), minval=np.zeros(2)), ValueError, "uniform: Incompatible shapes"),
    (lambda: random.uniform(KEY, (2,), minval=np.zeros((3, 1))), ValueError, r"minval of shape \(3, 1\).*\(2,\)"),
    (lambda: random.uniform(KEY, (2,), maxval=KEY), TypeError, r"uniform: maxval must be real, got key<fry>\[\]"),
    (lambda: random.gamma(KEY, -1.0), ValueError, "gamma: a must not be negative, got -1.0"),
    (lambda: random.gamma(KEY, "x"), TypeError, "gamma: a must be an array or a number, got 'x' of type str"),
    (lambda: random.rayleigh(KEY, np.float32([1, -2])), ValueError, r"rayleigh: scale must not be negative, got array"),
    (lambda: random.poisson(KEY, -3), ValueError, "poisson: lam must not be negative, got -3"),
    (lambda: random.pareto(KEY, np.float64(2.0)), dtypes.TypePromotionError, "pareto: b has dtype f64, .*, f32"),
    (lambda: random.bernoulli(KEY, 1), TypeError, "bernoulli: p must be floating-point"),
    (lambda: random.bernoulli(KEY, 0.5, mode="both"), ValueError, "bernoulli: mode .* 'high' or 'low', got 'both'"),
    (lambda: random.gumbel(KEY, mode="best"), ValueError, "gumbel: mode .* 'low', 'high' or 'highest', got 'best'"),
    (lambda: random.dirichlet(KEY, 1.0), ValueError, "dirichlet: alpha must have at least one axis"),
    (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, r"choice: .* 4 draws .*, but a has 3"),
    (lambda: random.choice(KEY, 0, (4,)), ValueError, "choice: a must not be empty, got 0"),
    (lambda: random.choice(KEY, 3, 4), TypeError, "choice: shape must be a sequence of sizes, got 4"),
    (lambda: random.choice(KEY, 3, (2,), p=np.ones(2)), ValueError, r"choice: p .* vector of 3 .* got shape \(2,\)"),
    (lambda: random.permutation(KEY, 1.5), TypeError, "permutation: x must be an array or a concrete integer"),
    (lambda: random.permutation(KEY, np.arange(3), 1), ValueError, "permutation: axis 1 is out of bounds"),
    (lambda: random.categorical(KEY, np.zeros((2, 3), np.float32), axis=2), ValueError, "categorical: axis 2"),
    (lambda: random.categorical(KEY, np.zeros(3, "f4"), shape=(4,), replace=False), ValueError, "4, exceeds"),
    (lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(3)), ValueError, r"mean must have shape .* and cov"),
    (lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(2), method="lu"), ValueError, "method .* 'cholesky'"),
    (lambda: random.multinomial(KEY, 3, 0.5), ValueError, "multinomial: p must have an axis of outcomes"),
    (lambda: random.permutation(KEY, 3, axis=np.ones(2)), TypeError, r"permutation: .* integer, got array\(\["),
    (lambda: random.permutation(KEY, 3, independent=np.ones(2)), TypeError, "permutation: independent .* True or Fal"),
    (lambda: random.choice(KEY, 3, replace="no"), TypeError, "choice: replace must be True or False, got 'no'"),
    (lambda: random.choice(KEY, 3, mode=np.ones(3)), ValueError, r"choice: mode must be 'low', .* got array\(\["),
    (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method=np.ones(2)), ValueError, "method .* 'chol"),
    (lambda: random.multinomial(KEY, 3, np.ones(2), unroll="x"), TypeError, "multinomial: unroll .* concrete integer"),
    (lambda: random.ball(KEY, 2.5), TypeError, "ball: d must be a concrete integer, got 2.5 of type float"),
    (lambda: random.ball(KEY, 2, 0), ValueError, "ball: p must be positive, got 0"),
    (lambda: random.generalized_normal(KEY, -1.0), ValueError, "generalized_normal: p must be positive, got -1.0"),
    (lambda: random.binomial(KEY, 5, 0.5j), TypeError, r"binomial: p must be real, got c64\[\]"),
    (lambda: random.gamma(KEY, 1.0, (10**12,)), MemoryError, "a draw of 1000000000000 numbers takes"),
    (lambda: random.normal(KEY, (), out_sharding="x"), TypeError, "normal: out_sharding: expected one of"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, error, message = REFUSED[number]
    with pytest.raises(error, match=message):
        call()


def test_what_is_out_of_the_ordinary_and_right():
    assert random.uniform(KEY, 3).shape == (3,) and random.uniform(KEY, np.array([2, 1])).shape == (2, 1)
    assert random.uniform(key=KEY, shape=(2,), dtype=jnp.float16, minval=1, maxval=2).dtype == np.float16
    assert bool(random.bernoulli(KEY, 1.0)) and not bool(random.bernoulli(KEY, 0.0))
    assert random.gamma(KEY, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert random.permutation(KEY, 0).shape == (0,) and random.choice(KEY, 5, (0,)).shape == (0,)
    np.testing.assert_array_equal(random.truncated_normal(KEY, 2.0, 2.5, (9,)) > 2.0, True)
    assert np.isnan(random.gamma(KEY, float("nan")))
    with corejax.config.override(enable_x64=True):
        assert random.normal(KEY).dtype == np.float64 and random.randint(KEY, (), 0, 3).dtype == np.int64
        assert random.bits(KEY).dtype == np.uint64


def test_without_a_compiler():
    with corejax.config.override(disable_jit=True):
        drawn = random.uniform(KEY, (600,))
    np.testing.assert_array_equal(drawn, random.uniform(KEY, (600,)))
    few = random.binomial(KEY, 300, jnp.asarray(0.5, jnp.float8_e4m3fn))  # whose dtype does not count so far
    assert 100 < float(few) < 200 and float(random.beta(KEY, 2**70, 1.0)) == 1.0
