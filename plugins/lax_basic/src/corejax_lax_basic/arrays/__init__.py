"""What arrays and tracers can do by themselves, with NumPy's meaning.

Python's operators, NumPy's methods and properties, indexing with brackets.
"""

from __future__ import annotations

_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert")

# A mapping of methods: the names that are in it.
PLACES = {
    "indexing:METHODS": ("__getitem__", "at"),
    "methods:METHODS": (
        *("T", "__round__", "astype", "clip", "conj", "conjugate", "copy", "dot", "flatten", "imag", "mT", "ravel"),
        *("real", "reshape", "round", "squeeze", "swapaxes", "transpose"),
    ),
    "operators:OPERATORS": tuple(f"__{name}__" for name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_OTHERS)),
    "reducing_methods:METHODS": (
        *("all", "any", "argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod", "std", "sum", "var"),
    ),
}
METHODS = {name: f"{__name__}.{place}" for place, names in PLACES.items() for name in names}
