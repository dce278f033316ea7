"""The flag `prepared` of impl rules: a ufunc or code that computes the rule for operand types known in advance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS

F = TypeVar("F", bound=Callable[..., Any])

Avals = Sequence[ShapedArray]  # the types of all operands


def is_ufunc(ufunc: np.ufunc, kinds: str = "f") -> Callable[[F], F]:
    """Mark an impl rule that is a ufunc for operands of some kinds of dtypes, whatever its params are.

    Narrow floats that NumPy does not have count as kind "f".
    """

    def prepare(avals: Avals, **params: Any) -> np.ufunc | None:
        dtype = avals[0].dtype
        return ufunc if dtype.kind in kinds or ("f" in kinds and dtype in NARROW_FLOATS) else None

    return prepared_by(prepare)


def prepared_by(prepare: Callable[..., Any]) -> Callable[[F], F]:
    """Mark an impl rule with a function from operand types to its ufunc or code for these types."""

    def mark(impl: F) -> F:
        impl.prepared = prepare  # type: ignore[attr-defined]  # functions accept any attribute
        return impl

    return mark


def reshaped(shape: tuple[int, ...]) -> HostCode:
    """Return code that gives the operand another shape."""
    return HostCode("{out} = {0}.reshape({shape})", shape=shape)


def part(x: ShapedArray, key: tuple[Any, ...]) -> HostCode | None:
    """Return code for NumPy's basic indexing of an operand."""
    return HostCode("{out} = {0}[{key}]", key=key) if x.ndim else None  # of rank 0 NumPy returns a scalar


def parts(keys: Sequence[Any]) -> HostCode:
    """Return code for several parts of an operand by basic indexing."""
    names = {f"key{i}": key for i, key in enumerate(keys)}
    return HostCode(f"{{out}} = [{', '.join(f'{{0}}[{{{name}}}]' for name in names)}]", **names)


def prepared_flag(impl: Callable[..., Any]) -> dict[str, Any]:
    """Return the flag `prepared` for the registration of an impl rule, if the rule is marked."""
    return {"prepared": impl.prepared} if hasattr(impl, "prepared") else {}
