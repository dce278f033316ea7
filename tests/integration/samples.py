"""For every array primitive, calls of it on sample operands: what the cross-checks of all primitives run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

F, D, H, B = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
FLOATS = (F, D, H, B)
COMPLEX = (np.complex64, np.complex128)
INTS = (np.int8, np.int32, np.int64, np.uint8, np.uint32)
Sample = tuple[Callable[..., Any], tuple[Any, ...]]


def array(dtype: Any, *shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray[Any, Any]:
    """Numbers of a dtype: uniform floats, small integers, coin flips."""
    rng = np.random.default_rng(seed + sum(shape))
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return values.astype(dtype)


def _unary(name: str, dtypes: Any, low: float = -2.0, high: float = 2.0) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        for dtype in dtypes:
            for shape in ((), (3,), (2, 3), (0, 2)):
                yield getattr(lax, name), (array(dtype, *shape, low=low, high=high),)

    return make


def _binary(name: str, dtypes: Any, low: float = -2.0, high: float = 2.0) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        for dtype in dtypes:
            for shapes in (((3,), (3,)), ((), (2, 3)), ((2, 3), ()), ((0,), (0,))):
                x, y = (array(dtype, *s, low=low, high=high, seed=i) for i, s in enumerate(shapes))
                yield getattr(lax, name), (x, y)

    return make


def _reduction(name: str, dtypes: Any) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        for dtype in dtypes:
            for shape, axes in (((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 0), (1,)), ((2, 3), ())):
                p = getattr(lax, name)
                yield (lambda x, p=p, axes=axes: p(x, axes=axes)), (array(dtype, *shape),)

    return make


def _running(name: str, dtypes: Any) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        p = getattr(lax, name)
        for dtype in dtypes:
            for shape, axis, reverse in (((4,), 0, False), ((2, 3), 1, True), ((3, 1), 0, True), ((2, 0), 1, False)):
                yield (lambda x, axis=axis, reverse=reverse: p(x, axis, reverse)), (array(dtype, *shape),)

    return make


def _arg_reduction(name: str) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        p = getattr(lax, name)
        for dtype in (*FLOATS, *INTS):
            for shape, axis in (((4,), 0), ((2, 3), 1), ((3, 2), 0)):
                yield (lambda x, axis=axis: p(x, axis, np.int32)), (array(dtype, *shape),)

    return make


def _select(lax: Any) -> Iterator[Sample]:
    for dtype in (*FLOATS, *COMPLEX, np.int32, np.bool_):
        yield lax.select_n, (array(np.bool_, 4), array(dtype, 4), array(dtype, 4, seed=1))
        yield lax.select_n, (np.bool_(True), array(dtype, 4), array(dtype, 4, seed=1))
    yield lax.select_n, (np.array([0, 1, 2, 1], np.int32), *(array(F, 4, seed=i) for i in range(3)))


def _clamp(lax: Any) -> Iterator[Sample]:
    for dtype in (*FLOATS, np.int32):
        yield lax.clamp, (np.asarray(-1, dtype), array(dtype, 5), np.asarray(1, dtype))
        yield (
            lax.clamp,
            (array(dtype, 5) - np.asarray(1, dtype), array(dtype, 5, seed=1), array(dtype, 5) + np.asarray(1, dtype)),
        )


def _convert(lax: Any) -> Iterator[Sample]:
    for source in (*FLOATS, np.int8, np.int64, np.uint8, np.bool_):
        for target in (*FLOATS, np.int32, np.int64, np.bool_, np.complex64):
            yield (lambda x, t=target: lax.convert_element_type(x, np.dtype(t))), (array(source, 5, low=0.0, high=3.0),)


def _shapes(lax: Any, dtype: Any) -> dict[str, list[Sample]]:
    x, y = array(dtype, 2, 3), array(dtype, 2, 3, seed=1)
    v = array(dtype, 5)
    i32 = np.int32
    return {
        "broadcast_in_dim": [
            (lambda a: lax.broadcast_in_dim(a, (4, 2, 3), (1, 2)), (x,)),
            (lambda a: lax.broadcast_in_dim(a, (2, 0), ()), (array(dtype),)),
        ],
        "reshape": [
            (lambda a: lax.reshape(a, (3, 2)), (x,)),
            (lambda a: lax.reshape(a, (0, 7)), (array(dtype, 2, 0),)),
        ],
        "transpose": [
            (lambda a: lax.transpose(a, (1, 0)), (x,)),
            (lambda a: lax.transpose(a, (2, 0, 1)), (array(dtype, 2, 3, 4),)),
        ],
        "squeeze": [(lambda a: lax.squeeze(a, (0, 2)), (array(dtype, 1, 3, 1),))],
        "concatenate": [
            (lambda a, b: lax.concatenate([a, b], 0), (x, y)),
            (lambda a, b: lax.concatenate([a, b, a], 1), (x, y)),
        ],
        "slice": [(lambda a: lax.slice(a, (0, 1), (2, 3)), (x,)), (lambda a: lax.slice(a, (1,), (5,), (2,)), (v,))],
        "pad": [
            (lambda a: lax.pad(a, np.zeros((), dtype), ((1, 2, 0),)), (v,)),
            (lambda a: lax.pad(a, np.ones((), dtype), ((-1, 1, 2),)), (v,)),
        ],
        "rev": [(lambda a: lax.rev(a, (0,)), (v,)), (lambda a: lax.rev(a, (0, 1)), (x,))],
        "dynamic_slice": [(lambda a, i: lax.dynamic_slice(a, (i,), (2,)), (v, i32(s))) for s in (0, 2, 9, -9)],
        "dynamic_update_slice": [
            (lambda a, u, i: lax.dynamic_update_slice(a, u, (i,)), (v, array(dtype, 2, seed=3), i32(s)))
            for s in (0, 2, 9)
        ],
    }


def _shape(name: str) -> Callable[[Any], Iterator[Sample]]:
    def make(lax: Any) -> Iterator[Sample]:
        for dtype in (F, D, B, np.int32, np.uint8, np.bool_, np.complex64):
            yield from _shapes(lax, dtype)[name]

    return make


def _iota(lax: Any) -> Iterator[Sample]:
    for dtype in (*FLOATS, *INTS):
        yield (lambda d=dtype: lax.iota(np.dtype(d), 4)), ()
        yield (lambda d=dtype: lax.broadcasted_iota(np.dtype(d), (2, 3), 1)), ()


def _dot_general(lax: Any) -> Iterator[Sample]:
    numbers = {
        "matmul": ((((1,), (0,)), ((), ())), (2, 3), (3, 4)),
        "vectors": ((((0,), (0,)), ((), ())), (3,), (3,)),
        "batched": ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
        "outer": ((((), ()), ((), ())), (2,), (3,)),
        "empty": ((((1,), (0,)), ((), ())), (2, 0), (0, 4)),
    }
    for dtype in (F, D, np.complex64, np.int32):
        for dims, a, b in numbers.values():
            yield (lambda x, y, d=dims: lax.dot_general(x, y, d)), (array(dtype, *a), array(dtype, *b, seed=1))


def _integer_pow(lax: Any) -> Iterator[Sample]:
    for dtype in (F, D, np.int32, np.complex64):
        for power in (0, 1, 2, 3, 5):
            yield (lambda x, n=power: lax.integer_pow(x, n)), (array(dtype, 4),)
    for power in (-1, -2):
        yield (lambda x, n=power: lax.integer_pow(x, n)), (array(F, 4, low=0.5),)


SHAPES = (
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "concatenate", "slice", "pad", "rev"),
    *("dynamic_slice", "dynamic_update_slice"),
)
NUMBERS = (*FLOATS, *COMPLEX, *INTS)
INEXACT = (*FLOATS, *COMPLEX)
TABLE: dict[str, Callable[[Any], Iterator[Sample]]] = {
    "neg": _unary("neg", NUMBERS),
    "abs": _unary("abs", NUMBERS),
    "sign": _unary("sign", NUMBERS),
    **{name: _unary(name, INEXACT) for name in ("sin", "cos", "tan", "tanh", "exp", "expm1", "logistic")},
    **{name: _unary(name, INEXACT, 0.1, 3.0) for name in ("log", "log1p", "sqrt", "rsqrt")},
    "integer_pow": _integer_pow,
    "stop_gradient": _unary("stop_gradient", NUMBERS),
    **{name: _binary(name, NUMBERS) for name in ("add", "sub", "mul")},
    "div": _binary("div", NUMBERS, 0.5, 2.0),
    "pow": _binary("pow", INEXACT, 0.2, 2.0),
    **{name: _binary(name, (*FLOATS, *INTS)) for name in ("max", "min", "lt", "le", "gt", "ge")},
    "rem": _binary("rem", (*FLOATS, *INTS), 0.5, 2.0),
    **{name: _binary(name, (*NUMBERS, np.bool_)) for name in ("eq", "ne")},
    **{f"{name}": _binary(f"bitwise_{name}", (*INTS, np.bool_)) for name in ("and", "or", "xor")},
    "not": _unary("bitwise_not", (*INTS, np.bool_)),
    "select_n": _select,
    "clamp": _clamp,
    "convert_element_type": _convert,
    **{name: _shape(name) for name in SHAPES},
    "iota": _iota,
    "reduce_sum": _reduction("reduce_sum", NUMBERS),
    "reduce_prod": _reduction("reduce_prod", NUMBERS),
    "reduce_max": _reduction("reduce_max", (*FLOATS, *INTS)),
    "reduce_min": _reduction("reduce_min", (*FLOATS, *INTS)),
    "reduce_and": _reduction("reduce_and", (np.bool_, np.int32)),
    "reduce_or": _reduction("reduce_or", (np.bool_, np.int32)),
    "cumsum": _running("cumsum", NUMBERS),
    "cumprod": _running("cumprod", NUMBERS),
    "cummax": _running("cummax", (*FLOATS, *INTS)),
    "cummin": _running("cummin", (*FLOATS, *INTS)),
    "cumlogsumexp": _running("cumlogsumexp", FLOATS),
    "argmax": _arg_reduction("argmax"),
    "argmin": _arg_reduction("argmin"),
    "dot_general": _dot_general,
}
