"""Applications of every primitive here, for whoever checks its rules (`corejax verify lax_basic`). Data only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray

F32, C64, I32, BOOL = (np.dtype(t) for t in (np.float32, np.complex64, np.int32, np.bool_))

_REASON = "its derivative is zero by definition, and not the function's"
_BOUNDS = {"points": "on its bounds its derivative is zero, as jax's"}
_NO_DERIVATIVE = dict.fromkeys(("jvp", "second_order", "pairs", "triples"), _REASON)


def _x(*shape: int, dtype: Any = F32) -> ShapedArray:
    return ShapedArray(shape, dtype)


def _unary(low: float = -2.0, high: float = 2.0, dtype: Any = F32, **more: Any) -> list[Example]:
    return [Example((_x(*shape, dtype=dtype),), low=low, high=high, **more) for shape in ((3,), (2, 3), ())]


def _binary(low: float = -2.0, high: float = 2.0, dtype: Any = F32, **more: Any) -> list[Example]:
    shapes = (((3,), (3,)), ((), (2, 3)), ((2, 3), ()))
    return [Example([_x(*s, dtype=dtype) for s in pair], low=low, high=high, **more) for pair in shapes]


def _reduction(dtype: Any = F32, reference: Any = None, **more: Any) -> list[Example]:
    over = (((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 2, 3), (0, 2)), ((2, 3), ()))
    numpy = reference and (lambda x, *, axes: reference(x, axis=axes))
    return [Example((_x(*s, dtype=dtype),), {"axes": axes}, reference=numpy, **more) for s, axes in over]


def _running(reference: Any) -> list[Example]:
    over = (((5,), 0, False), ((3, 4), 1, True), ((4, 2), 0, True), ((1, 3), 0, False))

    def numpy(x: Any, *, axis: int, reverse: bool) -> Any:
        return np.flip(reference(np.flip(x, axis), axis=axis), axis) if reverse else reference(x, axis=axis)

    return [Example((_x(*s),), {"axis": a, "reverse": r}, reference=numpy) for s, a, r in over]


def _index(reference: Any) -> list[Example]:
    over = (((4,), 0), ((2, 3), 1), ((3, 2), 0))
    return [
        Example((_x(*s),), {"axes": (a,), "index_dtype": I32}, reference=lambda x, *, axes, index_dtype: reference(
            x, axis=axes[0]).astype(index_dtype)) for s, a in over
    ]  # fmt: skip


def _one(operands: tuple[Any, ...], reference: Any = None, **params: Any) -> Example:
    return Example(operands, params, reference=reference)


_NAMED: dict[str, Callable[[], list[Example]]] = {
    **dict.fromkeys(("neg", "cos", "exp", "expm1", "tanh", "logistic", "is_finite"), _unary),
    "sin": lambda: _unary(reference=np.sin),
    "tan": lambda: _unary(-1.2, 1.2, reference=lambda x: np.sin(x) / np.cos(x)),
    "abs": lambda: _unary(0.2, 2.0) + _unary(-2.0, -0.2, reference=np.abs),
    "sign": lambda: _unary(0.2, 2.0) + _unary(-2.0, -0.2),
    "floor": lambda: _unary(1.1, 1.9) + _unary(-1.9, -1.1),
    "ceil": lambda: _unary(1.1, 1.9) + _unary(-1.9, -1.1),
    **{name: (lambda: _unary(0.2, 3.0)) for name in ("log", "log1p", "sqrt", "rsqrt")},
    **{name: (lambda: _unary(dtype=C64)) for name in ("real", "imag", "conj")},
    "integer_pow": lambda: [
        *(Example((_x(4),), {"y": n}, reference=lambda x, *, y: np.power(x, y)) for n in (0, 1, 2, 3, 5)),
        *(Example((_x(4),), {"y": n}, low=0.5) for n in (-1, -2)),
    ],
    "stop_gradient": lambda: _unary(skip=_NO_DERIVATIVE),
    "add": lambda: _binary(reference=np.add),
    "sub": lambda: _binary(reference=np.subtract),
    "mul": lambda: _binary(reference=np.multiply),
    "div": lambda: _binary(1.0, 3.0),
    "pow": lambda: _binary(0.3, 2.0),
    "rem": lambda: _binary((2.1, 1.1), (2.9, 1.9)),  # type: ignore[arg-type]
    **dict.fromkeys(("max", "min", "lt", "le", "gt", "ge", "eq", "ne", "complex"), _binary),
    **{name: (lambda: _binary(dtype=I32) + _binary(dtype=BOOL)) for name in ("and", "or", "xor")},
    "not": lambda: _unary(dtype=I32) + _unary(dtype=BOOL),
    "reduce_sum": lambda: _reduction(reference=np.sum),
    "cumsum": lambda: _running(reference=np.cumsum),
    "cumprod": lambda: _running(reference=np.cumprod),
    "cummax": lambda: _running(reference=np.maximum.accumulate),
    "cummin": lambda: _running(reference=np.minimum.accumulate),
    "cumlogsumexp": lambda: _running(reference=np.logaddexp.accumulate),
    "reduce_prod": lambda: _reduction(reference=np.prod),
    "reduce_max": lambda: _reduction(reference=np.max),
    "reduce_min": lambda: _reduction(reference=np.min),
    "reduce_and": lambda: _reduction(BOOL, np.bitwise_and.reduce) + _reduction(I32),
    "reduce_or": lambda: _reduction(BOOL, np.bitwise_or.reduce) + _reduction(I32),
    "argmax": lambda: _index(np.argmax),
    "argmin": lambda: _index(np.argmin),
    "select_n": lambda: [
        _one((_x(4, dtype=BOOL), _x(4), _x(4)), lambda w, a, b: np.where(w, b, a)),
        _one((_x(dtype=BOOL), _x(2, 3), _x(2, 3)), lambda w, a, b: np.where(w, b, a)),
        Example(
            (np.array([0, 1, 2, 1], I32), _x(4), _x(4), _x(4)),
            reference=lambda w, *cases: np.choose(w, cases),
            skip={"weak_types": "the operand that chooses does not count"},
        ),
    ],
    "clamp": lambda: [
        Example(s, low=(-1.0, -3.0, 0.5), high=(-0.5, 3.0, 1.0), reference=_clip, skip=_BOUNDS)
        for s in ((_x(), _x(5), _x()), (_x(5), _x(5), _x(5)))
    ],
    "convert_element_type": lambda: [
        Example((_x(4, dtype=source),), {"new_dtype": np.dtype(target), "weak_type": False}, low=0.1, high=2.9)
        for source in (F32, I32)
        for target in (np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex64)
    ],
    "broadcast_in_dim": lambda: [
        _one((_x(2, 3),), shape=(4, 2, 3), broadcast_dimensions=(1, 2)),
        _one((_x(3),), shape=(3, 2), broadcast_dimensions=(0,)),
        _one((_x(1, 3),), shape=(2, 3), broadcast_dimensions=(0, 1)),
        _one((_x(),), shape=(2, 0), broadcast_dimensions=()),
    ],
    "reshape": lambda: [_one((_x(2, 3),), lambda x, *, new_sizes: np.reshape(x, new_sizes), new_sizes=(3, 2))],
    "transpose": lambda: [
        _one((_x(2, 3),), lambda x, *, permutation: np.transpose(x, permutation), permutation=(1, 0)),
        _one((_x(2, 3, 4),), lambda x, *, permutation: np.transpose(x, permutation), permutation=(2, 0, 1)),
    ],
    "squeeze": lambda: [_one((_x(1, 3, 1),), dimensions=(0, 2)), _one((_x(2, 1),), dimensions=(1,))],
    "rev": lambda: [
        _one((_x(5),), lambda x, *, dimensions: np.flip(x, dimensions), dimensions=(0,)),
        _one((_x(2, 3),), lambda x, *, dimensions: np.flip(x, dimensions), dimensions=(0, 1)),
        _one((_x(2, 3),), dimensions=(1,)),
    ],
    "concatenate": lambda: [
        _one((_x(2, 3), _x(1, 3)), lambda *xs, dimension: np.concatenate(xs, dimension), dimension=0),
        _one((_x(2, 3), _x(2, 1), _x(2, 2)), lambda *xs, dimension: np.concatenate(xs, dimension), dimension=1),
    ],
    "slice": lambda: [
        _one((_x(2, 3),), start_indices=(0, 1), limit_indices=(2, 3), strides=None),
        _one((_x(5),), start_indices=(1,), limit_indices=(5,), strides=(2,)),
        _one((_x(6, 3),), start_indices=(1, 0), limit_indices=(6, 2), strides=(3, 1)),
    ],
    "pad": lambda: [
        _one((_x(3), _x()), padding_config=((1, 2, 0),)),
        _one((_x(4), _x()), padding_config=((-1, 1, 2),)),
        _one((_x(2, 3), _x()), padding_config=((0, 1, 1), (2, -1, 0))),
    ],
    "dynamic_slice": lambda: [
        *(_one((_x(5), np.asarray(start, I32)), slice_sizes=(2,)) for start in (0, 2, 9, -9)),
        _one((_x(3, 4), np.asarray(1, I32), np.asarray(2, I32)), slice_sizes=(2, 2)),
    ],
    "dynamic_update_slice": lambda: [
        *(_one((_x(5), _x(2), np.asarray(start, I32))) for start in (0, 2, 9, -9)),
        _one((_x(3, 4), _x(2, 2), np.asarray(1, I32), np.asarray(2, I32))),
    ],
    "iota": lambda: [
        _one((), dtype=np.dtype(dtype), shape=shape, dimension=len(shape) - 1)
        for dtype in (np.int32, np.float32, np.uint8)
        for shape in ((4,), (2, 3))
    ],
    "dot_general": lambda: [
        Example(
            (_x(*a, dtype=dtype), _x(*b, dtype=dtype)), {"dimension_numbers": numbers, "preferred_element_type": dtype}
        )
        for dtype in (F32, C64, I32)
        for numbers, a, b in (
            ((((1,), (0,)), ((), ())), (2, 3), (3, 4)),
            ((((0,), (0,)), ((), ())), (3,), (3,)),
            ((((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
            ((((), ()), ((), ())), (2,), (3,)),
        )
    ],
}


def _clip(low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def examples_of(primitive: str) -> list[Example]:
    """Applications of one primitive; none for a name that is not of this plugin."""
    return _NAMED[primitive]() if primitive in _NAMED else []
