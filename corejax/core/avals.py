"""Abstract values: the types of the IR.

Avals are interned: equal avals are the same object. Caches of traced programs and inferred types have avals in their
keys, and comparing and hashing them by identity makes these lookups cheap. The intern table holds its avals as long as
the process runs; types with symbolic sizes are interned in a dict of the symbols instead, and are freed with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from corejax import dtypes
from corejax.base.dims import SymbolicDim, as_dim
from corejax.base.seams import Slot
from corejax.messages import source_info
from corejax.settings.config import config
from corejax.settings.memory_limit import bytes_text

_MAX = (1 << 63) - 1
_interned: dict[tuple[Any, ...], ShapedArray] = {}

unsplit_sharding: Slot[Callable[[int], Any]] = Slot("the sharding of types that do not say how an array is split")
"""`provide(ndim -> sharding)`: a sharding over the mesh of the context, or None if the context has no mesh."""

Shape: TypeAlias = Sequence[int]
Operands: TypeAlias = Sequence[object]  # what `get_aval` takes: arrays, tracers, NumPy arrays, Python numbers
Dims: TypeAlias = Sequence[int | None]  # batching dimensions of operands; None if an operand is not mapped
FlatFun: TypeAlias = Callable[..., Operands]  # a function from leaves to leaves
Params: TypeAlias = dict[str, object]  # the parameters of a primitive: static and hashable, by name
T = TypeVar("T")


class Refinement(Protocol):
    """A plugin's extension of a type beyond shape, dtype and weak type; immutable and hashable.

    A type has one refinement or None. The kernel compares refinements and calls these methods; the plugin defines their
    meaning. The refinements of corejax-parallel describe how arrays are sharded over the axes of a mesh.
    """

    @property
    def of_any_shape(self) -> Refinement | None:
        """The part that applies to arrays of every shape, a refinement or None."""

    def of_results(self, primitive: Any, avals: Avals, outs: Avals, params: Params) -> tuple[ShapedArray, ...]:
        """Refine the types `outs` that an abstract-eval rule returned, if an operand has this refinement."""

    def conform(self, x: T, aval: ShapedArray, *, cotangent: bool) -> T:
        """Return a tangent or cotangent with the refinement of `aval`; `self` is the refinement of `aval` or of `x`."""

    def join(self, other: Self) -> Self:
        """Return the refinement of a value that may be either of two values."""

    def without_axis(self, dim: int) -> tuple[Refinement | None, tuple[Any, ...]]:
        """Return the refinement of an element along a dimension, and the names attached to that dimension."""

    def with_axis(self, dim: int, names: tuple[Any, ...]) -> Refinement | None:
        """Return the refinement of a batch along a new dimension with the names `names`."""

    def text(self, shape: Sequence[Any]) -> str:
        """Return the shape as printed after the dtype: `[8@x,4]{V:i}`."""


class ShapedArray:
    """The set of arrays of one shape, dtype and weak type. Interned: equal instances are identical.

    Attributes:
        shape: tuple of int, or of `SymbolicDim` for sizes that are not known.
        dtype: NumPy dtype (ml_dtypes included).
        weak_type: whether the dtype came from a Python scalar, so that other dtypes take precedence in promotion.
        refinement: a plugin's extension of the type, or None. See `Refinement`.
        size: number of elements.
        nbytes: number of bytes of an array of the type; 0 if a size is not known.
        has_tangents: whether values have tangents: floating-point and complex numbers do.

    JAX's argument `sharding` is accepted and ignored: shardings are refinements here.

    Raises:
        ValueError: a dimension is negative.
        OverflowError: the number of bytes exceeds 64-bit integers.
    """

    __slots__ = ("dtype", "has_tangents", "nbytes", "ndim", "refinement", "shape", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    refinement: Refinement | None
    ndim: int
    nbytes: int
    size: int
    has_tangents: bool

    def __new__(cls, shape: Shape, dtype: object, weak_type: bool = False, *, sharding: object = None) -> ShapedArray:
        """Return the interned instance for the given fields."""
        try:
            aval = _interned.get((shape, dtype, weak_type))
        except TypeError:  # the shape is a list
            aval = None
        return aval if aval is not None else _intern(cls, shape, dtype, weak_type)

    def update(
        self, shape: Shape | None = None, dtype: object = None, weak_type: bool | None = None, sharding: object = None
    ) -> ShapedArray:
        """Return a type with some fields replaced; a new shape keeps only `refinement.of_any_shape`."""
        aval = ShapedArray(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        refinement = self.refinement
        if refinement is None:
            return aval
        return aval.refined(refinement if aval.shape == self.shape else refinement.of_any_shape)

    def to_tangent_aval(self) -> ShapedArray:
        """Return the type of tangents: strongly typed, of dtype float0 for integers and booleans; JAX's name for it."""
        return self.update(dtype=self.dtype if self.has_tangents else dtypes.float0, weak_type=False)

    at_least_vspace = to_tangent_aval  # an older name of JAX

    def tangent_type(self) -> ShapedArray:
        """Return the type of tangents and cotangents of values that have them: that of the value, strongly typed."""
        return self.strip_weak_type()

    def parts(self) -> tuple[ShapedArray, ...]:
        """Return the types of the arrays that store a value: by default the type itself.

        Arrays of an extended dtype are stored as numbers: the element's axes follow the array's axes.
        """
        if self.dtype.names is None:
            return (self,)
        base, inner = dtypes.element_of(self.dtype)
        return (ShapedArray(self.shape + inner, base),)

    def part_axes(self, axis: int) -> tuple[int, ...]:
        """Return, for each part, its axis that stores an axis of the value; by default the same in all parts."""
        return (axis,) * len(self.parts())

    def strip_weak_type(self) -> ShapedArray:
        """Return the strongly typed aval of the same shape and dtype."""
        return self.update(weak_type=False) if self.weak_type else self

    def refined(self, refinement: Refinement | None) -> ShapedArray:
        """Return the type of the same shape, dtype and weak type with another refinement."""
        if refinement is self.refinement:
            return self
        if refinement is None:
            return ShapedArray(self.shape, self.dtype, self.weak_type)
        aval = _interned.get((self.shape, self.dtype, self.weak_type, refinement))
        if aval is not None:
            return aval
        return _intern(ShapedArray, self.shape, self.dtype, self.weak_type, refinement)

    # Shortcuts for users to corejax-parallel's refinement; types without one have these properties as well.

    @property
    def vma(self) -> frozenset[Any]:
        """The manual axes of a mesh along which values may differ; empty outside of `shard_map`."""
        return getattr(self.refinement, "vma", frozenset())

    @property
    def explicit_sharding(self) -> Any:
        """The sharding of the array over axes of type Explicit of a mesh; None if the type has none."""
        return getattr(self.refinement, "sharding", None)

    @property
    def sharding(self) -> Any:
        """`explicit_sharding`; if that is None, the unsharded placement on the mesh of the context."""
        sharding = self.explicit_sharding
        if sharding is None and unsplit_sharding.value is not None:
            return unsplit_sharding.value(self.ndim)
        return sharding

    def str_short(self, *, short_dtypes: bool = True) -> str:
        """Return the type as text: `f32[3,4]`, or `float32[3,4]` with `short_dtypes=False`."""
        short = "float0" if self.dtype == dtypes.float0 else dtypes.short_name(self.dtype)
        name = short if short_dtypes or self.dtype.names else self.dtype.name
        if self.refinement is not None:
            return name + self.refinement.text(self.shape)
        return f"{name}[{','.join(map(repr, self.shape))}]"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"avals are immutable; use aval.update({name}=...)")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (self.shape, self.dtype, self.weak_type, self.refinement))

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: object) -> ShapedArray:
        return self

    def __str__(self) -> str:
        return "~" * self.weak_type + self.str_short(short_dtypes=False)

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short(short_dtypes=False)}{', weak_type=True' * self.weak_type})"


def _restored(shape: Shape, dtype: object, weak_type: bool, refinement: Refinement | None = None) -> ShapedArray:
    return ShapedArray(shape, dtype, weak_type).refined(refinement)


def _intern(cls: type[ShapedArray], shape: Shape, dtype: Any, weak_type: bool, *more: object) -> ShapedArray:
    """Return the instance of a class for some fields; `more` are the refinement and the fields of a subclass."""
    shape = tuple(as_dim(d) for d in shape)
    symbol = next((d for d in shape if isinstance(d, SymbolicDim)), None)
    known = symbol is None
    if any(d < 0 for d in shape):
        raise ValueError(f"an array's dimensions are not negative, got shape {shape}")
    dtype = np.dtype(dtype)
    weak_type = bool(weak_type)
    refinement = more[0] if more else None
    key: tuple[Any, ...] = (shape, dtype, weak_type)
    if cls is not ShapedArray:
        key = (*key, cls, *more)
    elif refinement is not None:
        key = (*key, refinement)
    interned = _interned if symbol is None else symbol.memo
    aval = interned.get(key)
    if aval is None:
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
        fields = {"shape": shape, "dtype": dtype, "weak_type": weak_type, "refinement": refinement}
        fields |= {"ndim": len(shape), "size": size, "nbytes": nbytes}
        fields["has_tangents"] = dtypes.KINDS.get(dtype) in ("f", "c")
        for name, value in fields.items():
            object.__setattr__(new, name, value)
        aval = interned.setdefault(key, new)  # atomic, so that two threads get the same object
    return aval


_SCALARS = (bool, int, float, complex)


def python_scalar_aval(x: bool | int | float | complex) -> ShapedArray:
    """Return the aval of a Python scalar: weakly typed, of the default width (`bool` is not weak).

    Raises:
        OverflowError: `x` is an `int` outside the range of the default integer dtype.
    """
    kind = type(x)
    bits = config.default_dtype_bits
    aval = ShapedArray((), dtypes.scalar_dtype(kind), kind is not bool)
    if kind is int and not -(1 << (bits - 1)) <= x < 1 << (bits - 1):  # type: ignore[operator]  # an int
        raise OverflowError(
            f"{source_info.by_caller()}Python int {x} does not fit {aval.dtype.name}, the default integer dtype; "
            f"give it a dtype (for example numpy.int64({x})) or set default_dtype_bits to 64"
        )
    return aval


def ndarray_aval(x: np.ndarray | np.generic) -> ShapedArray:
    """Return the aval of a NumPy array or scalar: of its dtype, strongly typed.

    Raises:
        TypeError: its dtype is not supported.
        ValueError: it is a masked array.
    """
    # `hasattr` recognises masked arrays without importing `numpy.ma`, which is slow.
    if type(x) is not np.ndarray and isinstance(x, np.ndarray) and hasattr(x, "filled"):
        raise ValueError(
            f"{source_info.by_caller()}masked arrays are not supported, because the mask would be lost: "
            "pass x.filled(value), or x.data and x.mask"
        )
    aval = _interned.get((x.shape, x.dtype, False))
    if aval is not None:
        return aval
    try:
        dtypes.short_name(x.dtype)
    except (TypeError, ValueError, KeyError):
        if x.dtype.names == ("float0",):
            what = (
                "float0 arrays stand for the tangents of integers and hold no data: operations do not take them, and "
                "programs do not return them"
            )
        else:
            what = f"{source_info.by_caller()}arrays of dtype {x.dtype} are not supported: expected booleans or numbers"
        raise TypeError(what) from None
    return ShapedArray(x.shape, x.dtype)


def array_method(kind: type) -> Callable[[Any], Any] | None:
    """Return the method of a class that converts its objects to arrays, or None if it has none.

    The method is called `__corejax_array__` or, in classes written for JAX, `__jax_array__`.
    """
    return getattr(kind, "__corejax_array__", None) or getattr(kind, "__jax_array__", None)


def get_aval(x: Any) -> ShapedArray:
    """Return the aval of an operand: an array, a tracer, a NumPy array or scalar, or a Python scalar.

    The dtypes of NumPy arrays and scalars are narrowed to 32 bits under `config.x64_compat`.

    Raises:
        TypeError: `x` is not an array.
    """
    aval = getattr(x, "aval", None)  # read once, because a nested JVPTracer computes it
    if type(aval) is ShapedArray or isinstance(aval, ShapedArray):
        return aval
    if type(x) in _SCALARS:
        return python_scalar_aval(x)
    if isinstance(x, (np.ndarray, np.generic)):
        aval = ndarray_aval(x)
        return aval.update(dtype=dtypes.canonicalize_dtype(aval.dtype)) if config.x64_compat else aval
    if (array_of := array_method(type(x))) is not None:
        return get_aval(array_of(x))
    if isinstance(x, _SCALARS):  # an instance of a subclass, such as an IntEnum
        kind = next(t for t in _SCALARS if isinstance(x, t))
        return python_scalar_aval(kind(x))  # type: ignore[arg-type]  # each is a type of numbers
    raise TypeError(
        f"{source_info.by_caller()}{x!r} of type {type(x).__name__} is not an array: expected an array, a NumPy array "
        f"or a Python scalar{conversion_hint(x)}"
    )


Avals: TypeAlias = Sequence[ShapedArray]
types_of: dict[type, Callable[[Any], ShapedArray]] = {}  # for classes such as `ShapeDtypeStruct`, which have no value


def typeof(x: object) -> ShapedArray:
    """Return the type of a value: its shape and dtype, and whether the dtype is weak.

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


def numbers_of(host: np.ndarray) -> np.ndarray:
    """Return the numbers that represent an array of an extended dtype; a view if the memory is contiguous."""
    base, inner = dtypes.element_of(host.dtype)
    return np.ascontiguousarray(host).reshape(-1).view(base).reshape(host.shape + inner)


def from_numbers(numbers: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the array of an extended dtype that numbers represent; the inverse of `numbers_of`."""
    _, inner = dtypes.element_of(dtype)
    shape = numbers.shape[: numbers.ndim - len(inner)]
    return np.ascontiguousarray(numbers).reshape(-1).view(dtype).reshape(shape)


def avals_of(values: Sequence[Any]) -> tuple[ShapedArray, ...]:
    """Return the avals of several values.

    Raises:
        TypeError: one of them is not an array.
    """
    try:
        return tuple([x.aval for x in values])
    except AttributeError:  # NumPy arrays and Python scalars have no attribute `aval`
        return tuple([get_aval(x) for x in values])


def conform(x: T, aval: ShapedArray, *, cotangent: bool = False) -> T:
    """Return a value of the shape and dtype of `aval` with the refinement of `aval`.

    Args:
        x: a tangent, a cotangent or zeros.
        aval: the type of the primal value.
        cotangent: whether `x` is a cotangent; a plugin may then have to sum the contributions of several devices.
    """
    current = get_aval(x).refinement
    if current == aval.refinement:
        return x
    refinement = current if aval.refinement is None else aval.refinement
    assert refinement is not None
    return refinement.conform(x, aval, cotangent=cotangent)


def join_refinements(x: Refinement | None, y: Refinement | None) -> Refinement | None:
    """Return the refinement of a value that may be one of two values with these refinements."""
    return y if x is None else x if y is None else x.join(y)


def conversion_hint(x: object) -> str:
    """Return advice on another library's array, for messages."""
    return "; convert it with numpy.asarray" if hasattr(type(x), "__array__") else ""


def is_array_like(x: object) -> bool:
    """Whether `get_aval` takes `x`."""
    return (
        isinstance(getattr(x, "aval", None), ShapedArray)
        or type(x) in _SCALARS
        or isinstance(x, (np.ndarray, np.generic, *_SCALARS))
        or array_method(type(x)) is not None
    )
