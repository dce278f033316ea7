"""What impl rules are for types that are known beforehand: the flag `prepared` of those that are a ufunc then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax.extend import ShapedArray
from corejax.extend.speed import HostCode
from corejax_lax_basic._base.narrow_floats import NARROW_FLOATS

F = TypeVar("F", bound=Callable[..., Any])


def is_ufunc(ufunc: np.ufunc, kinds: str = "f") -> Callable[[F], F]:
    """Mark an impl rule that is a ufunc for operands of some kinds of dtypes, whatever its params are.

    Narrow floats that NumPy does not have are of kind "f", too.
    """

    def prepare(avals: Any, **params: Any) -> np.ufunc | None:
        dtype = avals[0].dtype
        return ufunc if dtype.kind in kinds or ("f" in kinds and dtype in NARROW_FLOATS) else None

    return prepared_by(prepare)


def prepared_by(prepare: Callable[..., Any]) -> Callable[[F], F]:
    """Mark an impl rule with what says what it is for types that are known."""

    def mark(impl: F) -> F:
        impl.prepared = prepare  # type: ignore[attr-defined]
        return impl

    return mark


def reshaped(shape: tuple[int, ...]) -> HostCode:
    """The operand in another shape."""
    return HostCode("{out} = {0}.reshape({shape})", shape=shape)


def part(x: ShapedArray, key: tuple[Any, ...]) -> HostCode | None:
    """What of an operand NumPy's basic indexing gives."""
    return HostCode("{out} = {0}[{key}]", key=key) if x.ndim else None  # of rank 0 it gives a scalar


def parts(keys: Sequence[Any]) -> HostCode:
    """Several parts of an operand."""
    names = {f"key{i}": key for i, key in enumerate(keys)}
    return HostCode(f"{{out}} = [{', '.join(f'{{0}}[{{{name}}}]' for name in names)}]", **names)


def prepared_flag(impl: Callable[..., Any]) -> dict[str, Any]:
    """The flag that an impl rule is registered with, if it is marked."""
    return {"prepared": impl.prepared} if hasattr(impl, "prepared") else {}  # type: ignore[attr-defined]
