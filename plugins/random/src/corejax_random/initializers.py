"""Random initializers of `corejax.nn.initializers`: functions `(key, shape, dtype)` that return parameters.

Sources: Glorot and Bengio 2010 (`glorot_*`, also called `xavier_*`), LeCun et al. 1998 (`lecun_*`), He et al. 2015
(`he_*`, also called `kaiming_*`), Saxe et al. 2014 (`orthogonal`), Xiao et al. 2018 (`delta_orthogonal`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax.numpy as jnp
from corejax.extend import config, dtypes
from corejax_lax_basic import lax
from corejax_random.distributions.normal import normal as draw_normal
from corejax_random.distributions.normal import truncated_normal as draw_truncated
from corejax_random.distributions.selection import orthogonal as draw_orthogonal
from corejax_random.distributions.uniform import uniform as draw_uniform
from corejax_random.keys.functions import shape_argument, split

Axes = int | Sequence[int]
Initializer = Callable[..., Any]

# Standard deviations of standard normal numbers truncated to [-2, 2], and of complex ones truncated to modulus 2.
_TRUNCATED, _TRUNCATED_COMPLEX = 0.87962566103423978, 0.95311164380491208


def _initializer(name: str, default: Any, make: Callable[[Any, tuple[int, ...], Any], Any]) -> Initializer:
    """Return `init(key, shape, dtype)` from a function of a key, a tuple and a NumPy dtype."""

    def init(key: Any, shape: Any, dtype: Any = None, out_sharding: Any = None) -> Any:
        wanted = default if dtype is None else dtype
        dtype = dtypes.default_float_dtype() if wanted is None else dtypes.canonicalize_dtype(wanted)
        return lax.place(name, make(key, shape_argument(name, shape), dtype), out_sharding)

    if not config.x64_compat:  # JAX calls all of them "init"
        init.__name__ = init.__qualname__ = name
    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer that draws uniform numbers in [0, scale).

    Args:
        scale: the upper bound.
        dtype: default dtype of the parameters; the default floating-point dtype if None.
    """
    return _initializer("uniform", dtype, lambda key, shape, dt: draw_uniform(key, shape, dt) * jnp.asarray(scale, dt))


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer that draws normal numbers of mean 0.

    Args:
        stddev: the standard deviation.
        dtype: default dtype of the parameters; the default floating-point dtype if None.
    """
    return _initializer("normal", dtype, lambda key, shape, dt: draw_normal(key, shape, dt) * jnp.asarray(stddev, dt))


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """Return an initializer that draws standard normal numbers between two bounds and multiplies them by `stddev`.

    Args:
        stddev: factor of the truncated numbers; the standard deviation before truncation.
        dtype: default dtype of the parameters; the default floating-point dtype if None.
        lower: lower bound, before the multiplication.
        upper: upper bound, before the multiplication.
    """

    def make(key: Any, shape: Any, dt: Any) -> Any:
        return draw_truncated(key, lower, upper, shape, dt) * jnp.asarray(stddev, dt)

    return _initializer("truncated_normal", dtype, make)


# -- scaled by the sizes of a layer --------------------------------------------------------------------------------


def _sizes(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[i] for i in ((axes,) if isinstance(axes, int) else axes))


def _fans(shape: tuple[int, ...], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """Return fan-in and fan-out: the inputs of each output, and the outputs of each input.

    Axes that are neither inputs, outputs nor batch are the window of a convolution.
    """
    if in_axis == -2 and len(shape) < 2:
        raise ValueError(
            f"variance_scaling: weights of shape {shape} have no axis -2 of inputs; use at least two axes, or in_axis"
        )
    inputs, outputs, batch = (_sizes(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    window = math.prod(shape) / inputs / outputs / batch
    return inputs * window, outputs * window


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
    "fan_geo_avg": lambda inputs, outputs: (inputs * outputs) ** 0.5,
}


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Return an initializer that draws numbers of mean 0 and variance `scale / n`, where n is a size of the layer.

    Args:
        scale: a positive number.
        mode: the size n: "fan_in", the number of inputs of an output; "fan_out", the number of outputs of an input;
            "fan_avg" and "fan_geo_avg", their arithmetic and geometric means.
        distribution: "truncated_normal" (at two standard deviations), "normal" or "uniform"; complex uniform numbers
            are uniform in a disk.
        in_axis: axes of the inputs.
        out_axis: axes of the outputs.
        batch_axis: axes that count neither as inputs nor as outputs.
        dtype: default dtype of the parameters; the default floating-point dtype if None.

    Raises:
        ValueError: in the initializer, if the mode or the distribution is unknown, or the shape has no such axes.
    """

    def make(key: Any, shape: Any, dt: Any) -> Any:
        if mode not in _MODES:
            raise ValueError(f"variance_scaling: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}")
        variance = jnp.asarray(scale / _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis)), dt)
        return _scaled(key, shape, dt, variance, distribution)

    return _initializer("variance_scaling", dtype, make)


def _scaled(key: Any, shape: Any, dtype: Any, variance: Any, distribution: str) -> Any:
    is_complex = dtypes.is_complex(dtype)
    if distribution == "normal":
        return draw_normal(key, shape, dtype) * jnp.sqrt(variance)
    if distribution == "uniform" and is_complex:
        return _in_disk(key, shape, dtype, None) * jnp.sqrt(variance)
    if distribution == "uniform":
        return draw_uniform(key, shape, dtype, -1.0) * jnp.sqrt(3 * variance)
    if distribution != "truncated_normal":
        raise ValueError(
            f"variance_scaling: distribution must be 'truncated_normal', 'normal' or 'uniform', got {distribution!r}"
        )
    deviation = jnp.sqrt(variance) / jnp.asarray(_TRUNCATED_COMPLEX if is_complex else _TRUNCATED, dtype)
    drawn = _in_disk(key, shape, dtype, 2.0) if is_complex else draw_truncated(key, -2.0, 2.0, shape, dtype)
    return drawn * deviation


def _in_disk(key: Any, shape: Any, dtype: Any, bound: float | None) -> Any:
    """Draw complex numbers, uniform in a disk with variance 1, or normal and truncated to the modulus `bound`."""
    keys, real = split(key), dtypes.real_dtype_of(dtype)
    u = draw_uniform(keys[0], shape, real)
    if bound is None:
        modulus = jnp.sqrt(2 * u)
    else:
        modulus = jnp.sqrt(-jnp.log(1 - u * np.asarray(1 - math.exp(-(bound**2)), real)))
    angle = np.asarray(2 * math.pi, real) * draw_uniform(keys[1], shape, real)
    return lax.complex(modulus * jnp.cos(angle), modulus * jnp.sin(angle))


def _family(name: str, scale: float, mode: str, distribution: str, doc: str) -> Initializer:
    def make(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return {doc} initializer: `variance_scaling({scale}, {mode!r}, {distribution!r}, ...)`."
    return make


glorot_uniform = xavier_uniform = _family("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot's uniform")
glorot_normal = xavier_normal = _family("glorot_normal", 1.0, "fan_avg", "truncated_normal", "Glorot's normal")
lecun_uniform = _family("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun's uniform")
lecun_normal = _family("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun's normal")
he_uniform = kaiming_uniform = _family("he_uniform", 2.0, "fan_in", "uniform", "He's uniform")
he_normal = kaiming_normal = _family("he_normal", 2.0, "fan_in", "truncated_normal", "He's normal")


# -- orthogonal ----------------------------------------------------------------------------------------------------


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer that draws matrices with orthonormal rows or columns, whichever are fewer.

    Args:
        scale: factor of the matrices.
        column_axis: axis of the columns; the other axes together are the rows.
        dtype: default dtype of the parameters; the default floating-point dtype if None.

    Raises:
        ValueError: in the initializer, if the shape has fewer than two axes.
    """

    def make(key: Any, shape: Any, dt: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: the shape must have at least two axes, got {shape}")
        if 0 in shape:
            return jnp.zeros(shape, dt)
        columns = shape[column_axis]
        others = tuple(int(n) for n in np.delete(shape, column_axis))
        drawn = draw_orthogonal(key, math.prod(others), (), dt, columns)
        return jnp.asarray(scale, dt) * jnp.moveaxis(drawn.reshape((*others, columns)), -1, column_axis)

    return _initializer("orthogonal", dtype, make)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer of convolution kernels: an orthogonal matrix in the middle of the window, 0 elsewhere.

    Args:
        scale: factor of the matrices.
        column_axis: axis of the columns, see `orthogonal`.
        dtype: default dtype of the parameters; the default floating-point dtype if None.

    Raises:
        ValueError: in the initializer, if the shape does not have 3, 4 or 5 axes, or has more inputs than outputs.
    """

    def make(key: Any, shape: Any, dt: Any) -> Any:
        if not 3 <= len(shape) <= 5:
            raise ValueError(f"delta_orthogonal: the shape must have 3, 4 or 5 axes, got {shape}")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal: the shape must have at least as many outputs (axis -1) as inputs, got {shape}"
            )
        matrix = orthogonal(scale, column_axis, dt)(key, shape[-2:])
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return jnp.zeros(shape, dt).at[middle].set(matrix)

    return _initializer("delta_orthogonal", dtype, make)
