"""Value types: types of values that a plugin stores in several arrays, such as quantised arrays.

A value of such a type is one value everywhere: one operand, one variable of a program, one tracer. Only the primitives
`pack` and `unpack` of corejax-lax-basic convert between a value and the arrays that store it, and only backends, which
compile programs of arrays, expand variables into several.
"""

from __future__ import annotations

import copyreg
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

from corejax import tree
from corejax.core.avals import Shape, ShapedArray, _intern


class ValueType(ShapedArray):
    """A type of values that are stored in several arrays; the base class of a plugin's types.

    Values have the shape and dtype of the array that they stand for. Subclasses implement `parts`, and `part_axes` if
    parts store axes elsewhere; a batch of values is a value of the same class with one more axis. As other types,
    instances are immutable, and equal instances are identical.

    Args:
        shape: the shape of the array that a value stands for.
        dtype: its dtype.
        fields: further static data that distinguishes types, such as a unit of measure; hashable.

    Attributes:
        fields: the further static data, by name.
    """

    __slots__ = ("fields",)
    fields: Mapping[str, Any]

    def __new__(cls, shape: Shape, dtype: object, **fields: Any) -> Self:
        """Return the interned instance."""
        for name, value in fields.items():
            try:
                hash(value)
            except TypeError:
                raise TypeError(f"{cls.__name__}: field {name!r} must be hashable (not a list): {value!r}") from None
        new = _intern(cls, shape, dtype, False, None, tuple(sorted(fields.items())))
        if not hasattr(new, "fields"):
            object.__setattr__(new, "fields", MappingProxyType(dict(sorted(fields.items()))))
        return new  # type: ignore[return-value]  # of the class that was passed

    def parts(self) -> tuple[ShapedArray, ...]:
        """Return the types of the arrays that store a value; implemented by subclasses."""
        raise NotImplementedError(f"{type(self).__name__}.parts: return the types of the arrays that store a value")

    @staticmethod
    def named(name: str) -> type[ValueType] | None:
        """Return the value type with this name, the latest one that was defined, or None."""
        classes = [ValueType]
        for cls in classes:
            classes += cls.__subclasses__()
        return next((cls for cls in classes[:0:-1] if cls.__name__ == name), None)

    def tangent_type(self) -> ShapedArray:
        """Return the type of tangents and cotangents; by default the type itself.

        A type that is its own tangent type stores numbers of which all parts are linear functions. Values of other
        types have tangents of another type, mostly `ShapedArray(self.shape, self.dtype)`.
        """
        return self

    def update(
        self, shape: Shape | None = None, dtype: object = None, weak_type: bool | None = None, sharding: object = None
    ) -> Self:
        """Return the type of the same class and fields with another shape or dtype."""
        return type(self)(self.shape if shape is None else shape, self.dtype if dtype is None else dtype, **self.fields)

    def refined(self, refinement: object) -> Self:
        """Return the type itself: values of several arrays have no refinement."""
        return self

    def str_short(self, *, short_dtypes: bool = True) -> str:
        """Return the type as text: `Quantised[f32[3,4]]`, with the fields behind the array's type."""
        array = ShapedArray(self.shape, self.dtype).str_short(short_dtypes=short_dtypes)
        return f"{type(self).__name__}[{', '.join([array, *(f'{k}={v!r}' for k, v in self.fields.items())])}]"

    def __repr__(self) -> str:
        return self.str_short(short_dtypes=False)

    def __reduce__(self) -> tuple[Any, ...]:
        new: Any = copyreg.__newobj_ex__  # type: ignore[attr-defined]  # not in typeshed
        return (new, (type(self), (self.shape, self.dtype), dict(self.fields)))


@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Packed:
    """A concrete value of a value type: what `pack` returns outside of transformations.

    Attributes:
        aval: its type.
        parts: the arrays that store it.
    """

    aval: ValueType
    parts: tuple[Any, ...]

    shape = property(lambda self: self.aval.shape, doc="The shape of the array that the value stands for.")
    ndim = property(lambda self: self.aval.ndim, doc="The number of axes of that array.")
    dtype = property(lambda self: self.aval.dtype, doc="The dtype of that array.")
    _host = property(lambda self: self, doc="The value itself, for rules on the host: they receive it whole.")

    def _fetch(self) -> Self:
        return self

    def setflags(self, write: bool) -> None:
        """Do nothing, in the place of `ndarray.setflags`: the value is immutable."""

    def copy(self) -> Self:
        """Return the same value in newly allocated memory."""
        return type(self)(self.aval, tuple(part.copy() for part in self.parts))

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise TypeError(f"a value of type {self.aval!r} is not an array: use an operation of this type, "
                        "or the arrays that store it (corejax.lax.unpack)")  # fmt: skip

    __bool__ = __array__


tree.mark_leaf_types(Packed)
