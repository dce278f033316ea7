"""Traced functions, kept for the next time: a function that is called again on the same types is not traced again.

A kept program stands for its function as long as everything that the function refers to is unchanged: its code, its
defaults, what it closes over, the globals that its code names, and so on through the functions among these. Two kinds
of functions are traced each time. One refers to something that can be changed in place: a list, an array, an object
with attributes, a module that is not a library's. The other has a program with constants, which are arrays, or tracers
of a transformation around the call.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.extend import (
    Array,
    Primitive,
    axes_in_scope,
    clears_cache,
    config,
    host_value,
)

_LIMIT = 256  # programs kept
_MAX_PARTS = 200  # references followed before a function counts as too much to look at
_LIBRARIES = frozenset({"builtins", "corejax", "math", "numpy", "operator", "functools", "ml_dtypes"})
_ATOMS = frozenset({bool, int, str, bytes, type(None), type(...)})
_CONSTANT = (np.ufunc, Primitive, np.dtype)
_IMPORT = dis.opmap["IMPORT_NAME"]

_kept: OrderedDict[Any, tuple[list[Any], list[Any], Any]] = OrderedDict()
clears_cache(_kept.clear)


class _Changeable(Exception):
    """A function refers to something that can be changed in place."""


class _Parts:
    """What a function refers to.

    Attributes:
        objects: compared by identity.
        values: compared by value.
    """

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.values: list[Any] = []
        self._seen: set[int] = set()
        self._random = False

    def follow(self, fun: Any) -> None:
        """Follow all references from a function on. What uses numpy.random is different each time."""
        self.add(fun)
        if self._random and any(x is np for x in self.objects):
            raise _Changeable

    def add(self, x: Any) -> None:
        """Follow one reference."""
        kind = type(x)
        if len(self.objects) + len(self.values) > _MAX_PARTS:
            raise _Changeable
        if kind in _ATOMS:
            self.values.append((kind, x))
        elif kind is float or kind is complex or isinstance(x, np.generic):
            self.values.append((kind, np.asarray(x).tobytes()))
        elif kind is Array and x.aval.ndim == 0:
            self.values.append((x.aval, host_value(x).tobytes()))
        elif kind is types.FunctionType:
            self._add_function(x)
        elif kind is tuple:
            self.values.append(len(x))
            for item in x:
                self.add(item)
        elif kind is functools.partial:
            for item in (x.func, x.args, tuple(x.keywords), tuple(x.keywords.values())):
                self.add(item)
        elif isinstance(x, _CONSTANT) or _of_library(x):
            self.objects.append(x)
        else:
            raise _Changeable

    def _add_function(self, fun: types.FunctionType) -> None:
        if id(fun) in self._seen:
            return
        self._seen.add(id(fun))
        self.objects.append(fun.__code__)
        for cell in fun.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # not bound yet
                raise _Changeable from None
        self.add(fun.__defaults__)
        if fun.__kwdefaults__:
            self.add(tuple(fun.__kwdefaults__.items()))
        if _root(fun.__module__) in _LIBRARIES:  # a library's globals and attributes are what they were
            if "__wrapped__" in fun.__dict__:
                self.add(fun.__dict__["__wrapped__"])
            return
        if fun.__dict__:
            self.add(tuple(fun.__dict__.items()))
        names = _names(fun.__code__)
        if names is None:
            raise _Changeable
        self._random |= "random" in names
        for name in names:
            if name in fun.__globals__:
                self.values.append(name)
                self.add(fun.__globals__[name])


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> tuple[str, ...] | None:
    """Global names in a function's code and in the functions inside it; attributes' names are among them.

    None where the code imports a module, which may be anything.
    """
    names = set(code.co_names)
    if _IMPORT in code.co_code[::2]:
        return None
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            inner = _names(const)
            if inner is None:
                return None
            names.update(inner)
    return tuple(sorted(names))


def _root(module: Any) -> str:
    root = str(module).partition(".")[0]
    return "corejax" if root.startswith("corejax_") else root


def _of_library(x: Any) -> bool:
    """A module, class or builtin function of a library. It is taken to be unchanged."""
    if isinstance(x, types.BuiltinFunctionType):  # a method of an object is one too
        return x.__self__ is None or (isinstance(x.__self__, types.ModuleType) and _of_library(x.__self__))
    if isinstance(x, types.ModuleType):
        return _root(x.__name__) in _LIBRARIES
    return isinstance(x, type) and _root(x.__module__) in _LIBRARIES


def recorded(fun: Callable[..., Any], key: tuple[Any, ...], record: Callable[[], Any]) -> Any:
    """The result of `record`, or its earlier result for the same function and key.

    Args:
        fun: the function that is traced.
        key: what the program depends on beside the function: how it is traced, and on which types.
        record: traces it; its result has the attribute `consts`.
    """
    parts: _Parts | None = _Parts()
    try:
        parts.follow(fun)
    except _Changeable:
        parts = None
    if parts is None:
        return record()
    key = (getattr(fun, "__code__", None), *key, config.trace_key(), axes_in_scope())
    try:
        found = _kept.get(key)
    except TypeError:  # a structure with metadata that cannot be hashed
        return record()
    if found is not None and _same(found, parts):
        return found[2]
    made = record()
    if not made.consts:
        _kept[key] = (parts.objects, parts.values, made)
        with contextlib.suppress(KeyError):  # another thread cleared it
            while len(_kept) > _LIMIT:
                _kept.popitem(last=False)
    return made


def _same(found: tuple[list[Any], list[Any], Any], parts: _Parts) -> bool:
    objects, values, _ = found
    return (
        len(objects) == len(parts.objects)
        and all(a is b for a, b in zip(objects, parts.objects, strict=True))
        and values == parts.values
    )
