"""Functions of pytrees as functions of lists of leaves, and the checks of their arguments and outputs.

Each transformation wraps the user's function in a `FlatFunction`. `ShapeDtypeStruct` is an argument without a value.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import dtypes, tree
from corejax.arrays.array import Array, as_array
from corejax.arrays.cells import cells_among
from corejax.core.avals import Operands, ShapedArray, conversion_hint, get_aval, is_array_like, types_of
from corejax.core.trace import Tracer, escaped
from corejax.core.value_types import Packed, ValueType
from corejax.ir.debug_info import DebugInfo, fun_name
from corejax.messages import source_info
from corejax.settings.config import config
from corejax.tree._paths import leaf_names as leaf_names

float0 = dtypes.float0
Names = Callable[[], Sequence[str]]  # returns the names of all leaves; called only for an error message


class FlatFunction:
    """A user function as a function from a list of leaves to a list of leaves.

    Attributes:
        fun: the user's function.
        in_tree: structure of `args`, or of `(args, kwargs)` if `with_kwargs`.
        out_tree, num_out: structure and number of leaves of the result; set by a call.
        aux: the auxiliary output if the function returns `(out, aux)`, else None. Its leaves follow those of `out`.
    """

    __slots__ = ("aux", "fun", "in_tree", "num_out", "out_tree", "with_kwargs")

    def __init__(
        self, fun: Callable[..., object], in_tree: tree.PyTreeDef, *, with_kwargs: bool = False, has_aux: bool = False
    ) -> None:
        self.fun = fun
        self.in_tree = in_tree
        self.with_kwargs = with_kwargs
        self.aux = Aux() if has_aux else None
        self.num_out = 0
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Call the function with these leaves, and return the leaves of its result."""
        unflat = self.in_tree.unflatten(leaves)
        out = self.fun(*unflat[0], **unflat[1]) if self.with_kwargs else self.fun(*unflat)
        extra: list[Any] = []
        if self.aux is not None:
            out, extra = self.aux.split(self.fun, out)
        outs, self.out_tree = tree.tree_flatten(out)
        check_outputs(self.fun, outs, self.out_tree)
        has_registered = type(self.out_tree) is not tree.PyTreeDef  # a cell in a pytree is a registered node
        if has_registered and (cells := cells_among(out)):
            raise ValueError(
                f"function {fun_name(self.fun)} returned {cells[0][0]!r}: a transformed function returns arrays, the "
                "value of a reference (ref[...]) say, and not references"
            )
        self.num_out = len(outs)
        return outs + extra


def check_outputs(fun: object, outs: Operands, out_tree: Any) -> None:
    """Check that all outputs are arrays; an error names the place of the output.

    Raises:
        TypeError: a leaf of the result is not an array.
        UnexpectedTracerError: a leaf is a tracer of a transformation that has ended.
    """
    for i, x in enumerate(outs):
        if isinstance(x, Tracer):
            if not x._trace.alive:
                raise escaped(x, f"the result of function {fun_name(fun)}")
        elif type(x) is not Array and not is_array_like(x):
            where = leaf_names(out_tree)[i] or "its value"
            raise TypeError(
                f"function {fun_name(fun)} returns {x!r} of type {type(x).__name__} ({where}): a transformed function "
                "returns arrays, numbers and pytrees of them"
            )


def check_arguments(transform: str, fun: object, leaves: Operands, names: Names) -> None:
    """Check that all leaves of the arguments are arrays; an error names the argument.

    Raises:
        TypeError: a leaf of the arguments is not an array.
    """
    for i, x in enumerate(leaves):
        if type(x) is not Array and not isinstance(x, Tracer):
            check_argument(transform, fun, x, names, i)


def check_argument(transform: str, fun: object, x: object, names: Names, i: int) -> None:
    """Raise TypeError if `x`, leaf number `i` of the arguments, is not an array."""
    if not is_array_like(x):
        raise TypeError(
            f"{transform} of function {fun_name(fun)}: argument {names()[i]} is {x!r} of type {type(x).__name__}, "
            f"which is not an array{conversion_hint(x)}. Pass arrays and numbers (in pytrees), close over the rest, or "
            "mark it as static if the transformation takes static_argnums."
        )
    _aval_of_argument(get_aval, transform, fun, x, names, i)


def _aval_of_argument(
    aval_of: Callable[[Any], ShapedArray], transform: str, fun: object, x: object, names: Names, i: int
) -> ShapedArray:
    """Return the aval of an argument; an error names the argument."""
    try:
        return aval_of(x)
    except (TypeError, ValueError, OverflowError) as error:
        what = source_info.without_caller(error)
        raise type(error)(f"{transform} of function {fun_name(fun)}: argument {names()[i]}: {what}") from None


def leaves_like(treedef: Any, value: Any, mismatch: Callable[[Any], str]) -> list[Any]:
    """Return the leaves of a value with the structure `treedef`; None may stand for any leaf.

    Raises:
        TypeError: the value has another structure; `mismatch` returns the message for that structure.
    """
    try:
        leaves = treedef.flatten_up_to(value)
    except (ValueError, TypeError):
        leaves = None
    if leaves is None or not tree.all_leaves([x for x in leaves if x is not None]):
        raise TypeError(mismatch(tree.tree_structure(value)))
    return list(leaves)


def arg_names(fun: Callable[..., object], in_tree: tree.PyTreeDef, *, with_kwargs: bool = False) -> list[str]:
    """Return the names of the leaves of the arguments, as the user's function calls its parameters: `x['a']`."""
    if not with_kwargs:
        in_tree = tree.treedef_tuple([in_tree, tree.tree_structure({})])
    return DebugInfo(fun, "", in_tree).arg_names()


class Aux:
    """The auxiliary output of a function. Traced leaves become arrays; leaves of any other type are kept as is."""

    __slots__ = ("traced", "treedef")

    def split(self, fun: object, result: object) -> tuple[Any, list[Any]]:
        """Return `out` and the leaves of `aux` for the result `(out, aux)` of `fun`.

        Raises:
            TypeError: the result is not a pair.
        """
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise TypeError(
                f"with has_aux=True function {fun_name(fun)} must return a two-element tuple (out, aux), got "
                f"{type(result).__name__}: {result!r}"
            )
        leaves, self.treedef = tree.tree_flatten(result[1])
        self.traced = [isinstance(x, Tracer) for x in leaves]
        return result[0], leaves

    def unflatten(self, leaves: Operands) -> Any:
        """Return the auxiliary output for the caller, with arrays in place of traced leaves."""
        values = [as_array(x) if traced else x for x, traced in zip(leaves, self.traced, strict=True)]
        return tree.tree_unflatten(self.treedef, values)


def shaped_abstractify(x: object) -> ShapedArray:
    """Return the aval of an array, or of anything that has a shape and a dtype (`ShapeDtypeStruct`, a value type).

    Under `config.x64_compat` a 64-bit dtype becomes the 32-bit one, as for NumPy arrays.

    Raises:
        TypeError: `x` is not an array and has no shape and dtype.
    """
    if isinstance(x, ValueType):
        return x
    if is_array_like(x):
        return get_aval(x)
    if not isinstance(x, type) and hasattr(x, "shape") and hasattr(x, "dtype"):
        dtype = dtypes.canonicalize_dtype(x.dtype) if config.x64_compat else np.dtype(x.dtype)
        aval = ShapedArray(tuple(x.shape), dtype, bool(getattr(x, "weak_type", False)))
        of_type = getattr(getattr(x, "sharding", None), "of_type", None)
        return aval if of_type is None else aval.refined(of_type(aval.ndim))
    return get_aval(x)


def abstractified(transform: str, fun: object, leaves: Operands, names: Names) -> list[ShapedArray]:
    """Return the avals of the leaves of arguments that are only traced; they need no values.

    Raises:
        TypeError: an argument has no shape and dtype; the message names it.
    """
    return [_aval_of_argument(shaped_abstractify, transform, fun, x, names, i) for i, x in enumerate(leaves)]


# Flags of the code of generator and coroutine functions.
_NO_VALUE = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR | inspect.CO_COROUTINE


def check_function(transform: str, fun: Any) -> None:
    """Check that `fun` is a function that returns its value.

    Raises:
        TypeError: `fun` is not callable, or is a generator or coroutine function.
    """
    if not callable(fun):
        raise TypeError(f"{transform} transforms a function, got {fun!r} of type {type(fun).__name__}")
    called = fun
    while isinstance(called, functools.partial):
        called = called.func
    flags = getattr(getattr(called, "__code__", None), "co_flags", None)
    if isinstance(flags, int) and flags & _NO_VALUE:
        raise TypeError(
            f"{transform} transforms a function that returns its value, got the generator or coroutine function {fun!r}"
        )


class ShapeDtypeStruct:
    """A shape and a dtype without a value. `eval_shape` returns it; functions that only trace accept it.

    Attributes:
        shape: tuple of int.
        dtype: NumPy dtype.
        weak_type: whether the dtype came from a Python scalar.
        sharding: sharding of the array that this stands for, or None. A program lowered for it runs on those devices.
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, weak_type: bool = False, *, sharding: object = None) -> None:
        if dtype is None:  # `np.dtype(None)` is float64
            raise ValueError("ShapeDtypeStruct: dtype is None; give the dtype")
        try:
            aval = ShapedArray(tuple(shape), np.dtype(dtype), weak_type)
        except (TypeError, ValueError) as error:
            raise type(error)(f"ShapeDtypeStruct: {error}, got shape {shape!r} and dtype {dtype!r}") from None
        self.shape = aval.shape
        self.dtype = aval.dtype
        self.weak_type = aval.weak_type
        self.sharding = sharding

    @classmethod
    def like(cls, x: object) -> ShapeDtypeStruct:
        """Describe an array or an object with a shape and a dtype; only committed arrays keep their sharding."""
        aval = shaped_abstractify(x)
        committed = getattr(x, "committed", True)
        return cls(aval.shape, aval.dtype, aval.weak_type, sharding=getattr(x, "sharding", None) if committed else None)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d shape")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.weak_type, self.sharding)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """Return a copy with some attributes changed."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return ShapeDtypeStruct(**(own | changes))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{place})"


types_of[ShapeDtypeStruct] = shaped_abstractify


def type_without_value(aval: ShapedArray) -> Any:
    """Convert an aval to a `ShapeDtypeStruct`; a value type, to a `Packed` of these."""
    if isinstance(aval, ValueType):
        return Packed(aval, tuple(map(type_without_value, aval.parts())))
    return ShapeDtypeStruct(aval.shape, aval.dtype, aval.weak_type, sharding=aval.explicit_sharding)
