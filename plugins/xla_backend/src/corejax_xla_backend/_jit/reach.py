"""The digest of what the trace of a function depends on: its code, and the code and values that it reaches by name."""

from __future__ import annotations

import dis
import enum
import functools
import io
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Generic

import numpy as np

from corejax.extend import Array, Primitive, Tracer, tree
from corejax_xla_backend._xla.digests import sha256

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...))
_WRAPPERS = {property: "fget", functools.cached_property: "func", staticmethod: "__func__", classmethod: "__func__"}


class UnseenError(Exception):
    """The function reaches something that has no digest; the message is a clause that names it."""


def digest_of(**parts: Any) -> str:
    """Return a digest of values, and of everything that functions and classes among them reach.

    Raises:
        UnseenError: a value has no digest.
    """
    reach = _Reach()
    reach.write(*installed_distributions())
    for name, value in parts.items():
        reach.add(value, name)
    return reach.digest.hexdigest()  # type: ignore[no-any-return]  # hashlib's


@cache
def installed_distributions() -> tuple[str, ...]:
    """Return the names and versions of all distributions in the folders that modules are imported from."""
    names = {entry for path in sys.path if os.path.isdir(path) for entry in os.listdir(path)}
    return sys.version, *sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))


@cache
def _is_installed(filename: str, module: str) -> bool:
    """Return whether a module belongs to Python, corejax or an installed distribution, which its version identifies."""
    top = module.partition(".")[0]
    if top == "corejax" or top.startswith("corejax_") or top in sys.stdlib_module_names:
        return True
    paths = sysconfig.get_paths()
    folders = [*(paths[name] for name in ("stdlib", "purelib", "platlib")), *sys.path]
    folders = [path for path in folders if path in paths.values() or path.endswith(("site-packages", "dist-packages"))]
    return any(filename.startswith(os.path.join(folder, "")) for folder in folders)


def _file_of(module: types.ModuleType) -> str | None:
    """Return the source file of a user's module; None for an installed one.

    Raises:
        UnseenError: the module has no source file.
    """
    filename = getattr(module, "__file__", None) or ""
    if _is_installed(filename, module.__name__) or module.__name__ in sys.builtin_module_names:
        return None
    if not filename.endswith(".py"):
        if hasattr(module, "__path__") and not filename:
            return None  # a folder without __init__.py has no code
        raise UnseenError(f"the module {module.__name__} has no source file")
    return filename


class _Reach:
    """A digest, and what has been added to it."""

    def __init__(self) -> None:
        self.digest = sha256()
        self._numbers: dict[Any, int] = {}
        self._alive: list[Any] = []  # keeps the ids in `_numbers` valid

    def write(self, *words: Any) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode("utf-8", "backslashreplace")
            self.digest.update(len(data).to_bytes(8, "little") + data)

    def _is_new(self, key: Any) -> bool:
        """Return whether a key is added for the first time; otherwise write its number."""
        count = len(self._numbers)
        number = self._numbers.setdefault(key, count)
        if number != count:
            self.write("again", number)
        return number == count

    def add(self, value: Any, what: str) -> None:
        """Add a value; `what` names it in the error."""
        kind = type(value)
        self.write(kind.__name__)
        if kind in _PLAIN:
            self.write(repr(value))
        elif isinstance(value, Tracer):
            raise UnseenError(f"{what} is a traced value")
        elif isinstance(value, np.dtype):
            self.write(value.name, value.str)
        elif isinstance(value, np.ndarray | np.generic | Array):
            if getattr(value, "dtype", None) is None or value.dtype.hasobject or value.dtype.names:
                raise UnseenError(f"{what} is an array of {value.dtype}")
            self._array(value, what)
        elif self._is_new(id(value)):
            self._alive.append(value)
            self._object(value, kind, what)

    def _array(self, value: Any, what: str) -> None:
        aval = getattr(value, "aval", None)
        if aval is not None and aval.refinement is not None:
            raise UnseenError(f"{what} is an array over several devices")
        data = np.asarray(value)
        self.write(data.dtype.name, data.shape, getattr(value, "weak_type", None), data.tobytes())

    def _object(self, value: Any, kind: type, what: str) -> None:
        if isinstance(value, types.ModuleType):
            self._module(value)
        elif hasattr(value, "_compilation") or kind is type(cache(_codes)):  # a jitted function or a cached one
            self.add(value.__wrapped__, what)
        elif self._is_importable(value):
            self.write(value.__module__, value.__qualname__)
        elif isinstance(value, types.FunctionType):
            self._function(value, what)
        elif isinstance(value, types.MethodType):
            self._all((value.__func__, value.__self__), what)
        elif isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType):
            self.write(value.__qualname__)
            self.add(getattr(value, "__self__", None), what)
        elif kind is functools.partial:
            self._all((value.func, value.args, value.keywords), what)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, enum.Enum):
            self.add(kind, what)
            self.write(value.name)
        elif isinstance(value, Primitive):
            self.write(value.name)
        elif isinstance(value, tuple | list):
            self.add(kind, what) if kind not in (tuple, list) else None
            self._all(value, what)
        elif kind in (set, frozenset):
            self._all(sorted(value, key=repr), what)
        elif isinstance(value, dict | types.MappingProxyType):
            self._all([x for item in value.items() for x in item], what)
        elif kind is type(tree.tree_structure(0)):
            self._all((*(value.node_data() or ()), value.num_leaves, *value.children()), what)
        elif _is_python(kind):
            self.add(kind, what)
            for name, x in _attributes(value).items():
                self.write(name)
                self.add(x, f"{what}.{name}")
        else:
            raise UnseenError(f"{what} is of type {kind.__module__}.{kind.__qualname__}, which has no digest")

    def _all(self, values: Any, what: str) -> None:
        self.write(len(values))
        for x in values:
            self.add(x, what)

    def _is_importable(self, value: Any) -> bool:
        """Return whether a function, class or the like is a global of an installed module."""
        name = getattr(value, "__qualname__", None)
        module = sys.modules.get(str(getattr(value, "__module__", None)))
        if module is None or not isinstance(name, str):
            return False
        if not _is_installed(getattr(module, "__file__", None) or "", module.__name__):
            return False
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        return found is value

    # -- code --------------------------------------------------------------------------------------

    def _module(self, module: types.ModuleType) -> None:
        """Add the source of a module, and of the modules that it imports."""
        self.write(module.__name__)
        filename = _file_of(module)
        if filename is None:
            return
        with open(filename, "rb") as file:
            self.write(file.read())
        for value in list(vars(module).values()):
            imported = value if isinstance(value, types.ModuleType) else None
            if isinstance(value, types.FunctionType | type):
                imported = sys.modules.get(value.__module__)
            if imported is not None and _file_of(imported) is not None:
                self.add(imported, imported.__name__)

    def _function(self, fun: types.FunctionType, what: str) -> None:
        """Add a function: code, closure, defaults, and the globals that its code names."""
        module = str(fun.__globals__.get("__name__"))
        self.write(module, fun.__qualname__)
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            try:
                self.add(cell.cell_contents, f"the closure variable {name!r} of {fun.__qualname__}")
            except ValueError:  # the cell is empty
                self.write("empty")
        self._all(
            (fun.__defaults__, fun.__kwdefaults__, getattr(fun, "__wrapped__", None)),
            f"a default of {fun.__qualname__}",
        )
        if _is_installed(fun.__code__.co_filename, module):
            return
        if module == "__main__" or not (module in sys.modules or fun.__code__.co_filename.startswith("<")):
            raise UnseenError(f"{fun.__qualname__} is defined in {module}, not in a module file")
        self.add(sys.modules.get(module), module)  # code that a library generates has no module
        names: set[str] = set()
        for code in _codes(fun.__code__):
            self.write(code.co_name, code.co_code, code.co_names, code.co_varnames)
            self._all([x for x in code.co_consts if not isinstance(x, types.CodeType)], what)
            names |= set(code.co_names)
            self._imports(code, fun)
        self._globals(fun.__globals__, sorted(names), module)

    def _imports(self, code: types.CodeType, fun: types.FunctionType) -> None:
        """Raise UnseenError if a function imports a module that is not installed."""
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME":
                module = sys.modules.get(instruction.argval)
                if module is None or _file_of(module) is not None:
                    raise UnseenError(f"{fun.__qualname__} imports {instruction.argval!r} in its body")

    def _globals(self, variables: dict[str, Any], names: list[str], module: str) -> None:
        """Add the values of global names, and those of the user's modules among them."""
        for name in names:
            if name in variables:
                value = variables[name]
                self.write(name)
                self.add(value, f"the global {name!r} of {module}")
                if isinstance(value, types.ModuleType) and _file_of(value) is not None:
                    key = ("globals", value.__name__, *names)
                    if self._is_new(key):
                        self._globals(vars(value), names, value.__name__)

    def _class(self, cls: type) -> None:
        """Add the functions and values of a class and its bases."""
        for base in cls.__mro__:
            self.write(base.__module__, base.__qualname__)
            module = sys.modules.get(base.__module__)
            if module is None or _file_of(module) is None:
                continue
            if base.__module__ == "__main__":
                raise UnseenError(f"the class {base.__qualname__} is defined in __main__, not in a module file")
            self.add(module, base.__module__)
            for name, x in vars(base).items():
                x = getattr(x, _WRAPPERS[type(x)]) if type(x) in _WRAPPERS else x
                is_value = not name.startswith("_") and not hasattr(x, "__get__")
                if isinstance(x, types.FunctionType) or is_value:
                    self.write(name)
                    self.add(x, f"{base.__qualname__}.{name}")


_HEAP = 1 << 9  # the flag of classes that a class statement made, among others


def _is_python(cls: type) -> bool:
    """Return whether all attributes of a class's instances are in `__dict__` and `__slots__`."""
    bases = [base for base in cls.__mro__ if base not in (object, Generic)]  # written in C since Python 3.12
    return not issubclass(cls, io.IOBase) and all(
        base.__flags__ & _HEAP and not {"__dict__", "__slots__"}.isdisjoint(dir(base)) for base in bases
    )


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance by name."""
    slots = [vars(base).get("__slots__", ()) for base in type(value).__mro__]
    names = [name for each in slots for name in ((each,) if isinstance(each, str) else each)]
    named = {name: getattr(value, name) for name in names if name[:2] != "__" and hasattr(value, name)}
    return named | getattr(value, "__dict__", {})


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object and those inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)
