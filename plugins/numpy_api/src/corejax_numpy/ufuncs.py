"""Universal functions: functions of elements that also reduce, accumulate, update and pair up, as NumPy's `ufunc`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy._one_by_one import accumulate_one_by_one, at_one_by_one, reduce_one_by_one, reduceat_one_by_one
from corejax_numpy.arguments import array_argument, canonical_axis, no_out_or_where, static_int
from corejax_numpy.manipulation import expand_dims, moveaxis
from corejax_numpy.mapping import vectorize

Function = Callable[..., Any]


class ufunc:
    """A function of elements, with the methods of NumPy's ufuncs.

    Each is the only instance of a class whose `__call__` is the function itself, so that a call costs no more than
    the function's.

    Args:
        func: the function, of scalars unless `call` is given.
        nin: number of its arguments.
        nout: number of its results.
        name: by default the function's.
        nargs: number of arguments that it may get; by default `nin`.
        identity: what changes nothing, where the function has it.
        call: the function of arrays; by default `func` vectorized.
        reduce, accumulate, at, reduceat: what does these at once; by default they go element by element.

    Attributes:
        nin, nout, nargs, identity: as given.
    """

    nin: int
    nout: int
    nargs: int
    identity: Any

    def __new__(
        cls,
        func: Function,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Function | None = None,
        reduce: Function | None = None,
        accumulate: Function | None = None,
        at: Function | None = None,
        reduceat: Function | None = None,
    ) -> ufunc:
        if not callable(func):
            raise TypeError(f"ufunc: func is a function, got {func!r} of type {type(func).__name__}")
        own = type(cls.__name__, (cls,), {"__call__": staticmethod(call or _broadcasting(func)), "__slots__": ()})
        self = object.__new__(own)
        fields = {
            "__name__": name or getattr(func, "__name__", "ufunc"),
            "__doc__": func.__doc__,
            "__wrapped__": func,
            "nin": static_int("ufunc", nin, "nin"),
            "nout": static_int("ufunc", nout, "nout"),
            "nargs": static_int("ufunc", nin if nargs is None else nargs, "nargs"),
            "identity": identity,
            "_shortcuts": {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat},
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        return self

    __slots__ = ("__dict__", "__weakref__")

    def __call__(self, *args: Any) -> Any:
        """The function of arrays; see `__new__`."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self!r} does not change: it may be a static argument of a compiled function")

    def __repr__(self) -> str:
        return f"<corejax.numpy.ufunc '{self.__name__}'>"

    def _key(self) -> tuple[Any, ...]:
        return (self.__wrapped__, self.__name__, self.identity, self.nin, self.nout, self.nargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        if "__module__" in vars(self):  # found there by its name
            return self.__name__
        return (_made, (self.__wrapped__, self.nin, self.nout, self.__name__, self.nargs, self.identity))

    def _binary(self, method: str) -> str:
        """The method's name for messages.

        Raises:
            ValueError: the function has not two arguments and one result.
        """
        name = f"{self.__name__}.{method}"
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{name}: only functions of two arguments with one result have it")
        return name

    def reduce(
        self,
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """The elements along an axis combined into one.

        Args:
            a: the array.
            axis: the axis; None is all of them.
            dtype: of the result; by default the function's.
            out: not supported.
            keepdims: keep the axis, with size 1.
            initial: what to begin with; by default the identity, if there is one.
            where: a boolean array: which elements count.

        Raises:
            ValueError: there is nothing to combine and no identity, or no such axis; the function is not binary; or a
                mask comes without something to begin with.
            NotImplementedError: several axes, of a function that is combined element by element.
        """
        name = self._binary("reduce")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        if where is not None:
            if self.identity is None and initial is None:
                raise ValueError(f"{name}: there is no identity, so give `initial` with a mask")
            if (mask := array_argument(name, where)).dtype != dtypes.bool_:
                raise ValueError(f"{name}: the mask is boolean, got {mask.aval.str_short()}")
        shortcut = self._shortcuts["reduce"] or reduce_one_by_one(self)
        return shortcut(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """The elements so far along an axis combined, at each of its places.

        Raises:
            ValueError: there is no such axis, or the function is not binary.
        """
        name = self._binary("accumulate")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"{name} goes along one axis, got {axis!r}")
        shortcut = self._shortcuts["accumulate"]
        if shortcut is not None:
            return shortcut(a, axis=axis, dtype=dtype)
        return accumulate_one_by_one(self, a, canonical_axis(axis, a.ndim), dtype)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """The array with elements at some indices replaced by the function of them.

        Args:
            a: the array.
            indices: an index, or a tuple of them; elements that they name several times are updated as often.
            b: the second argument, of a binary function.
            inplace: has to be False: arrays are immutable, and this one is not changed.

        Raises:
            NotImplementedError: `inplace` is true.
        """
        name = f"{self.__name__}.at"
        if inplace:
            raise NotImplementedError(
                f"{name}: arrays are immutable; write `x = {name}(x, indices, ..., inplace=False)`, which returns the "
                "updated array"
            )
        a = array_argument(name, a)
        args = () if b is None else (array_argument(name, b, 2),)
        shortcut = self._shortcuts["at"]
        if shortcut is not None and args:
            return shortcut(a, indices, *args)
        return at_one_by_one(self, a, indices, *args)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """For each index the elements from it up to the next index combined; one element where that is not larger.

        Args:
            a: the array.
            indices: a vector of indices along the axis.
            axis: the axis.
            dtype: of the result; by default that of `a`.
            out: not supported.

        Raises:
            ValueError: the indices are no vector, there is no such axis, or the function is not binary.
        """
        name = self._binary("reduceat")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        indices = array_argument(name, indices, 1)
        if indices.ndim != 1 or not dtypes.is_integer(indices.dtype):
            raise ValueError(f"{name}: indices are a vector of integers, got {indices.aval.str_short()}")
        if not isinstance(axis, int):
            raise ValueError(f"{name} goes along one axis, got {axis!r}")
        if not a.ndim:
            raise ValueError(f"{name}: the array has to have an axis, got {a.aval.str_short()}")
        axis = canonical_axis(axis, a.ndim)
        if (shortcut := self._shortcuts["reduceat"]) is not None:
            return shortcut(a, indices, axis=axis, dtype=dtype)
        return moveaxis(reduceat_one_by_one(self, moveaxis(a, axis, 0), indices, dtype), 0, axis)

    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of all pairs of elements: an array with the axes of both."""
        name = self._binary("outer")
        A, B = array_argument(name, A), array_argument(name, B, 1)
        lax.check_dtype_promotion("outer", (A, B))
        rank = A.ndim + B.ndim
        return self(expand_dims(A, tuple(range(A.ndim, rank))) if B.ndim else A, lax.broadcast_to_rank(B, rank))


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc of a function of scalars.

    Args:
        func: a function that can be traced.
        nin: number of its arguments.
        nout: number of its results.
        identity: what changes nothing, if there is something.
    """
    return ufunc(func, nin, nout, identity=identity)


def _made(func: Function, nin: int, nout: int, name: str, nargs: int, identity: Any) -> ufunc:
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity)


def _broadcasting(func: Function) -> Function:
    mapped = vectorize(func)

    def call(*args: Any, out: None = None, where: None = None) -> Any:
        no_out_or_where(getattr(func, "__name__", "ufunc"), out, where)
        return mapped(*args)

    return call
