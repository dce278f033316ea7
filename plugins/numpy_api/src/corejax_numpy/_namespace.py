"""Lazy namespaces: tables of names, and which functions are compiled when they are called eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import remembered
from corejax_lax_basic import lax


def lazy_names(
    namespace: str,
    modules: Mapping[str, str],
    names: dict[str, Any],
    composite: str = "",
    ufuncs: str = "",
    numbers: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a namespace.

    Args:
        namespace: the name below `corejax`, such as `"numpy"`.
        modules: the names that each module provides, as for `lax.lazy_names`.
        names: the globals of the namespace.
        composite: functions of many primitives. Their eager calls are traced once and cached as programs.
        ufuncs: the composite functions that return the same bits as NumPy's ufunc of their name. The type codes after
            a colon are the dtypes for which this holds, if not all.
        numbers: the composite functions that use a Python float only as an operand, so that its value need not be
            part of the cache key.
    """
    words = [name.partition("=") for text in modules.values() for name in text.split()]
    definitions = {public: own or public for public, _, own in words}
    # A definition is composite under all its public names.
    composites = {definitions[name] for name in composite.split()}
    exact = {
        definitions[name]: (getattr(np, name), codes) for name, _, codes in (x.partition(":") for x in ufuncs.split())
    }
    takes_numbers = {definitions[name] for name in numbers.split()}
    wrapped: dict[str, Any] = {}

    def prepare(home: tuple[str, str], function: Any) -> Any:
        name = home[1]
        if name in composites and name not in wrapped:
            ufunc, codes = exact.get(name, (None, ""))
            wrapped[name] = remembered(function, ufunc=ufunc, ufunc_of=codes, numbers=name in takes_numbers)
            # Unpickling imports the function from this module.
            wrapped[name].__module__ = f"corejax.{namespace}"
        return wrapped.get(name, function)

    functions: tuple[Callable[[str], Any], Callable[[], list[str]], list[str]] = lax.lazy_names(
        namespace, "corejax_numpy", modules, names, prepare=prepare
    )
    return functions
