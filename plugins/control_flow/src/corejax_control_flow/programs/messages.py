"""Formatting of functions and types for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import DebugInfo, ShapedArray, config, dtypes, fun_name, get_aval, tree


def place(fun: Any) -> str:
    """Format a function with the line of its definition: `f at file.py:3`."""
    location = DebugInfo(fun, "").location
    return f"{fun_name(fun)} at {location}" if location else fun_name(fun)


def check_functions(name: str, **functions: Any) -> None:
    """Raise TypeError if an argument of the function `name` is not callable."""
    for what, fun in functions.items():
        if not callable(fun):
            raise TypeError(f"{name}: {what} must be a function, got {fun!r} of type {type(fun).__name__}")


def shown(aval: ShapedArray) -> str:
    """Format a type for messages: `float32[3]`."""
    return aval.str_short(short_dtypes=False)


def whence_wide(first: ShapedArray, second: ShapedArray) -> str:
    """Return advice on where 64 bits come from, if two types differ only in width and 32 bits are the default."""
    wide, narrow = sorted((first.dtype, second.dtype), key=lambda dtype: -dtype.itemsize)
    if dtypes.is_extended(wide) or config.default_dtype_bits == 64 or wide.kind != narrow.kind:
        return ""
    if (wide.itemsize, narrow.itemsize) != {"f": (8, 4), "c": (16, 8), "i": (8, 4)}.get(wide.kind):
        return ""
    return (
        f"\n  {wide.name} is the default of NumPy's arrays and scalars (np.linspace, np.sqrt(2)): cast them to "
        f"{narrow.name}, or set config.x64_compat, which converts all of them"
    )


def shown_types(avals: Sequence[ShapedArray]) -> str:
    """Format types for errors about an equation: `(f32[3], i32[])`."""
    return f"({', '.join(a.str_short() for a in avals)})"


class _Type:
    """A leaf's type, printed without quotes inside a pytree."""

    def __init__(self, aval: ShapedArray | None, text: str = "") -> None:
        self.text = text if aval is None else shown(aval)

    def __repr__(self) -> str:
        return self.text


def typed_tree(treedef: Any, avals: Sequence[ShapedArray]) -> str:
    """Format a pytree with types for leaves: `(float32[3], {'n': int32[]})`."""
    return repr(tree.tree_unflatten(treedef, [_Type(a) for a in avals]))


def typed_value(value: Any) -> str:
    """Format a pytree with types for leaves; a leaf that is not an array shows the name of its class."""

    def typed(x: Any) -> _Type:
        try:
            return _Type(get_aval(x))
        except TypeError:
            return _Type(None, type(x).__name__)

    return repr(tree.tree_map(typed, value))


def structural_difference(name: str, first: Any, second: Any) -> str:
    """Describe the first difference of two structures: `at carry['a']: tuple of 2 against list of 2`."""
    errors = tree.equality_errors(first, second, name=name)
    return errors[0] if errors else ""
