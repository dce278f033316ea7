"""Operands such as an example's author means them: of its ranges, prepared, and fit for each other.

Everything that makes or changes operands comes here, so that no check sees what the author excludes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from corejax.extend import Example, Primitive, ShapedArray, Tracer
from corejax_testing.arrays import Array, draw, is_inexact
from corejax_testing.contributions import examples_of

TRIES = 200  # draws, until some operands fit


class UnfitOperands(Exception):
    """There are no operands as the example's author wants them; the message says why."""


def drawn(example: Example, rng: np.random.Generator, kept: Mapping[int, Array] | None = None) -> tuple[Array, ...]:
    """Operands of an example.

    Args:
        example: what they have to be like.
        rng: where numbers come from.
        kept: position -> operands that stay as they are.

    Raises:
        UnfitOperands: what was drawn does not satisfy the example, `TRIES` times.
        Exception: what the author's functions raise.
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
    """What the author's function makes of operands, in the same dtypes.

    Raises:
        UnfitOperands: it gives another number of operands, or other shapes.
    """
    if example.prepare is None:
        return list(values)
    found = example.prepare(*(x.copy() for x in values), **example.params)
    if not isinstance(found, list | tuple):
        raise UnfitOperands(f"the example's `prepare` gives {type(found).__name__}, but a tuple of operands is right")
    made = [np.asarray(x) for x in found]
    if [x.shape for x in made] != [x.shape for x in values]:
        shapes = (", ".join(str(x.shape) for x in xs) for xs in (made, values))
        raise UnfitOperands("the example's `prepare` gives operands of shapes {}, but {} is right".format(*shapes))
    return [x.astype(given.dtype) for x, given in zip(made, values, strict=True)]


def fit(example: Example, values: Sequence[Array]) -> bool:
    """Whether these numbers are operands as the author means them; ranges do not count.

    Raises:
        Exception: what the author's function raises.
    """
    if example.requires is not None:
        return bool(example.requires(*values, **example.params))
    if example.prepare is not None:
        return True
    return all(np.array_equal(x, given) for x, given in zip(values, example.operands, strict=True) if _fixed(given))


def admits(example: Example, values: Sequence[Any]) -> bool:
    """The same for operands that a check has made: unknown are those with tracers among them, which pass.

    The author's function need not know other shapes; where it raises, they are not what is meant.
    """
    if not is_constrained(example) or any(isinstance(x, Tracer) for x in values):
        return True
    try:
        return fit(example, [np.asarray(x) for x in values])
    except Exception:
        return False


def is_constrained(example: Example) -> bool:
    """Whether not any numbers of the example's types will do."""
    return example.requires is not None or (example.prepare is None and any(map(_fixed, example.operands)))


def _fixed(operand: Any) -> bool:
    return not isinstance(operand, ShapedArray) and np.ndim(operand) > 0 and not is_inexact(np.asarray(operand).dtype)


# -- applications in programs ----------------------------------------------------------------------------------------

_constraints: WeakKeyDictionary[Primitive, tuple[Example, ...]] = WeakKeyDictionary()


def constraints(primitive: Primitive) -> tuple[Example, ...]:
    """The examples of a primitive, if one of them says which operands go together; remembered."""
    if primitive not in _constraints:
        remember(primitive, examples_of(primitive.name))
    return _constraints[primitive]


def remember(primitive: Primitive, examples: Sequence[Example]) -> None:
    """Have programs with this primitive keep to these examples."""
    _constraints[primitive] = tuple(examples) if any(map(is_constrained, examples)) else ()


def are_meant(primitive: Primitive, values: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether some example admits the operands of an application in a program.

    Applications like none of the examples, of other parameters or ranks, are: a batching rule's, say.
    """
    alike = [e for e in constraints(primitive) if _is_like(primitive, e, values, params)]
    return not alike or any(admits(example, values) for example in alike)


def _is_like(primitive: Primitive, example: Example, values: Sequence[Any], params: Mapping[str, Any]) -> bool:
    if len(values) != len(example.operands) or dict(example.params) != dict(params):
        return False
    pairs = list(zip(values, example.operands, strict=True))
    if any(_sort(x) != _sort(given) for x, given in pairs):
        return False
    return "elementwise" in primitive.tags or all(np.ndim(x) == np.ndim(given) for x, given in pairs)


def _sort(operand: Any) -> str:
    """Floating-point numbers, integers or booleans."""
    dtype = np.dtype(getattr(operand, "dtype", None) or np.asarray(operand).dtype)
    return "f" if is_inexact(dtype) else "b" if dtype == np.bool_ else "i"
