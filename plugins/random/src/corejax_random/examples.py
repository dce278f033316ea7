"""Example applications of the primitives, for checks of their rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import Example, ShapedArray
from corejax.extend.types import from_numbers
from corejax_random.generators.bit_generator import RandomAlgorithm
from corejax_random.generators.lookup import by_name
from corejax_random.generators.table import dtype_of
from corejax_random.generators.threefry import THREEFRY

_WORDS = np.array([[0, 7], [1, 2**32 - 1], [123456789, 987654321]], np.uint32)
_STATEFUL_CHECKS = "pure vmap nested_vmap partial_eval splits xla stablehlo pairs triples"
_FIRST_KEY = "the first key of an array generates the bits for all, as in JAX"
_IMPLICIT = "the derivative uses implicit reparametrisation and does not differentiate the steps of the draw"
_OTHER = "another dtype draws other numbers"
_STATEFUL = "each call draws other numbers, by design"


def _keys(count: int | None = None, name: str = "threefry2x32") -> Any:
    """Return a key, or an array of `count` keys."""
    impl = by_name(name, "examples")
    words = np.tile(_WORDS, impl.key_shape[0] // 2)[: count or 1]
    keys = from_numbers(np.ascontiguousarray(words), dtype_of(impl))
    return keys if count else keys[0].reshape(())


_PHYSICAL = {"stablehlo": "the program's results are words, not keys"}


def _seed() -> list[Example]:
    params = {"impl": THREEFRY.name}
    return [
        Example([np.int32(5)], params, skip=_PHYSICAL),
        Example([np.array([1, -2], np.int64)], {"impl": "rbg"}, skip=_PHYSICAL),
    ]


def _wrap() -> list[Example]:
    return [
        Example([_WORDS], {"impl": THREEFRY.name}, skip=_PHYSICAL),
        Example([_WORDS[0]], {"impl": THREEFRY.name}, skip=_PHYSICAL),
    ]


def _split() -> list[Example]:
    return [
        Example([_keys(3)], {"shape": (2,)}, skip=_PHYSICAL),
        Example([_keys()], {"shape": (2, 0)}, skip=_PHYSICAL),
        Example([_keys(name="rbg")], {"shape": (2,)}, skip=_PHYSICAL),
    ]


def _bits() -> list[Example]:
    return [Example([_keys(2)], {"bit_width": width, "shape": (3,)}) for width in (8, 16, 32, 64)]


def _fold_in() -> list[Example]:
    return [
        Example([_keys(3), np.arange(3, dtype=np.uint32)], skip=_PHYSICAL),
        Example([_keys(3), np.uint32(5)], skip=_PHYSICAL),
    ]


def _between() -> list[Example]:
    unit = ShapedArray((3,), np.dtype(np.float32))
    bounds = [ShapedArray(shape, np.dtype(np.float32)) for shape in ((), (3,))]
    ranges = (0.1, -2.0, 1.0), (0.9, -1.0, 2.0)
    return [Example([unit, bound, bound], {}, *ranges) for bound in bounds]


def _gamma() -> list[Example]:
    numbers = ShapedArray((2,), np.dtype(np.float32))
    skip = dict.fromkeys(("jvp", "points", "second_order"), _IMPLICIT) | dict.fromkeys(("derivative_dtypes",), _OTHER)
    each = (False, True)
    return [Example([_keys(), numbers], {"log_space": log_space}, 0.5, 3.0, skip=skip) for log_space in each]


def _threefry() -> list[Example]:
    k1, k2 = _WORDS[:, 0], _WORDS[:, 1]
    return [
        Example([k1, k2, np.uint32(5), np.arange(3, dtype=np.uint32)]),
        Example([k1[:1], k2[:1], np.zeros((1,), np.uint32), np.arange(4, dtype=np.uint32)]),
    ]


def _bit_generator() -> list[Example]:
    params = {"shape": (3,), "algorithm": RandomAlgorithm.RNG_DEFAULT}
    state = np.array([1, 2, 3, 4], np.uint32)
    skip = dict.fromkeys(("vmap", "nested_vmap", "pairs", "triples", "sharded"), _FIRST_KEY)
    return [Example([state], {**params, "dtype": np.dtype(dtype)}, skip=skip) for dtype in (np.uint32, np.uint64)]


def _uniform() -> list[Example]:
    skip = dict.fromkeys(_STATEFUL_CHECKS.split(), _STATEFUL)
    return [Example([np.float32(0), np.float32(1)], {"shape": (3,)}, skip=skip)]


_EXAMPLES: dict[str, Any] = {
    "random_seed": _seed,
    "random_wrap": _wrap,
    "random_unwrap": lambda: [Example([_keys(3)]), Example([_keys()])],
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_bits": _bits,
    "random_clone": lambda: [Example([_keys(3)], skip=_PHYSICAL)],
    "random_between": _between,
    "random_gamma": _gamma,
    "threefry2x32": _threefry,
    "rng_bit_generator": _bit_generator,
    "rng_uniform": _uniform,
}


def examples_of(primitive: str) -> list[Example]:
    """Return the examples of one primitive, or an empty list if the plugin does not define it."""
    make = _EXAMPLES.get(primitive)
    return make() if make else []
