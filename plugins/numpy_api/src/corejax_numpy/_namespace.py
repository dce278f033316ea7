"""Namespaces as tables: the module that has a name. It is imported when the name is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corejax.extend import remembered
from corejax.extend.plugins import exported, exported_names, missing_name


def lazy_names(
    namespace: str,
    modules: Mapping[str, str],
    names: dict[str, Any],
    composite: str = "",
    ufuncs: str = "",
    numbers: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a namespace.

    Args:
        namespace: below `corejax`, `"numpy"`.
        modules: by module of this package, the names that it has, separated by spaces; `abs=absolute` is the name `abs`
            for what the module calls `absolute`.
        names: the namespace's globals, with what needs no module; names that were used are kept there.
        composite: functions of many primitives, whose eager calls are remembered as programs.
        ufuncs: those of them that give the same bits as NumPy's ufunc of their name; after a colon the codes of the
            dtypes for which they do, if not all.
        numbers: those of them for which Python's floats are operands as arrays are, and nothing else.
    """
    homes: dict[str, tuple[str, str]] = {}
    for module, text in modules.items():
        for name in text.split():
            public, _, written = name.partition("=")
            homes[public] = (module, written or public)
    many = frozenset(homes[name] for name in composite.split())  # also under their other names
    exact = {homes[name]: (getattr(np, name), codes) for name, _, codes in (x.partition(":") for x in ufuncs.split())}
    takes_numbers = frozenset(homes[name] for name in numbers.split())
    whole: dict[tuple[str, str], Any] = {}
    public_names = sorted({*homes, *(n for n in names if not n.startswith("_") and n != "annotations")})

    def __getattr__(name: str) -> Any:
        home = homes.get(name)
        if home is not None:
            found = getattr(importlib.import_module(f"corejax_numpy.{home[0]}"), home[1])
            if home in many and home not in whole:
                ufunc, codes = exact.get(home, (None, ""))
                whole[home] = remembered(found, ufunc=ufunc, ufunc_of=codes, numbers=home in takes_numbers)
                whole[home].__module__ = f"corejax.{namespace}"  # where it is found again when it is unpickled
            found = whole.get(home, found)
        elif name.startswith("_"):  # never exported by a plugin
            raise AttributeError(f"module 'corejax.{namespace}' has no attribute {name!r}")
        else:
            found = exported(f"{namespace}.{name}")
        if found is None and home is None:
            raise missing_name(f"{namespace}.{name}")
        names[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*public_names, *exported_names(namespace), *(n for n in names if n.startswith("__"))})

    return __getattr__, __dir__, public_names
