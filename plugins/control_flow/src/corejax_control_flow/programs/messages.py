"""Functions and types as messages write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.extend import DebugInfo, ShapedArray, config, dtypes, fun_name, get_aval, tree


def place(fun: Any) -> str:
    """A function with the line of its definition: `f at file.py:3`."""
    location = DebugInfo(fun, "").location
    return f"{fun_name(fun)} at {location}" if location else fun_name(fun)


def check_functions(name: str, **functions: Any) -> None:
    """Refuse arguments of `name` that are no functions.

    Raises:
        TypeError: one is not callable; names it.
    """
    for what, fun in functions.items():
        if not callable(fun):
            raise TypeError(f"{name}: {what} is a function, got {fun!r} of type {type(fun).__name__}")


def shown(aval: ShapedArray) -> str:
    """A type as messages write it: `float32[3]`."""
    return aval.str_short(short_dtypes=False)


def whence_wide(first: ShapedArray, second: ShapedArray) -> str:
    """A line on where 64 bits come from, if two types differ in their width alone and nobody asked for 64."""
    wide, narrow = sorted((first.dtype, second.dtype), key=lambda dtype: -dtype.itemsize)
    if dtypes.is_extended(wide) or config.default_dtype_bits == 64 or wide.kind != narrow.kind:
        return ""
    if (wide.itemsize, narrow.itemsize) != {"f": (8, 4), "c": (16, 8), "i": (8, 4)}.get(wide.kind):
        return ""
    return (
        f"\n  {wide.name} is what NumPy's arrays and scalars are (np.linspace, np.sqrt(2)): make them {narrow.name}, "
        "or set config.x64_compat, which takes all of them so"
    )


def shown_types(avals: Sequence[ShapedArray]) -> str:
    """Types as errors about an equation write them: `(f32[3], i32[])`."""
    return f"({', '.join(a.str_short() for a in avals)})"


class _Type:
    """A leaf's type, written as it is inside a printed pytree."""

    def __init__(self, aval: ShapedArray | None, text: str = "") -> None:
        self.text = text if aval is None else shown(aval)

    def __repr__(self) -> str:
        return self.text


def typed_tree(treedef: Any, avals: Sequence[ShapedArray]) -> str:
    """A pytree with types for leaves: `(float32[3], {'n': int32[]})`."""
    return repr(tree.tree_unflatten(treedef, [_Type(a) for a in avals]))


def typed_value(value: Any) -> str:
    """A pytree as `typed_tree` shows it; what is not an array is shown by the name of its class."""

    def typed(x: Any) -> _Type:
        try:
            return _Type(get_aval(x))
        except TypeError:
            return _Type(None, type(x).__name__)

    return repr(tree.tree_map(typed, value))


def structural_difference(name: str, first: Any, second: Any) -> str:
    """The first place where two structures differ: `at carry['a']: tuple of 2 against list of 2`."""
    found = tree.equality_errors(first, second, name=name)
    return found[0] if found else ""
