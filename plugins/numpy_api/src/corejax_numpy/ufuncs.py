"""Universal functions: element-wise functions with the methods of NumPy's `ufunc`, such as `reduce` and `at`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy._one_by_one import accumulate_one_by_one, at_one_by_one, reduce_one_by_one, reduceat_one_by_one
from corejax_numpy.arguments import array_argument, canonical_axis, no_out_or_where, static_int
from corejax_numpy.manipulation import expand_dims, moveaxis

Function = Callable[..., Any]


class ufunc:
    """An element-wise function with the methods of NumPy's ufuncs.

    Each ufunc is the only instance of its own subclass, and the `__call__` of that subclass is the function itself.
    A call therefore costs no more than a call of the function.

    Args:
        func: the function; a function of scalars, unless `call` is given.
        nin: number of arguments.
        nout: number of results.
        name: name of the ufunc; by default `func.__name__`.
        nargs: number of arguments that a call may pass; by default `nin`.
        identity: the identity element of a binary function, or None if it has none.
        call: the function of arrays; by default `func`, vectorised.
        reduce, accumulate, at, reduceat: fast implementations of the methods; by default the methods apply the
            function element by element.

    Attributes:
        nin, nout, nargs, identity: the arguments of these names.
    """

    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    __wrapped__: Function
    _shortcuts: dict[str, Function | None]

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
        """Create a subclass for the function, and return its only instance."""
        if not callable(func):
            raise TypeError(f"ufunc: func must be callable, got {func!r} of type {type(func).__name__}")
        own = type(cls.__name__, (cls,), {"__call__": staticmethod(call or _broadcasting(func)), "__slots__": ()})
        self: ufunc = object.__new__(own)
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
        """Apply the function to arrays; each subclass overrides this method (see `__new__`)."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self!r} is immutable: it may be a static argument of a compiled function")

    def __repr__(self) -> str:
        return f"<corejax.numpy.ufunc '{self.__name__}'>"

    def _key(self) -> tuple[Any, ...]:
        return (self.__wrapped__, self.__name__, self.identity, self.nin, self.nout, self.nargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ufunc) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        # A ufunc of the table is pickled by its name in that module.
        if "__module__" in vars(self):
            return self.__name__
        return (_make_ufunc, (self.__wrapped__, self.nin, self.nout, self.__name__, self.nargs, self.identity))

    def _method_of_binary(self, method: str) -> str:
        """Return the name of a method for messages, after a check that the function is binary.

        Raises:
            ValueError: the function does not have two arguments and one result.
        """
        name = f"{self.__name__}.{method}"
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{name}: only functions of two arguments with one result have this method")
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
        """Reduce the elements along an axis by applying the function to them in turn.

        Args:
            a: the array.
            axis: the axis or axes to reduce, 0 by default; None reduces all axes.
            dtype: dtype of the result; by default the function's.
            out: not supported; must be None.
            keepdims: whether the reduced axes stay in the result, with size 1.
            initial: the value to start from; by default the identity, if the function has one.
            where: a boolean array that broadcasts to `a`; elements where it is False are skipped.

        Raises:
            ValueError: there are no elements to reduce and no identity; the axis does not exist; the function is not
                binary; or `where` is given, and there is neither an identity nor `initial`.
            NotImplementedError: several axes are given, and the function is applied element by element.
        """
        name = self._method_of_binary("reduce")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        if where is not None:
            if self.identity is None and initial is None:
                raise ValueError(f"{name}: the function has no identity, so give `initial` together with `where`")
            if (mask := array_argument(name, where)).dtype != dtypes.bool_:
                raise ValueError(f"{name}: `where` must be a boolean array, got {mask.aval.str_short()}")
        shortcut = self._shortcuts["reduce"] or reduce_one_by_one(self)
        return shortcut(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Return the running results of the function along an axis.

        Args:
            a: the array.
            axis: the axis to accumulate along, 0 by default.
            dtype: dtype of the result; by default the function's.
            out: not supported; must be None.

        Returns:
            An array of the shape of `a`; element `i` along the axis is the function applied to elements 0 to `i` in
            turn.

        Raises:
            ValueError: the axis does not exist, or the function is not binary.
        """
        name = self._method_of_binary("accumulate")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        if axis is None or isinstance(axis, tuple):
            raise ValueError(f"{name}: axis must be a single integer, got {axis!r}")
        shortcut = self._shortcuts["accumulate"]
        if shortcut is not None:
            return shortcut(a, axis=axis, dtype=dtype)
        return accumulate_one_by_one(self, a, canonical_axis(axis, a.ndim), dtype)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """Return a copy of the array with the function applied to the elements at some indices.

        Args:
            a: the array.
            indices: an index, or a tuple of indices. An element that is indexed several times is updated as often.
            b: the second argument, if the function is binary.
            inplace: must be False, because arrays are immutable; `a` is not changed.

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
        """Reduce slices of an axis: for each index, the elements from this index up to the next.

        If the next index is not larger, the result is the one element at the index.

        Args:
            a: the array.
            indices: a vector of indices along the axis.
            axis: the axis to reduce along, 0 by default.
            dtype: dtype of the result; by default that of `a`.
            out: not supported; must be None.

        Raises:
            ValueError: `indices` is not a vector of integers, the axis does not exist, or the function is not binary.
        """
        name = self._method_of_binary("reduceat")
        no_out_or_where(name, out, None)
        a = array_argument(name, a)
        indices = array_argument(name, indices, 1)
        if indices.ndim != 1 or not dtypes.is_integer(indices.dtype):
            raise ValueError(f"{name}: indices must be a vector of integers, got {indices.aval.str_short()}")
        if not isinstance(axis, int):
            raise ValueError(f"{name}: axis must be a single integer, got {axis!r}")
        if not a.ndim:
            raise ValueError(f"{name}: the array must have at least one axis, got {a.aval.str_short()}")
        axis = canonical_axis(axis, a.ndim)
        if (shortcut := self._shortcuts["reduceat"]) is not None:
            return shortcut(a, indices, axis=axis, dtype=dtype)
        return moveaxis(reduceat_one_by_one(self, moveaxis(a, axis, 0), indices, dtype), 0, axis)

    def outer(self, A: Any, B: Any, /) -> Any:
        """Apply the function to all pairs of elements; the result has the axes of `A`, then those of `B`."""
        name = self._method_of_binary("outer")
        A, B = array_argument(name, A), array_argument(name, B, 1)
        lax.check_dtype_promotion("outer", (A, B))
        rank = A.ndim + B.ndim
        return self(expand_dims(A, tuple(range(A.ndim, rank))) if B.ndim else A, lax.broadcast_to_rank(B, rank))


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Return a ufunc that applies a function of scalars element by element.

    Args:
        func: a function of scalars; it must be traceable.
        nin: number of arguments of `func`.
        nout: number of results of `func`.
        identity: the identity element of the function, or None if it has none.
    """
    return ufunc(func, nin, nout, identity=identity)


def _make_ufunc(func: Function, nin: int, nout: int, name: str, nargs: int, identity: Any) -> ufunc:
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity)


def _broadcasting(func: Function) -> Function:
    from corejax_numpy.mapping import vectorize  # no ufunc of the table needs it

    mapped = vectorize(func)

    def call(*args: Any, out: None = None, where: None = None) -> Any:
        no_out_or_where(getattr(func, "__name__", "ufunc"), out, where)
        return mapped(*args)

    return call
