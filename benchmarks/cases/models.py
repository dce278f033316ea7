"""Blocks of known networks: tracing and lowering them with their gradients; what is compiled of them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import corejax
import corejax.numpy as cnp
from cases.loops import both, fresh
from cases.registry import Sides, blocking, case

BATCH, LENGTH, WIDTH, HEADS = 2, 16, 32, 4


def _random(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) / 8 for s in shapes]


# -- a transformer block -------------------------------------------------------------------------------------------


def _normalised(n: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean = n.mean(x, axis=-1, keepdims=True)
    var = n.mean(n.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) / n.sqrt(var + 1e-5) * scale + shift


def attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    """Softmax attention: three arrays of shape (batch, heads, length, size), with a causal mask."""
    n = lib.numpy
    scores = n.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = n.tril(n.ones(scores.shape[-2:], dtype=bool))
    return n.einsum("bhqk,bhkd->bhqd", lib.nn.softmax(n.where(mask, scores, -1e9), axis=-1), v)


def transformer(lib: Any, factor: float, result: bool = False) -> Callable[[Any, Any], Any]:
    """The mean square of a transformer block's result, or that; pre-norm, attention and a perceptron with gelu."""
    n = lib.numpy

    def heads(x: Any) -> Any:
        return n.transpose(n.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def loss(p: Any, x: Any) -> Any:
        h = _normalised(n, x, p[0], p[1])
        out = attention(lib, *map(heads, n.split(h @ p[2], 3, axis=-1)))
        x = x + n.reshape(n.transpose(out, (0, 2, 1, 3)), x.shape) @ p[3]
        h = _normalised(n, x, p[4], p[5])
        x = x + lib.nn.gelu(h @ p[6] + p[7]) @ p[8] + p[9] * factor
        return x if result else n.mean(n.square(x))

    return loss


def transformer_operands() -> tuple[Any, Any]:
    """Parameters and input."""
    w = WIDTH
    shapes = [(w,), (w,), (w, 3 * w), (w, w), (w,), (w,), (w, 4 * w), (4 * w,), (4 * w, w), (w,)]
    *params, x = _random(*shapes, (BATCH, LENGTH, WIDTH))
    return params, x


# -- a residual block ----------------------------------------------------------------------------------------------


def _batch_norm(n: Any, x: Any, scale: Any, shift: Any) -> Any:
    return (x - n.mean(x, axis=(0, 1, 2))) / n.sqrt(n.var(x, axis=(0, 1, 2)) + 1e-5) * scale + shift


def resnet(lib: Any, factor: float) -> Callable[[Any, Any], Any]:
    """The mean square of a residual block's result: two convolutions with batch norms, and a strided one beside."""
    n = lib.numpy
    lax = importlib.import_module(f"{lib.__name__}.lax")

    def conv(x: Any, kernel: Any, stride: int) -> Any:
        return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(p: Any, x: Any) -> Any:
        h = lib.nn.relu(_batch_norm(n, conv(x, p[0], 2), p[1], p[2]))
        h = _batch_norm(n, conv(h, p[3], 1), p[4], p[5])
        return n.mean(n.square(lib.nn.relu(h + conv(x, p[6], 2) * factor)))

    return loss


def resnet_operands() -> tuple[Any, Any]:
    """Parameters and images."""
    a, b = 8, 16
    *params, x = _random((3, 3, a, b), (b,), (b,), (3, 3, b, b), (b,), (b,), (1, 1, a, b), (2, 16, 16, a))
    return params, x


# -- tracing and lowering ------------------------------------------------------------------------------------------


def _traced(network: Any, args: tuple[Any, Any]) -> Sides:
    return both(lambda lib: lambda: lib.make_jaxpr(lib.grad(network(lib, fresh())))(*args))


def _lowered(network: Any, args: tuple[Any, Any]) -> Sides:
    return both(lambda lib: lambda: lib.jit(lib.grad(network(lib, fresh()))).lower(*args))


for _name, _network, _operands in (
    ("a transformer block", transformer, transformer_operands()),
    ("a residual block", resnet, resnet_operands()),
):
    case(f"tracing grad of {_name}", 0.2)(lambda f=_network, v=_operands: _traced(f, v))  # type: ignore[misc]
    case(f"lowering grad of {_name}", 0.25)(lambda f=_network, v=_operands: _lowered(f, v))  # type: ignore[misc]


# -- compiled ------------------------------------------------------------------------------------------------------


def _compiled(f: Callable[..., Any], *args: Any) -> Sides:
    def side(lib: Any) -> Callable[[], Any]:
        g = lib.jit(lambda *xs: f(lib, *xs))
        operands = lib.device_put(args)
        return blocking(lib, lambda: g(*operands))

    return both(side)


@case("compiled convolution", 1.02)
def compiled_convolution() -> Sides:
    def f(lib: Any, x: Any, kernel: Any) -> Any:
        lax = importlib.import_module(f"{lib.__name__}.lax")
        return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    return _compiled(f, *_random((8, 32, 32, 32), (3, 3, 32, 32)))


@case("compiled attention", 1.02)
def compiled_attention() -> Sides:
    return _compiled(attention, *_random(*3 * [(2, 8, 128, 64)]))


@case("compiled gradient of a transformer block", 1.02)
def compiled_gradient() -> Sides:
    def f(lib: Any, p: Any, x: Any) -> Any:
        return lib.grad(transformer(lib, 1.0))(p, x)

    return _compiled(f, *transformer_operands())


@case("compiled gradient of four of them in a scan, batch 32", 1.02)
def compiled_scan() -> Sides:
    def f(lib: Any, p: Any, x: Any) -> Any:
        block = transformer(lib, 1.0, result=True)

        def loss(p: Any) -> Any:
            lax = importlib.import_module(f"{lib.__name__}.lax")
            layers = lib.vmap(lambda x: lax.scan(lambda x, layer: (block(layer, x), None), x, p)[0])
            return lib.numpy.mean(layers(x) ** 2)

        return lib.grad(loss)(p)

    params, x = transformer_operands()
    return _compiled(f, [np.stack([p] * 4) for p in params], np.stack([x] * (32 // BATCH)))


@case("compiled sort of 100,000", 1.02)
def compiled_sort() -> Sides:
    return _compiled(lambda lib, x: lib.numpy.sort(x), *_random((100_000,)))


@case("compiled scatter-add of 100,000", 1.02)
def compiled_scatter() -> Sides:
    at = np.random.default_rng(1).integers(0, 100_000, 100_000).astype(np.int32)
    return _compiled(lambda lib, x, i: x.at[i].add(x), *_random((100_000,)), at)


# -- eager gradients -----------------------------------------------------------------------------------------------


def _perceptron(numpy: Any) -> Callable[[Any, Any], Any]:
    def loss(p: Any, x: Any) -> Any:
        for i in range(0, 4, 2):
            x = numpy.tanh(numpy.dot(x, p[i]) + p[i + 1])
        return numpy.mean((numpy.dot(x, p[4]) + p[5]) ** 2)

    return loss


PERCEPTRON = ((16, 32), (32,), (32, 32), (32,), (32, 1), (1,))


@case("eager grad of an MLP", 0.15)
def eager_mlp() -> Sides:
    def side(lib: Any) -> Callable[[], Any]:
        *params, x = map(lib.numpy.asarray, _random(*PERCEPTRON, (8, 16)))
        f = lib.grad(_perceptron(lib.numpy))
        return lambda: f(params, x)

    return both(side)


def beside_autograd() -> Sides:
    """The same beside HIPS autograd, where that is installed."""
    import autograd
    import autograd.numpy

    *params, x = _random(*PERCEPTRON, (8, 16))
    ours, theirs = corejax.grad(_perceptron(cnp)), autograd.grad(_perceptron(autograd.numpy))
    *own, y = map(cnp.asarray, (*params, x))
    return lambda: ours(own, y), lambda: theirs(params, x)


if importlib.util.find_spec("autograd") is not None:
    case("eager grad of an MLP (HIPS autograd in place of jax)", 1.0)(beside_autograd)
