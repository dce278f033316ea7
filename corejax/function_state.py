"""What a function reads: its code, what it closes over, and globals that its code names; and so on, of functions there.

A state is a flat list, equal to another one where the function does the same for the same arguments. What can change
unseen (a generator, a file, a stream of random numbers, an object of C code) makes it unknown.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax.array import Array

State = list[Any]

_MOST = 4000  # entries of a state
MOST_BYTES = 1 << 20  # of arrays, which a state keeps, unless said otherwise
_COPIED = 4096  # bytes of a NumPy array, whose content is compared
_ABSENT = object()

# Packages whose functions depend on their arguments and settings alone.
_PURE = frozenset(
    {
        *("_collections", "_functools", "_operator", "abc", "builtins", "cmath", "collections", "copy", "dataclasses"),
        *("enum", "functools", "itertools", "jaxlib", "math", "ml_dtypes", "numbers", "numpy", "operator", "optree"),
        *("re", "types", "typing"),
    }
)
_NOT_PURE = ("numpy.random",)
_EFFECTS = frozenset(
    {
        *("__import__", "breakpoint", "compile", "delattr", "eval", "exec", "exit", "globals", "input", "locals"),
        *("open", "print", "quit", "setattr", "vars"),
    }
)
_NO_COMPUTATION = frozenset({"__repr__", "__del__", "_abc_impl"})
_BY_VALUE = frozenset({str, bytes, int, bool, type(None), type(...), type(NotImplemented), range})
_CONSTANTS: tuple[type, ...] = (
    enum.Enum,
    np.dtype,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    type(NamedTuple("_Point", [("x", int)]).x),  # type: ignore[attr-defined]
    np.ufunc,
)


class _Unknown(Exception):
    """Something that can change unseen."""


def state_of(
    fun: Callable[..., Any], *, most_bytes: int = MOST_BYTES, objects: bool = True, constants: tuple[type, ...] = ()
) -> State | None:
    """What a function reads now.

    Args:
        fun: the function.
        most_bytes: how large arrays are together that the state may keep.
        objects: whether it may read lists, dictionaries and objects of the user's, which the state keeps.
        constants: types of objects that are taken to be what they were.

    Returns:
        The state, for `same_state`; None where it is not known whether it changes.
    """
    found = _Reading(most_bytes, objects, (*_CONSTANTS, *constants))
    try:
        found.value(fun)
    except Exception:  # `_Unknown`, or what attributes of modules and objects raise
        return None
    return found.state


def same_state(a: State, b: State) -> bool:
    """Whether all is what it was: the same objects, or equal constants of one type."""
    return len(a) == len(b) and all(
        x is y or (type(x) is type(y) and type(x) in _BY_VALUE and x == y) for x, y in zip(a, b, strict=True)
    )


def _is_pure(module: Any) -> bool:
    if not isinstance(module, str) or module.startswith(_NOT_PURE):
        return False
    root = module.partition(".")[0]
    return root in _PURE or root == "corejax" or root.startswith("corejax_")


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_of_its_module(f: Any) -> bool:
    """Whether a function is what its module has under its name: nothing that was made of others."""
    return getattr(sys.modules.get(f.__module__), f.__qualname__, None) is f


class _Reading:
    """A state that is being written down."""

    def __init__(self, most_bytes: int, objects: bool, constants: tuple[type, ...]) -> None:
        self.state: State = []
        self._most_bytes, self._objects, self._constants = most_bytes, objects, constants
        self._places: dict[int, int] = {}  # of what is in it
        self._kept: list[Any] = []  # so that no id is that of another object
        self._bytes = 0

    def _add(self, *entries: Any) -> None:
        self.state.extend(entries)
        if len(self.state) > _MOST:
            raise _Unknown

    def _is_new(self, x: Any) -> bool:
        place = self._places.get(id(x))
        if place is not None:
            self._add("again", place)
            return False
        self._places[id(x)] = len(self.state)
        self._kept.append(x)
        return True

    def value(self, x: Any) -> None:
        """Write a value down.

        Raises:
            _Unknown: it can change unseen.
        """
        kind = type(x)
        write = _WRITERS.get(kind)
        if kind in _BY_VALUE:
            self._add(kind, x)
        elif write is not None:
            if self._is_new(x):
                write(self, x)
        elif isinstance(x, self._constants):
            self._add(x)
        elif isinstance(x, np.generic):
            self._add(kind, x.tobytes())
        elif isinstance(x, tuple):
            self.value(kind)
            self._elements(x)
        elif isinstance(x, type):
            if self._is_new(x):
                self._class(x)
        elif self._is_new(x):
            self._object(x)

    def _elements(self, x: Sequence[Any]) -> None:
        self._add(tuple, len(x))
        for element in x:
            self.value(element)

    def _float(self, x: float) -> None:
        self._add(float, x.hex())

    def _complex(self, x: complex) -> None:
        self._add(complex, x.real.hex(), x.imag.hex())

    def _add_object(self, x: Any) -> None:
        if not self._objects:
            raise _Unknown
        self._add(x)

    def _list(self, x: list[Any]) -> None:
        self._add_object(x)
        self._elements(x)

    def _dict(self, x: dict[Any, Any]) -> None:
        self._add_object(x)
        self._items(x)

    def _items(self, x: Any) -> None:
        self._add(dict, len(x))
        for key, value in list(x.items()):
            self.value(key)
            self.value(value)

    def _array(self, x: Array) -> None:
        self._bytes += x.nbytes
        if self._bytes > self._most_bytes:
            raise _Unknown
        self._add(x)

    def _numpy_array(self, x: np.ndarray[Any, Any]) -> None:
        if x.nbytes > _COPIED or x.dtype.hasobject:
            raise _Unknown
        self._add_object(x)
        self._add(x.dtype, x.tobytes())
        self._elements(x.shape)

    def _slice(self, x: slice) -> None:
        self._elements((x.start, x.stop, x.step))

    def _partial(self, x: functools.partial[Any]) -> None:
        self.value(x.func)
        self._elements(x.args)
        self._items(x.keywords)

    def _method(self, x: types.MethodType) -> None:
        self.value(x.__func__)
        self.value(x.__self__)

    def _module(self, x: types.ModuleType) -> None:
        if not _is_pure(x.__name__) or x is np:  # as a value, of which `random` may be asked for
            raise _Unknown
        self._add(x)

    def _built_in(self, x: Any) -> None:
        of = x.__self__
        if isinstance(of, types.ModuleType):
            self._module(of)
        elif of is not None and not isinstance(of, type):
            raise _Unknown
        self._add(x)

    def _function(self, f: types.FunctionType) -> None:
        pure = _is_pure(f.__globals__.get("__name__"))
        if pure and _is_of_its_module(f):
            self._add(f)
            return
        self._add(f.__code__)
        self._elements(f.__defaults__ or ())
        self._items(f.__kwdefaults__ or {})
        self._items({name: x for name, x in vars(f).items() if not _is_special(name)})
        for cell in f.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                content = _ABSENT
            self._add(_ABSENT) if content is _ABSENT else self.value(content)
        if not pure:
            for names in _names_read(f.__code__):
                self._named(f, names)

    def _named(self, f: types.FunctionType, names: tuple[str, ...]) -> None:
        """What a global is, or, where it is a module, what is in that under the names that follow."""
        first, *rest = names
        if first == "import":  # which names of it follow is not looked at
            raise _Unknown
        x = f.__globals__.get(first, _ABSENT)
        if x is _ABSENT:
            if first in _EFFECTS:
                raise _Unknown
            self._add(vars(builtins).get(first, _ABSENT))
            return
        pure = False
        while isinstance(x, types.ModuleType) and rest:
            pure = _is_pure(x.__name__)
            x = getattr(x, rest.pop(0), _ABSENT)
        if x is _ABSENT or (pure and not isinstance(x, types.ModuleType)):
            self._add(x)
        else:
            self.value(x)

    def _class(self, x: type) -> None:
        self._add(x)
        if _is_pure(x.__module__):
            return
        if not _is_pure(type(x).__module__):
            raise _Unknown
        for base in x.__bases__:
            self.value(base)
        for name, value in list(vars(x).items()):
            if name in _NO_COMPUTATION:
                continue
            if isinstance(value, (staticmethod, classmethod)):
                self.value(value.__func__)
            elif isinstance(value, property):
                self._elements((value.fget, value.fset))
            elif isinstance(value, types.FunctionType) or not _is_special(name):
                self.value(value)

    def _object(self, x: Any) -> None:
        """One of a class in Python, all of whose state is in its fields or its dictionary."""
        kind = type(x)
        frozen = vars(kind).get("__dataclass_params__")
        if frozen is not None and frozen.frozen and not hasattr(x, "__dict__"):
            self.value(kind)
            self._elements([getattr(x, name, None) for name in kind.__dataclass_fields__])
            return
        if kind.__name__ == "PjitFunction":
            self._add(x)
            self.value(x.__wrapped__)
            return
        fields = getattr(x, "__dict__", None)
        if kind.__basicsize__ > object.__basicsize__ + 16 or type(fields) is not dict or _is_pure(kind.__module__):
            raise _Unknown
        self._add_object(x)
        self.value(kind)
        self._items(fields)


_WRITERS: dict[type, Callable[[_Reading, Any], None]] = {
    float: _Reading._float,
    complex: _Reading._complex,
    slice: _Reading._slice,
    tuple: _Reading._elements,
    list: _Reading._list,
    dict: _Reading._dict,
    Array: _Reading._array,
    np.ndarray: _Reading._numpy_array,
    functools.partial: _Reading._partial,
    types.MethodType: _Reading._method,
    types.ModuleType: _Reading._module,
    types.BuiltinFunctionType: _Reading._built_in,
    types.FunctionType: _Reading._function,
}


_known_names: weakref.WeakKeyDictionary[types.CodeType, list[tuple[str, ...]]] = weakref.WeakKeyDictionary()


def _names_read(code: types.CodeType) -> list[tuple[str, ...]]:
    """Globals that a function's code reads, each with the attributes that it asks it for; and modules it imports.

    Raises:
        _Unknown: it assigns globals.
    """
    found = _known_names.get(code)
    if found is None:
        found = _known_names[code] = list(dict.fromkeys(_globals_of(code)))
    if ("global",) in found:
        raise _Unknown
    return found


_EXTENDED, _GLOBAL, _ATTRIBUTE, _IMPORT = (
    dis.opmap[name] for name in ("EXTENDED_ARG", "LOAD_GLOBAL", "LOAD_ATTR", "IMPORT_NAME")
)
_METHOD = dis.opmap.get("LOAD_METHOD", -1)  # until Python 3.11
_NOTHING, _BY_NAME, _STORES = (
    frozenset(dis.opmap[name] for name in names if name in dis.opmap)
    for names in (
        ("CACHE", "PUSH_NULL", "NOP"),
        ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"),
        ("STORE_GLOBAL", "DELETE_GLOBAL"),
    )
)
_FLAG_OF_ATTRIBUTES = int(sys.version_info >= (3, 12))  # the lowest bit of their index says that a method is called


def _globals_of(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    chain: tuple[str, ...] = ()
    names, raw, extended = code.co_names, code.co_code, 0
    for at in range(0, len(raw), 2):
        operation, argument = raw[at], raw[at + 1] | extended
        extended = argument << 8 if operation == _EXTENDED else 0
        if operation == _EXTENDED or operation in _NOTHING:
            continue
        if chain and operation in (_ATTRIBUTE, _METHOD):
            chain += (names[argument >> _FLAG_OF_ATTRIBUTES],)
            continue
        if chain:
            yield chain
            chain = ()
        if operation == _GLOBAL:
            chain = (names[argument >> 1],)
        elif operation in _BY_NAME:
            chain = (names[argument],)
        elif operation == _IMPORT:
            yield "import", names[argument]
        elif operation in _STORES:
            yield ("global",)
    if chain:
        yield chain
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)
