"""The parameter of callback primitives: the user's function, from arrays as operands to checked arrays as results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    ShapedArray,
    check_arguments,
    config,
    dtypes,
    fun_name,
    host_value,
    is_array_like,
    leaf_names,
    tree,
)
from corejax.extend.messages import note_origin
from corejax.extend.transforms import replayed_source, replaying
from corejax.extend.types import Packed, ValueType

# NumPy gives Python numbers and reductions 64-bit dtypes without being asked, so a callback's results are narrowed.
_NARROWED = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
_PYTHON_NUMBERS = {bool: "b", int: "iufc", float: "fc", complex: "c"}  # type -> kinds of dtypes that take it


class HostFunction:
    """A Python function of pytrees as a static parameter, compared by the function and the structure of its arguments.

    Attributes:
        fun: the user's function.
        in_tree: structure of its `(args, kwargs)`.
        fixed: pairs of position and value for the leaves of the arguments that are not arrays.
        result: structure that the result must have; None if the result is ignored.
        api: name of the public function that received `fun`, for messages.
        name: name of `fun`, for messages.
    """

    __slots__ = ("_hash", "api", "fixed", "fun", "in_tree", "name", "result")

    def __init__(
        self,
        api: str,
        fun: Callable[..., Any],
        in_tree: Any,
        fixed: Sequence[tuple[int, Any]] = (),
        result: Structure | None = None,
    ) -> None:
        self.api = api
        self.fun = fun
        self.in_tree = in_tree
        self.fixed = tuple(fixed)
        self.result = result
        self.name = fun_name(fun)
        self._hash: int | None = None  # cached, because each call of a program hashes its parameters

    @property
    def _key(self) -> tuple[Any, ...]:
        fixed = tuple((i, _Hashable(x)) for i, x in self.fixed)
        structures = (self.in_tree, *(self.result or ()))  # these hold metadata of the user's nodes
        return (self.api, _Hashable(self.fun), tuple(map(_Hashable, structures)), fixed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostFunction) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._key)
        return self._hash

    @property
    def __name__(self) -> str:  # the printer of programs shows it
        return self.name

    def __repr__(self) -> str:
        return f"<callback {self.name}>"

    def run(self, primitive: Primitive, arrays: Sequence[Array], avals: Sequence[ShapedArray] = ()) -> list[Any]:
        """Call the function and check its result.

        Args:
            primitive: the primitive that is evaluated, for messages.
            arrays: the leaves of the function's arguments that are arrays.
            avals: the types of the result's leaves.

        Returns:
            The result's leaves as NumPy arrays of these types; an empty list if the result is ignored.

        Raises:
            TypeError: the result has the wrong structure, shape or dtype.
            BaseException: an exception of the function, with its name and the user's line in a note.
        """
        source = replayed_source()
        try:
            with replaying(None):  # operations inside the function report their own lines
                out = self(*arrays)
                return [] if self.result is None else checked_results(self, self.result, avals, out)
        except BaseException as error:
            note_origin(error, primitive, self.description(), source)
            raise

    def description(self) -> str:
        """Return a description for messages."""
        return f"the callback {self.name!r} of {self.api}"

    def __call__(self, *arrays: Array) -> Any:
        """Call the user's function with arrays, and the fixed values, as leaves of its arguments."""
        leaves: list[Any] = list(arrays)
        for i, value in self.fixed:  # in ascending order
            leaves.insert(i, value)
        args, kwargs = tree.tree_unflatten(self.in_tree, leaves)
        return self.fun(*args, **kwargs)


class _Hashable:
    """A value that is compared by `==` if it is hashable, else by identity."""

    __slots__ = ("hash", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self.hash = hash(value)
        except Exception:
            self.hash = 0

    def __eq__(self, other: Any) -> bool:
        if self.value is other.value:
            return True
        return bool(self.hash and self.hash == other.hash and _equal(self.value, other.value))

    def __hash__(self) -> int:
        return self.hash


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def host_function(
    api: str, fun: Any, result_shape_dtypes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sharding: Any = None
) -> tuple[HostFunction, list[Any], tuple[ShapedArray, ...]]:
    """Convert a user's function and its arguments, pytrees of arrays, to the parameter and operands of a primitive.

    Args:
        api: name of the public function, for messages.
        fun: the user's function.
        result_shape_dtypes: pytree of the result's types.
        args: positional arguments.
        kwargs: keyword arguments.
        sharding: None or a sharding on a single device.

    Returns:
        The parameter, the operands and the avals of the results.

    Raises:
        TypeError: `fun` is not callable, an argument is not an array, or a result type lacks a shape or dtype.
        NotImplementedError: the sharding is not on a single device.
    """
    if sharding is not None and len(getattr(sharding, "device_set", ())) != 1:
        raise NotImplementedError(f"{api}: sharding must be None or on a single device, got {sharding!r}")
    check_callable(api, fun)
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    check_arguments(api, fun, leaves, functools.partial(_argument_names, in_tree))
    avals, result = _result_types(api, result_shape_dtypes)
    return HostFunction(api, fun, in_tree, result=result), leaves, avals


def check_callable(api: str, fun: Any) -> None:
    """Raise TypeError if the callback is not callable."""
    if not callable(fun):
        raise TypeError(f"{api}: the callback must be a function, got {fun!r} of type {type(fun).__name__}")


def _argument_names(in_tree: Any) -> list[str]:
    """Return names such as `args[0]['w']` for the leaves of the arguments."""
    return [("args" if name.startswith("[0]") else "kwargs") + name[3:] for name in leaf_names(in_tree)]


# -- results -----------------------------------------------------------------------------------------------------------


class Structure(NamedTuple):
    """The structure of a callback's result.

    Attributes:
        out_tree: the structure of `result_shape_dtypes`.
        without_lists: the same structure with tuples in place of lists.
    """

    out_tree: Any
    without_lists: Any


def _result_types(api: str, result_shape_dtypes: Any) -> tuple[tuple[ShapedArray, ...], Structure]:
    leaves, out_tree = tree.tree_flatten(result_shape_dtypes)
    for leaf in leaves:
        if isinstance(leaf, type) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
            raise TypeError(
                f"{api}: result_shape_dtypes is a pytree of objects with shape and dtype, such as "
                f"ShapeDtypeStruct((3,), 'float32'), or None if there is no result; got {leaf!r} of type "
                f"{type(leaf).__name__}"
            )
        if dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype:
            raise ValueError(
                f"{api}: result_shape_dtypes cannot specify 64-bit types under x64_compat, got {leaf.dtype}; cast the "
                "result in the callback"
            )
    avals = tuple(map(_result_type, leaves))
    return avals, Structure(out_tree, tree.tree_structure(_with_tuples(result_shape_dtypes)))


def _result_type(leaf: Any) -> ShapedArray:
    aval = leaf if isinstance(leaf, ValueType) else getattr(leaf, "aval", None)
    return aval if isinstance(aval, ValueType) else ShapedArray(tuple(leaf.shape), leaf.dtype)


def _with_tuples(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple(map(_with_tuples, value))
    return {key: _with_tuples(x) for key, x in value.items()} if type(value) is dict else value


def checked_results(callback: HostFunction, expected: Structure, avals: Sequence[ShapedArray], out: Any) -> list[Any]:
    """Convert a callback's result to NumPy arrays of the types `avals`.

    Python numbers take the declared dtype. NumPy's 64-bit results are narrowed if a 32-bit dtype is declared, unless
    64 bits are the default (`config.default_dtype_bits`).

    Raises:
        TypeError: the result has the wrong structure, shape or dtype.
    """
    leaves, structure = tree.tree_flatten(out)
    if structure != expected.out_tree and (leaves or avals):
        leaves, structure = tree.tree_flatten(_with_tuples(out))
        if structure != expected.without_lists:
            raise TypeError(
                f"{callback.api}: the callback {callback.name!r} returned a result of the structure "
                f"{tree.tree_structure(out)}, but result_shape_dtypes has {expected.out_tree}"
            )
    results = [_as_type(leaf, aval) for leaf, aval in zip(leaves, avals, strict=True)]
    for i, (leaf, array, aval) in enumerate(zip(leaves, results, avals, strict=True)):
        if array is None:
            name = leaf_names(expected.out_tree, "result")[i]
            raise TypeError(
                f"{callback.api}: the callback {callback.name!r} returned {_shown(leaf)} as {name}, but "
                f"result_shape_dtypes has {aval.str_short(short_dtypes=False)}"
            )
    return results


def _as_type(leaf: Any, aval: ShapedArray) -> Any:
    """Return a leaf as an array of a type, or None if it has another type."""
    if isinstance(aval, ValueType) or type(leaf) is Packed:
        return leaf if getattr(leaf, "aval", None) is aval else None
    kinds = _PYTHON_NUMBERS.get(type(leaf))
    if kinds is not None:
        if aval.shape or _kind(aval.dtype) not in kinds:
            return None
        try:
            return np.asarray(leaf, aval.dtype)
        except OverflowError:
            return None
    array = np.asarray(host_value(leaf) if is_array_like(leaf) else leaf)
    if array.dtype != aval.dtype and config.default_dtype_bits == 32 and _NARROWED.get(array.dtype.name) == aval.dtype:
        array = array.astype(aval.dtype)
    return array if (array.shape, array.dtype) == (aval.shape, aval.dtype) else None


def _kind(dtype: np.dtype[Any]) -> str:
    if dtypes.is_bool(dtype):
        return "b"
    if dtypes.is_integer(dtype):
        return "u" if dtypes.is_unsigned(dtype) else "i"
    return "c" if dtypes.is_complex(dtype) else "f"


def _shown(leaf: Any) -> str:
    if type(leaf) is Packed:
        return f"a value of type {leaf.aval.str_short()}"
    array = np.asarray(leaf)
    if type(leaf) in _PYTHON_NUMBERS or array.dtype.kind not in "biufcV":
        return f"{leaf!r} of type {type(leaf).__name__}"
    return f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
