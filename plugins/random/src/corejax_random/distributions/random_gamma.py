"""The primitive `random_gamma`, which draws gamma numbers or their logarithms.

    random_gamma : (key[*b], f[*b,*s]) -> f[*b,*s]      params: log_space

Each element is drawn with a separate key, split from the operand. The derivative with respect to the shape parameter
keeps the quantile of the sample fixed (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import corejax
import corejax.numpy as jnp
from corejax.extend import (
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    as_array,
    defjvp_with_result,
    dtypes,
    host_value,
    impl_rules,
    move_batch_axis,
    nondifferentiable,
    vmap_rules,
)
from corejax_lax_basic import lax
from corejax_random.distributions.drawing import COMPILED, keys, size_of, two_keys
from corejax_random.distributions.gamma_on_host import gamma_on_host
from corejax_random.distributions.normal import standard_normal
from corejax_random.distributions.quantiles import standard_exponential
from corejax_random.distributions.uniform import between_0_and_1
from corejax_random.generators.table import UINTS, generator_of, is_key_dtype
from corejax_random.generators.threefry import THREEFRY, split_on_host
from corejax_random.keys.primitives import words_of


def _draw_gamma(key: Any, a: Any, *, log_space: bool) -> Any:
    """Draw each element by a rejection loop, all elements together."""
    key, a = as_array(key), as_array(a)
    each = keys(key, size_of(a.shape[key.ndim :])).reshape(-1)
    one = functools.partial(_one_gamma, log_space=log_space)
    if generator_of(key.dtype).name == "threefry2x32":
        return corejax.vmap(one)(each, a.reshape(-1)).reshape(a.shape)
    # Under vmap, keys of other generators may draw other numbers than one by one.
    return lax.map(lambda operands: one(*operands), (each, a.reshape(-1))).reshape(a.shape)


def _one_gamma(key: Any, a: Any, log_space: bool) -> Any:
    """Draw one number (Marsaglia and Tsang 2000); for `a` below 1 with `a + 1` and a power of a uniform number."""
    dtype = a.dtype
    large = a >= 1
    boosted = jnp.where(large, a, a + 1)
    d = boosted - dtype.type(1 / 3)
    c = dtype.type(1 / 3) / lax.sqrt(d)
    key, last = two_keys(key)
    v = _accepted_cube(key, c, d)
    if log_space:
        logs = lax.neg(standard_exponential(last, shape=(), dtype=dtype))
        boost = jnp.where(large | (logs == 0), dtype.type(0), logs * (1 / a))
        return lax.log(d) + lax.log(v) + boost
    u = 1 - between_0_and_1(last, shape=(), dtype=dtype)
    return d * v * jnp.where(large, dtype.type(1), lax.pow(u, 1 / a))


def _accepted_cube(key: Any, c: Any, d: Any) -> Any:
    """Return the first cube of 1 + c x, x normal, that the test accepts."""
    dtype = d.dtype
    zero, one, two = (jnp.full((), n, dtype) for n in (0, 1, 2))

    def positive(key: Any) -> tuple[Any, Any]:
        def step(state: Any) -> Any:
            key, subkey = two_keys(state[0])
            x = standard_normal(subkey, shape=(), dtype=dtype)
            return key, x, 1 + x * c

        _, x, v = lax.while_loop(lambda state: state[2] <= 0, step, (key, zero, -one))
        return x, v

    def rejected(state: Any) -> Any:
        _, x, v, u = state
        close = u >= 1 - dtype.type(0.0331) * (x * x)
        return close & (lax.log(u) >= x * dtype.type(0.5) + d * (1 - v + lax.log(v)))

    def attempt(state: Any) -> Any:
        three = keys(state[0], 3)
        x, v = positive(three[1])
        return three[0], x * x, v * v * v, between_0_and_1(three[2], shape=(), dtype=dtype)

    return lax.while_loop(rejected, attempt, (key, zero, one, two))[2]


random_gamma_p = Primitive(
    "random_gamma",
    decomposition=_draw_gamma,
    doc="Draw gamma numbers, or their logarithms, for an array of shape parameters: key[], f[*s] -> f[*s].",
)


def _is_supported(dtype: Any) -> bool:
    return dtypes.is_float(dtype) and dtypes.finfo(dtype).bits in UINTS


@abstract_eval_rules.register(random_gamma_p)
def random_gamma_type(key: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
    """Return the type of the shape parameters."""
    if not is_key_dtype(key.dtype) or not _is_supported(a.dtype) or a.shape[: key.ndim] != key.shape:
        raise TypeError(
            "random_gamma takes keys and floating-point numbers with the axes of the keys as leading axes; got "
            f"{key.str_short()} and {a.str_short()}"
        )
    return a.strip_weak_type()


@impl_rules.register(random_gamma_p)
def random_gamma_impl(key: Any, a: Any, *, log_space: bool) -> Any:
    """Draw few numbers by NumPy, many by the decomposition."""
    if not 0 < a.size < COMPILED or generator_of(key.dtype) is not THREEFRY:
        return host_value(impl_rules.derived(random_gamma_p)(key, a, log_space=log_space))
    each = split_on_host(words_of(key), (math.prod(a.shape[key.ndim :]),)).reshape(-1, 2)
    return gamma_on_host(each, a.reshape(-1), log_space=log_space).reshape(a.shape)


@vmap_rules.register(random_gamma_p)
def random_gamma_vmap(axis_size: int, vals: Any, dims: Any, *, log_space: bool) -> tuple[Any, int]:
    """Move the batch axis of both operands to the front; an unmapped key is repeated."""
    key, a = (move_batch_axis(axis_size, d, 0, x) for x, d in zip(vals, dims, strict=True))
    return random_gamma_p.bind(key, a, log_space=log_space), 0


def _sample_slope(tangent: Any, sample: Any, key: Any, a: Any, *, log_space: bool) -> Any:
    if not log_space:
        return tangent * lax.random_gamma_grad(a, sample)
    # Close to 0 the distribution function is x**a / gamma(a + 1), and its logarithm does not underflow.
    info = dtypes.finfo(a.dtype)
    close = sample < math.log(info.eps)
    value = lax.exp(jnp.where(close, a.dtype.type(0), sample))
    slope = jnp.where(close, (lax.digamma(a + 1) - sample) / a, lax.random_gamma_grad(a, value) / value)
    # A finite slope times a sample that underflows to 0 is 0, and an infinite slope would be NaN.
    return tangent * jnp.minimum(slope, a.dtype.type(info.max))


defjvp_with_result(random_gamma_p, nondifferentiable("keys are not numbers"), _sample_slope)
