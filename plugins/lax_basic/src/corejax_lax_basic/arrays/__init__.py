"""The operators, methods, properties and indexing of arrays and tracers, with NumPy's meaning."""

from __future__ import annotations

_BINARY = ("add", "sub", "mul", "truediv", "matmul", "and", "or", "xor")
_RARER = ("floordiv", "mod", "divmod", "pow", "lshift", "rshift")
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert")


def _methods(operators: tuple[str, ...], *others: str) -> tuple[str, ...]:
    return tuple(f"__{name}__" for name in (*operators, *(f"r{name}" for name in operators), *others))


# Mappings of methods, and the names that each of them defines.
PLACES = {
    "indexing:METHODS": ("__getitem__", "at"),
    "methods:METHODS": ("T", "astype", "conj", "conjugate", "copy", "imag", "mT", "real", "reshape", "transpose"),
    "operators:OPERATORS": _methods(_BINARY, *_OTHERS),
    "other_operators:OPERATORS": _methods(_RARER, "abs"),
}
METHODS = {name: f"{__name__}.{place}" for place, names in PLACES.items() for name in names}
