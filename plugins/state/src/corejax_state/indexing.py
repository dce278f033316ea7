"""Reading and writing parts of a reference's value, and views."""

from __future__ import annotations

from typing import Any

import corejax.numpy as jnp
from corejax.extend import Tracer, get_aval
from corejax_lax_basic import lax

_WHOLE = slice(None)


def is_whole(index: Any) -> bool:
    """Whether an index denotes the whole array: `...`, `:` or an empty tuple."""
    if index is ...:
        return True
    if isinstance(index, tuple):
        return all(part is ... or (isinstance(part, slice) and part == _WHOLE) for part in index)
    return isinstance(index, slice) and index == _WHOLE


def read(value: Any, index: Any) -> Any:
    """Return the part of an array at an index."""
    return value if is_whole(index) else value[index]


def written(value: Any, index: Any, new: Any, ref: Any) -> Any:
    """Return an array with a new part at an index.

    Raises:
        ValueError: the new part has another dtype, or does not broadcast to the shape of the indexed one.
    """
    new = _of_dtype(ref, new)
    if not is_whole(index):
        return value.at[index].set(new)
    shape = get_aval(value).shape
    if new.shape == shape:
        return new
    try:
        return jnp.broadcast_to(new, shape)
    except ValueError:
        raise ValueError(f"cannot write an array of shape {new.shape} to {ref!r}, which has shape {shape}") from None


def _of_dtype(ref: Any, new: Any) -> Any:
    """Return what is written to a reference as an array of its dtype; numbers take the dtype if it can hold them."""
    new = new if isinstance(new, Tracer) else jnp.asarray(new)
    converted = in_dtype_of(ref.aval, new)
    if converted is None:
        aval, wanted = get_aval(new), ref.aval
        if aval.dtype == wanted.dtype:  # another value type
            held, what, advice = wanted.str_short(), f"a value of type {aval.str_short()}", "write a value of that type"
        else:
            held, what = wanted.dtype.name, f"an array of dtype {aval.dtype.name}"
            advice = f"write value.astype({held!r})"
        raise ValueError(f"cannot write {what} to {ref!r}, made at {ref._line}, which holds {held}: {advice}")
    return converted


def in_dtype_of(target: Any, new: Any) -> Any:
    """Return an array with the dtype of a type, converted if it is a number that the dtype can hold; else None.

    A value of a value type has to be of the same value type.
    """
    aval, dtype = get_aval(new), target.dtype
    if type(aval) is not type(target) or getattr(aval, "fields", None) != getattr(target, "fields", None):
        return None
    if aval.dtype != dtype and not (aval.weak_type and jnp.result_type(target, aval) == dtype):
        return None
    return lax.convert_element_type(new, dtype) if aval.dtype != dtype or aval.weak_type else new


def add_to(ref: Any, index: Any, value: Any) -> None:
    """Add to the part of a reference at an index; repeated indices are added to several times."""
    ref[...] = ref[...] + value if is_whole(index) else ref[...].at[index].add(value)


class At:
    """`ref.at`: indexing makes a view of a part."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> View:
        """Return the view of the part at an index."""
        return View(self._ref, index)


class View:
    """A reference to a part of a reference; reading and writing it reads and writes that part.

    Attributes:
        ref: the reference, or a view of it.
        index: the part.
    """

    __slots__ = ("index", "ref")

    def __init__(self, ref: Any, index: Any) -> None:
        self.ref, self.index = ref, index

    @property
    def aval(self) -> Any:
        """The type of the part."""
        return get_aval(self.ref[self.index])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return self.aval.shape  # type: ignore[no-any-return]  # `ref` is a reference or a view

    @property
    def dtype(self) -> Any:
        """The dtype of the part."""
        return self.aval.dtype

    @property
    def at(self) -> At:
        """Views of parts of the part."""
        return At(self)

    @property
    def _line(self) -> str:
        return self.ref._line  # type: ignore[no-any-return]  # `ref` is a reference or a view

    def __getitem__(self, index: Any) -> Any:
        """Return what the part has at an index."""
        return read(self.ref[self.index], index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Replace what the part has at an index."""
        self.ref[self.index] = written(self.ref[self.index], index, value, self)

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """Add to what the part has at an index, as the function `addupdate` does."""
        add_to(self, idx, value)

    def __repr__(self) -> str:
        return f"{self.ref!r}.at[{self.index!r}]"
