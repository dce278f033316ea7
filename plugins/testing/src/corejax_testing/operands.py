"""Draw operands that satisfy an example: in its ranges, prepared, and consistent with each other.

Every function that makes or changes operands uses this module, so that no check uses operands that the author excludes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from corejax.extend import Example, Primitive, ShapedArray, Tracer
from corejax_testing.arrays import Array, draw, is_inexact
from corejax_testing.contributions import examples_of

TRIES = 200  # the maximal number of draws until operands satisfy `requires`


class UnfitOperands(Exception):
    """No operands satisfy an example; the message says why."""


def drawn(example: Example, rng: np.random.Generator, kept: Mapping[int, Array] | None = None) -> tuple[Array, ...]:
    """Return operands for an example.

    Args:
        example: the example to satisfy.
        rng: the source of random numbers.
        kept: position -> operand to use unchanged.

    Raises:
        UnfitOperands: none of `TRIES` draws satisfies the example.
        Exception: any error of the author's functions.
    """
    kept = kept or {}
    for _ in range(TRIES if example.requires is not None else 1):
        values = [
            kept[i]
            if i in kept
            else draw(rng, x, *example.range_of(i))
            if isinstance(x, ShapedArray)
            else np.asarray(x)
            for i, x in enumerate(example.operands)
        ]
        values = [kept.get(i, x) for i, x in enumerate(prepared(example, values))]
        if fit(example, values):
            return tuple(values)
    raise UnfitOperands(f"none of {TRIES} draws of operands satisfies what the example requires")


def prepared(example: Example, values: Sequence[Array]) -> list[Array]:
    """Apply the author's `prepare` to operands; the dtypes stay the same.

    Raises:
        UnfitOperands: `prepare` returns another number of operands, or other shapes.
    """
    if example.prepare is None:
        return list(values)
    found = example.prepare(*(x.copy() for x in values), **example.params)
    if not isinstance(found, list | tuple):
        raise UnfitOperands(f"the example's `prepare` returns {type(found).__name__}, but a tuple of operands is right")
    made = [np.asarray(x) for x in found]
    if [x.shape for x in made] != [x.shape for x in values]:
        shapes = (", ".join(str(x.shape) for x in xs) for xs in (made, values))
        raise UnfitOperands("the example's `prepare` returns operands of shapes {}, but {} is right".format(*shapes))
    return [x.astype(given.dtype) for x, given in zip(made, values, strict=True)]


def fit(example: Example, values: Sequence[Array]) -> bool:
    """Return whether operands satisfy an example; its ranges do not count.

    Raises:
        Exception: any error of the author's `requires`.
    """
    if example.requires is not None:
        return bool(example.requires(*values, **example.params))
    if example.prepare is not None:
        return True
    return all(np.array_equal(x, given) for x, given in zip(values, example.operands, strict=True) if _fixed(given))


def admits(example: Example, values: Sequence[Any]) -> bool:
    """Return whether an example admits operands that a check has made; operands with tracers pass.

    The author's `requires` need not support other shapes: if it raises an error, the operands are not admitted.
    """
    if not is_constrained(example) or any(isinstance(x, Tracer) for x in values):
        return True
    try:
        return fit(example, [np.asarray(x) for x in values])
    except Exception:
        return False


def is_constrained(example: Example) -> bool:
    """Return whether an example restricts its operands beyond their types and ranges."""
    return example.requires is not None or (example.prepare is None and any(map(_fixed, example.operands)))


def _fixed(operand: Any) -> bool:
    return not isinstance(operand, ShapedArray) and np.ndim(operand) > 0 and not is_inexact(np.asarray(operand).dtype)


# -- applications in programs ----------------------------------------------------------------------------------------

_constraints: WeakKeyDictionary[Primitive, tuple[Example, ...]] = WeakKeyDictionary()


def constraints(primitive: Primitive) -> tuple[Example, ...]:
    """Return the examples of a primitive if one of them is constrained, else nothing; the answer is cached."""
    if primitive not in _constraints:
        remember(primitive, examples_of(primitive.name))
    return _constraints[primitive]


def remember(primitive: Primitive, examples: Sequence[Example]) -> None:
    """Set the examples that applications of a primitive in programs have to satisfy."""
    _constraints[primitive] = tuple(examples) if any(map(is_constrained, examples)) else ()


def are_meant(primitive: Primitive, values: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Return whether some example admits the operands of an application in a program.

    An application that resembles no example (other parameters or ranks, as a vmap rule may bind) is admitted.
    """
    alike = [e for e in constraints(primitive) if _is_like(primitive, e, values, params)]
    return not alike or any(admits(example, values) for example in alike)


def _is_like(primitive: Primitive, example: Example, values: Sequence[Any], params: Mapping[str, Any]) -> bool:
    if len(values) != len(example.operands) or dict(example.params) != dict(params):
        return False
    pairs = list(zip(values, example.operands, strict=True))
    if any(_dtype_kind(x) != _dtype_kind(given) for x, given in pairs):
        return False
    return "elementwise" in primitive.tags or all(np.ndim(x) == np.ndim(given) for x, given in pairs)


def _dtype_kind(operand: Any) -> str:
    """Return "f", "i" or "b" for inexact numbers, integers and booleans."""
    dtype = np.dtype(getattr(operand, "dtype", None) or np.asarray(operand).dtype)
    return "f" if is_inexact(dtype) else "b" if dtype == np.bool_ else "i"
