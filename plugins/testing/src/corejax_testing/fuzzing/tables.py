"""The applications that programs are built from: the examples of plugins, also in other dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.extend import Example, Primitive, ShapedArray, dtypes
from corejax_testing.arrays import is_inexact
from corejax_testing.calls import Call
from corejax_testing.contributions import examples_of
from corejax_testing.operands import remember
from corejax_testing.variations import takes, with_dtype

SHAPES = ((), (1,), (3,), (4,), (2, 3), (1, 2), (2, 2), (0,), (2, 1, 3))


class Table:
    """Primitives with their examples.

    Args:
        primitives: the primitives to use. Those without examples, with effects, or on values that are not arrays are
            left out. So are examples that have `prepare` but no `requires`.
        given: primitive -> examples, in place of those that plugins provide.
    """

    def __init__(self, primitives: Sequence[Primitive], given: Mapping[str, Sequence[Example]] | None = None) -> None:
        self.examples: dict[Primitive, list[Example]] = {}
        for primitive in primitives:
            found = (given or {}).get(primitive.name) or examples_of(primitive.name)
            remember(primitive, found)
            found = [e for e in found if _takes_arrays(primitive, e) and (e.prepare is None or e.requires is not None)]
            if found and not primitive.effects:
                self.examples[primitive] = list(found)
        self.primitives = list(self.examples)
        self.without = sorted(p.name for p in primitives if p not in self.examples)
        self._variants: dict[tuple[Primitive, int, Any], Example] = {}

    def kinky(self) -> frozenset[str]:
        """Return the primitives that have a derivative other than the function's, by definition."""
        return frozenset(p.name for p, examples in self.examples.items() if any("jvp" in e.skip for e in examples))

    def draw(self, primitive: Primitive, dtype: np.dtype[Any], rng: np.random.Generator) -> Example:
        """Draw an example of a primitive, in the wanted dtype if the primitive accepts it."""
        number = int(rng.integers(len(self.examples[primitive])))
        key = (primitive, number, dtype)
        if key not in self._variants:
            example = self.examples[primitive][number]
            other = with_dtype(example, dtype) if _may_vary(example, dtype) else example
            self._variants[key] = other if takes(primitive, other) else example
        return self._variants[key]


def _takes_arrays(primitive: Primitive, example: Example) -> bool:
    """Return whether an example has arrays of numbers as operands, repeatable values, and exact rules.

    A transpose that is inexact by definition cannot be distinguished from a wrong one in a program.
    """
    if {"values", "vmap", "transpose"} & set(example.skip) or example.within is not None:
        return False
    try:
        call = Call.of(primitive, example, np.random.default_rng(0))
        results = call.avals_out
    except Exception:
        return False
    return all(x.dtype.kind in "biufcV" for x in call.values) and not any(
        map(dtypes.is_extended, [*(x.dtype for x in call.values), *(a.dtype for a in results)])
    )


def _may_vary(example: Example, dtype: np.dtype[Any]) -> bool:
    """Return whether an example's dtype may vary: not if the author gave numbers, nor for integers and booleans."""
    floats = [x for x in example.operands if is_inexact(x.dtype)]
    if not floats or not all(isinstance(x, ShapedArray) for x in floats):
        return False
    return (np.dtype(floats[0].dtype).kind == "c") == (dtype.kind == "c") or dtype.kind == "c"


def in_range(x: np.ndarray[Any, Any], low: float, high: float) -> bool:
    """Return whether numbers are in an example's range; the default range stands for all moderate numbers."""
    if x.dtype == np.bool_ or not x.size:
        return True
    if (low, high) == (-2.0, 2.0):
        low, high = -8.0, 8.0
    if x.dtype.kind == "c":
        return in_range(x.real, low, high) and in_range(x.imag, low, high)
    wide = x.astype(np.float64)
    return bool(np.all((wide >= low) & (wide <= high)))
