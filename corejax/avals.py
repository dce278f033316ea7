"""Abstract values: the types of the IR. Equal avals are the same object, so rules memoise on identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes, source_info
from corejax.config import config
from corejax.dims import SymbolicDim, as_dim
from corejax.memory_limit import bytes_text

_MAX = (1 << 63) - 1
_interned: dict[tuple[Any, ...], ShapedArray] = {}


class ShapedArray:
    """The set of arrays of one shape, dtype and weak type. Interned: equal instances are identical.

    Attributes:
        shape: tuple of int, or of `SymbolicDim` where a size is not known.
        dtype: NumPy dtype (ml_dtypes included).
        weak_type: whether the dtype came from a Python scalar and yields to other dtypes.
        vma: the manual axes of a mesh along which values may differ; none but in functions of blocks (`shard_map`).
        sharding: over which axes of type Explicit of a mesh each dimension is split; None where the type does not say
            it. See `explicit_axes`.
        nbytes: bytes that an array of the type takes; 0 where a size is not known.

    Raises:
        ValueError: a negative dimension.
        OverflowError: more bytes than 64-bit integers count.
    """

    __slots__ = ("_size", "dtype", "nbytes", "ndim", "shape", "sharding", "vma", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    vma: frozenset[Any]
    sharding: Any
    ndim: int
    nbytes: int
    _size: int

    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False) -> ShapedArray:
        key = (shape, dtype, weak_type)
        try:
            found = _interned.get(key)
        except TypeError:  # a list as shape
            found = None
        return found if found is not None else _intern(cls, shape, dtype, weak_type)

    def update(
        self, shape: Sequence[int] | None = None, dtype: Any = None, weak_type: bool | None = None
    ) -> ShapedArray:
        """The aval with some fields replaced; of another shape, the type does not say how the array is split."""
        found = ShapedArray(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        if self.sharding is not None and found.shape == self.shape:
            return _refined(found, self.vma, self.sharding)
        return _refined(found, self.vma, None) if self.vma else found

    def strip_weak_type(self) -> ShapedArray:
        """The strongly typed aval of the same shape and dtype."""
        return self.update(weak_type=False) if self.weak_type else self

    def varying(self, vma: Iterable[Any]) -> ShapedArray:
        """The aval of values that may differ along these manual axes, and along no other."""
        vma = frozenset(vma)
        return self if vma == self.vma else _refined(self, vma, self.sharding)

    def laid_out(self, sharding: Any) -> ShapedArray:
        """The aval of arrays that are split like this over axes of type Explicit; None: the type does not say how."""
        return self if sharding is self.sharding else _refined(self, self.vma, sharding)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._size

    def str_short(self, *, short_dtypes: bool = True) -> str:
        """`f32[3,4]`, or `float32[3,4]` with `short_dtypes=False`.

        Of what may differ along axes `f32[3,4]{V:i}`; of what is split over axes `f32[3@x,4]`.
        """
        name = dtypes.short_name(self.dtype) if short_dtypes or self.dtype.names else self.dtype.name
        text = f"{name}[{','.join(map(repr, self.shape) if self.sharding is None else _split_sizes(self))}]"
        return text + _vma_text(self.vma) if self.vma else text

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"avals are immutable; use aval.update({name}=...)")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self.shape, self.dtype, self.weak_type, self.vma, self.sharding))

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"


def _vma_text(vma: frozenset[Any]) -> str:
    names = sorted(name if isinstance(name, str) and name.isidentifier() else repr(name) for name in vma)
    return f"{{V:{names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'}}}"


def _split_sizes(aval: ShapedArray) -> list[str]:
    """Sizes with the axes that they are split over: `8@x`, `8@(x,y)`."""
    sizes = zip(aval.shape, aval.sharding.dimension_axes(aval.ndim), strict=True)
    return [
        repr(n) if not names else f"{n!r}@{names[0]}" if len(names) == 1 else f"{n!r}@({','.join(names)})"
        for n, names in sizes
    ]


def _restored(
    shape: Sequence[int], dtype: Any, weak_type: bool, vma: frozenset[Any], sharding: Any = None
) -> ShapedArray:
    return _refined(ShapedArray(shape, dtype, weak_type), vma, sharding)


def _refined(aval: ShapedArray, vma: frozenset[Any], sharding: Any) -> ShapedArray:
    """The aval of the same shape, dtype and weak type that says this of axes of a mesh."""
    if not vma and sharding is None:
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type)
    found = _interned.get((aval.shape, aval.dtype, aval.weak_type, vma, sharding))
    return _intern(ShapedArray, aval.shape, aval.dtype, aval.weak_type, vma, sharding) if found is None else found


_NOWHERE: frozenset[Any] = frozenset()


def _intern(
    cls: type[ShapedArray],
    shape: Sequence[int],
    dtype: Any,
    weak_type: bool,
    vma: frozenset[Any] = _NOWHERE,
    sharding: Any = None,
) -> ShapedArray:
    shape = tuple(as_dim(d) for d in shape)
    symbol = next((d for d in shape if isinstance(d, SymbolicDim)), None)
    known = symbol is None
    if any(d < 0 for d in shape):
        raise ValueError(f"an array's dimensions are not negative, got shape {shape}")
    dtype = np.dtype(dtype)
    weak_type = bool(weak_type)
    key: tuple[Any, ...] = (shape, dtype, weak_type)
    if vma or sharding is not None:
        key = (*key, vma, sharding)
    interned = _interned if symbol is None else symbol.memo
    found = interned.get(key)
    if found is None:
        new = object.__new__(cls)
        size = 1
        for d in shape:
            size *= d
        nbytes = size * dtype.itemsize if known else 0
        if known and (nbytes > _MAX or any(d > _MAX for d in shape)):
            takes = f"takes {bytes_text(nbytes)}" if nbytes else f"has an axis of size {max(shape)}"
            raise OverflowError(
                f"an array of shape {shape} and dtype {dtype.name} {takes}: sizes are counted in 64-bit integers"
            )
        fields = {"shape": shape, "dtype": dtype, "weak_type": weak_type, "vma": vma, "ndim": len(shape)}
        fields |= {"sharding": sharding, "_size": size, "nbytes": nbytes}
        for name, value in fields.items():
            object.__setattr__(new, name, value)
        found = interned.setdefault(key, new)  # atomic: two threads agree on one object
    return found


_scalar_types: dict[type, str] = {bool: "bool", int: "int", float: "float", complex: "complex"}
_scalar_avals: dict[tuple[type, int], ShapedArray] = {}


def python_scalar_aval(x: bool | int | float | complex) -> ShapedArray:
    """Aval of a Python scalar: weakly typed, of the default width (`bool` is not weak).

    Raises:
        OverflowError: an `int` that the default integer dtype does not hold.
    """
    kind = type(x)
    bits = config.default_dtype_bits
    aval = _scalar_avals.get((kind, bits))
    if aval is None:
        aval = _scalar_avals[kind, bits] = ShapedArray((), dtypes.scalar_dtype(kind), kind is not bool)
    if kind is int and not -(1 << (bits - 1)) <= x < 1 << (bits - 1):  # type: ignore[operator]
        raise OverflowError(
            f"{source_info.by_caller()}Python int {x} does not fit {aval.dtype.name}, the default integer dtype; "
            f"give it a dtype (for example numpy.int64({x})) or set default_dtype_bits to 64"
        )
    return aval


def ndarray_aval(x: np.ndarray[Any, Any] | np.generic) -> ShapedArray:
    """Aval of a NumPy array or scalar: its own dtype, strongly typed.

    Raises:
        TypeError: its dtype is not supported.
        ValueError: elements of it are masked.
    """
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and hasattr(x, "filled"):  # numpy.ma loads late
        raise ValueError(
            f"{source_info.by_caller()}masked arrays are not supported, for the mask would be lost: "
            "x.filled(value) is an array, or x.data and x.mask are two"
        )
    aval = _interned.get((x.shape, x.dtype, False))
    if aval is not None:
        return aval
    try:
        dtypes.short_name(x.dtype)
    except (TypeError, ValueError, KeyError):
        if x.dtype.names == ("float0",):
            what = (
                "float0 arrays stand for the tangents of integers and hold no data: no operation takes them, no "
                "program returns them"
            )
        else:
            what = f"{source_info.by_caller()}arrays of dtype {x.dtype} are not supported: expected booleans or numbers"
        raise TypeError(what) from None
    return ShapedArray(x.shape, x.dtype)


def get_aval(x: Any) -> ShapedArray:
    """Aval of anything that a primitive takes: arrays, tracers, NumPy arrays and scalars, Python scalars.

    NumPy's are 32 bits wide under `config.x64_compat`.

    Raises:
        TypeError: `x` is not an array.
    """
    aval = getattr(x, "aval", None)  # asked for once: a nested JVPTracer computes it
    if type(aval) is ShapedArray:
        return aval
    if type(x) in _scalar_types:
        return python_scalar_aval(x)
    if isinstance(x, np.ndarray | np.generic):
        aval = ndarray_aval(x)
        return aval.update(dtype=dtypes.canonicalize_dtype(aval.dtype)) if config.x64_compat else aval
    if hasattr(type(x), "__corejax_array__"):
        return get_aval(x.__corejax_array__())
    if isinstance(x, bool | int | float | complex):  # a subclass, an IntEnum say
        kind = next(t for t in (bool, int, float, complex) if isinstance(x, t))
        return python_scalar_aval(kind(x))  # type: ignore[arg-type]
    raise TypeError(
        f"{source_info.by_caller()}{x!r} of type {type(x).__name__} is not an array: expected an array, a NumPy array "
        f"or a Python scalar{conversion_hint(x)}"
    )


types_of: dict[type, Callable[[Any], ShapedArray]] = {}  # of classes that stand for a type and have no value


def typeof(x: Any) -> ShapedArray:
    """The type of a value: its shape and dtype, and whether the dtype is weak.

    Args:
        x: an array, a tracer, a NumPy array or scalar, a Python number, or a `ShapeDtypeStruct`.

    Raises:
        TypeError: `x` is not an array.
    """
    try:
        read = types_of.get(type(x), get_aval)
        return read(x)
    except TypeError as error:
        raise TypeError(f"typeof: {error}") from None


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the numbers that an array is held as: behind its own axes those of an element.

    Args:
        aval: a type of an extended dtype; any other is its own physical type.
    """
    if aval.dtype.names is None:
        return aval
    base, inner = dtypes.element_of(aval.dtype)
    return ShapedArray(aval.shape + inner, base)


def numbers_of(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of an extended dtype as its numbers, of the physical type; a view where its memory is in one piece."""
    base, inner = dtypes.element_of(host.dtype)
    return np.ascontiguousarray(host).reshape(-1).view(base).reshape(host.shape + inner)


def from_numbers(numbers: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array of an extended dtype that such numbers are; undoes `numbers_of`."""
    _, inner = dtypes.element_of(dtype)
    shape = numbers.shape[: numbers.ndim - len(inner)]
    return np.ascontiguousarray(numbers).reshape(-1).view(dtype).reshape(shape)


def avals_of(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Avals of several values.

    Raises:
        TypeError: one of them is not an array.
    """
    try:
        return tuple([x.aval for x in values])
    except AttributeError:  # NumPy's arrays and Python's numbers have types, and say them otherwise
        return tuple([get_aval(x) for x in values])


def conversion_hint(x: Any) -> str:
    """What to do with another library's array, for messages."""
    return "; convert it with numpy.asarray" if hasattr(type(x), "__array__") else ""


def is_array_like(x: Any) -> bool:
    """Whether `get_aval` takes `x`."""
    return (
        type(getattr(x, "aval", None)) is ShapedArray
        or type(x) in _scalar_types
        or isinstance(x, np.ndarray | np.generic | bool | int | float | complex)
        or hasattr(type(x), "__corejax_array__")
    )
