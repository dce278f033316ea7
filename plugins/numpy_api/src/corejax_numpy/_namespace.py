"""Namespaces as tables, with what the engine may remember of their functions."""

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
        namespace, modules, names: as of `lax.lazy_names`.
        composite: functions of many primitives, whose eager calls are remembered as programs.
        ufuncs: those of them that give the same bits as NumPy's ufunc of their name; after a colon the codes of the
            dtypes for which they do, if not all.
        numbers: those of them for which Python's floats are operands as arrays are, and nothing else.
    """
    words = [name.partition("=") for text in modules.values() for name in text.split()]
    written = {public: own or public for public, _, own in words}
    many = {written[name] for name in composite.split()}  # also under their other names
    exact = {written[name]: (getattr(np, name), codes) for name, _, codes in (x.partition(":") for x in ufuncs.split())}
    takes_numbers = {written[name] for name in numbers.split()}
    whole: dict[str, Any] = {}

    def prepare(home: tuple[str, str], found: Any) -> Any:
        name = home[1]
        if name in many and name not in whole:
            ufunc, codes = exact.get(name, (None, ""))
            whole[name] = remembered(found, ufunc=ufunc, ufunc_of=codes, numbers=name in takes_numbers)
            whole[name].__module__ = f"corejax.{namespace}"  # where it is found again when it is unpickled
        return whole.get(name, found)

    return lax.lazy_names(namespace, "corejax_numpy", modules, names, prepare=prepare)
