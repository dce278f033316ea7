"""`corejax.example_libraries.stax`: layers of neural networks as pairs of functions, small enough to copy and change.

    init_fun(rng, input_shape) -> (output_shape, params)          apply_fun(params, inputs, **kwargs) -> outputs

`serial` and `parallel` combine layers. Shapes have the batch axis first; -1 stands for a size that `init_fun` does not
need. A layer that draws random numbers takes a key as the keyword argument `rng` of its `apply_fun`.

Example:
    >>> import corejax
    >>> from corejax.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(8), stax.Tanh, stax.Dense(1))
    >>> shape, params = init(corejax.random.key(0), (-1, 3))
    >>> shape, apply(params, corejax.numpy.ones((5, 3))).shape
    ((-1, 1), (5, 1))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import corejax.numpy as jnp
from corejax import lax, nn, random
from corejax.nn.initializers import glorot_normal, normal, ones, zeros  # type: ignore[attr-defined]  # stubs lack some

Layer = tuple[Callable[..., Any], Callable[..., Any]]

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "glorot",
    "logsoftmax",
    "parallel",
    "randn",
    "serial",
    "shape_dependent",
]


# Older names of initializers and of a function, which programs for JAX's module use.
glorot, randn, logsoftmax = glorot_normal, normal, nn.log_softmax


# -- layers with parameters ---------------------------------------------------------------------------------------


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Return a fully connected layer, `inputs @ W + b`.

    Args:
        out_dim: size of the last axis of the result.
        W_init: initializer of W, of shape (size of the inputs' last axis, out_dim); Glorot normal by default.
        b_init: initializer of b; normal by default.
    """
    W_init, b_init = W_init or glorot_normal(), b_init or normal()

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        k1, k2 = random.split(rng)
        W, b = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), (W, b)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Return a convolutional layer.

    Args:
        dimension_numbers: layouts of inputs, weights and results, as for `lax.conv_general_dilated`: ("NHWC", "HWIO",
            "NHWC").
        out_chan: number of channels of the result.
        filter_shape: size of the window.
        strides: strides of the window, 1 by default.
        padding: "SAME", "VALID" (the default), or pairs of widths.
        W_init: initializer of the weights; Glorot normal by default.
        b_init: initializer of the bias of each channel; normal by default.
    """
    numbers, one = tuple(dimension_numbers), (1,) * len(filter_shape)
    strides = tuple(strides or one)
    return _convolution(
        numbers, out_chan, filter_shape, W_init, b_init,
        lambda inputs, kernel: lax.conv_general_shape_tuple(inputs, kernel, strides, padding, numbers),
        lambda x, W: lax.conv_general_dilated(x, W, strides, padding, one, one, dimension_numbers=numbers),
    )  # fmt: skip


def _convolution(
    numbers: Sequence[str], out_chan: int, filter_shape: Sequence[int], W_init: Any, b_init: Any,
    shape_of: Callable[[Any, Any], Any], convolve: Callable[[Any, Any], Any],
) -> Layer:  # fmt: skip
    """Return a layer that convolves with weights and adds a bias to each channel."""
    lhs_spec, rhs_spec, out_spec = numbers
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    b_init = b_init or normal(1e-6)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        kernel_shape = _kernel_shape(rhs_spec, input_shape[lhs_spec.index("C")], out_chan, filter_shape)
        k1, k2 = random.split(rng)
        bias_shape = tuple(out_chan if c == "C" else 1 for c in out_spec)
        return shape_of(input_shape, kernel_shape), (W_init(k1, kernel_shape), b_init(k2, bias_shape))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init_fun, apply_fun


def _kernel_shape(spec: str, in_chan: int, out_chan: int, filter_shape: Sequence[int]) -> tuple[int, ...]:
    window = iter(filter_shape)
    return tuple(out_chan if c == "O" else in_chan if c == "I" else next(window) for c in spec)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = None,
) -> Layer:
    """Return a transposed convolutional layer (`lax.conv_transpose`); arguments as for `GeneralConv`."""
    numbers, strides = tuple(dimension_numbers), tuple(strides or (1,) * len(filter_shape))
    return _convolution(
        numbers, out_chan, filter_shape, W_init, b_init,
        lambda inputs, kernel: lax.conv_transpose_shape_tuple(inputs, kernel, strides, padding, numbers),
        lambda x, W: lax.conv_transpose(x, W, strides, padding, dimension_numbers=numbers),
    )  # fmt: skip


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Return a batch normalisation layer: mean 0 and variance 1, then scale and shift (Ioffe, Szegedy 2015).

    Args:
        axis: the axes of the mean and the variance.
        epsilon: a number added to the variance, 1e-5 by default.
        center: whether to learn a shift.
        scale: whether to learn a scale.
        beta_init: initializer of the shift.
        gamma_init: initializer of the scale.
    """
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        shape = tuple(d for i, d in enumerate(input_shape) if i not in axis)
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        gamma = gamma_init(k2, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = (jnp.expand_dims(p, axis) if not isinstance(p, tuple) else None for p in params)
        z = nn.standardize(x, axis, epsilon=epsilon)
        z = z if gamma is None else gamma * z
        return z if beta is None else z + beta

    return init_fun, apply_fun


# -- layers without parameters ------------------------------------------------------------------------------------


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Return a layer that applies a function that keeps the shape, such as an activation function."""
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)


_POOLING = """{}

    Args:
        window_shape: size of the window over the spatial axes.
        strides: strides of the window, 1 by default.
        padding: "SAME" or "VALID" (the default).
        spec: layout of the inputs, "NHWC" by default.
    """


def _pooling(name: str, reducer: Callable[..., Any], start: float, mean: bool, doc: str) -> Callable[..., Layer]:
    def layer(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: Any = None
    ) -> Layer:
        steps = tuple(strides or (1,) * len(window_shape))
        batch, channel = (0, len(window_shape) + 1) if spec is None else (spec.index("N"), spec.index("C"))

        def with_ones(sizes: Sequence[int]) -> tuple[int, ...]:
            given = iter(sizes)
            return tuple(1 if i in (batch, channel) else next(given) for i in range(len(window_shape) + 2))

        dims, moves = with_ones(window_shape), with_ones(steps)

        def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
            pads = lax.padtype_to_pads(input_shape, dims, moves, padding)
            ones_ = (1,) * len(dims)
            return lax.reduce_window_shape_tuple(input_shape, dims, moves, pads, ones_, ones_), ()

        def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
            def pooled(x: Any) -> Any:
                return lax.reduce_window(x, jnp.asarray(start, x.dtype), reducer, dims, moves, padding)

            return pooled(inputs) / pooled(jnp.ones_like(inputs)) if mean else pooled(inputs)

        return init_fun, apply_fun

    text = _POOLING.format(doc)
    pooling: Callable[..., Layer] = lax.named(layer, name, text)  # type: ignore[attr-defined]  # not in stubs
    return pooling


MaxPool = _pooling("MaxPool", lax.max, -math.inf, False, "Return a layer that computes the maximum of each window.")
SumPool = _pooling("SumPool", lax.add, 0.0, False, "Return a layer that computes the sum of each window.")
AvgPool = _pooling(
    "AvgPool", lax.add, 0.0, True, "Return a layer that computes the mean of each window, without padding."
)


def _flatten() -> Layer:
    def init_fun(rng: Any, input_shape: Sequence[int]) -> tuple[Any, Any]:
        return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """Return a layer that repeats its input `num` times."""
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


def _fan_in_sum() -> Layer:
    def init_fun(rng: Any, input_shape: Sequence[Any]) -> tuple[Any, Any]:
        if len({tuple(shape) for shape in input_shape}) != 1:
            raise ValueError(f"FanInSum: the inputs must have one shape, got {[tuple(s) for s in input_shape]}")
        return input_shape[0], ()

    return init_fun, lambda params, inputs, **kwargs: functools.reduce(operator.add, inputs)


FanInSum = _fan_in_sum()


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that concatenates several inputs along an axis."""

    def init_fun(rng: Any, input_shape: Sequence[Any]) -> tuple[Any, Any]:
        shape = list(input_shape[0])
        shape[axis] = sum(each[axis] for each in input_shape)
        return tuple(shape), ()

    return init_fun, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a dropout layer: some inputs become zero, the others are scaled up (Srivastava et al. 2014).

    Args:
        rate: the probability to keep an input.
        mode: "train", the default; any other mode returns the inputs unchanged.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout: a layer that draws random numbers needs a key: apply_fun(params, inputs, rng=key) with a key "
                "of corejax.random"
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply_fun


# -- combinators --------------------------------------------------------------------------------------------------


def _keys(rng: Any, count: int) -> Iterable[Any]:
    return (None,) * count if rng is None else random.split(rng, count)


def _parts(name: str, layers: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the init functions and the apply functions of layers.

    Raises:
        TypeError: an argument is not a layer.
    """
    for i, layer in enumerate(layers):
        if not isinstance(layer, tuple | list) or len(layer) != 2 or not all(map(callable, layer)):
            raise TypeError(
                f"{name}: layers are pairs (init_fun, apply_fun), one argument each, got {layer!r} of type "
                f"{type(layer).__name__} at position {i}"
            )
    return [init for init, _ in layers], [apply for _, apply in layers]


def serial(*layers: Layer) -> Layer:
    """Return a layer that applies layers in sequence; its parameters are a list of the layers' parameters."""
    inits, applies = _parts("serial", layers)

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        params = []
        for init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(applies))
        for apply, param, rng in zip(applies, params, rngs, strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Return a layer that applies each of several layers to its own input; its results are a list."""
    inits, applies = _parts("parallel", layers)

    def init_fun(rng: Any, input_shape: Any) -> tuple[Any, Any]:
        rngs = random.split(rng, len(inits))
        pairs = [init(key, shape) for init, key, shape in zip(inits, rngs, input_shape, strict=True)]
        return [shape for shape, _ in pairs], [param for _, param in pairs]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _keys(kwargs.pop("rng", None), len(applies))
        return [f(p, x, rng=r, **kwargs) for f, p, x, r in zip(applies, params, inputs, rngs, strict=True)]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return a layer that is built when the shape of its inputs is known.

    Args:
        make_layer: a function from the input shape to the layer.
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
