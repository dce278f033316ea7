"""What is public: the namespaces of corejax with whatever plugins are installed, and the names in them."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import corejax
from corejax import plugins
from corejax.extend import Primitive

KERNEL_MODULES = (
    "tree",
    "tree_util",
    "errors",
    "dtypes",
    "typing",
    "extend",
)  # of the facade; plugins export the others
WITHOUT_LIST = ("errors", "dtypes", "custom_batching", "custom_derivatives")  # what their files define


class Public(NamedTuple):
    """A public name.

    Attributes:
        namespace: "numpy.linalg", say; empty for `corejax` itself.
        name: the name in it.
        value: what it is.
        kind: one of "function", "class", "exception", "primitive", "dtype", "object" (one that has methods: `config`)
            and "constant".
    """

    namespace: str
    name: str
    value: Any
    kind: str

    @property
    def path(self) -> str:
        """The name as one writes it: `corejax.numpy.sin`."""
        return ".".join(part for part in ("corejax", self.namespace, self.name) if part)


def kind_of(value: Any) -> str:
    """Return the kind of a value, such as "class"; callables that are not classes count as functions."""
    if isinstance(value, Primitive):
        return "primitive"
    if type(value).__name__ == "ScalarType" or isinstance(value, np.dtype):
        return "dtype"
    if inspect.isclass(value) and value is not Any and not isinstance(value, types.GenericAlias):
        if issubclass(value, BaseException):
            return "exception"
        return "dtype" if issubclass(value, np.generic) and value.__module__ == "numpy" else "class"
    if callable(value) and value is not Any and not isinstance(value, (types.UnionType, types.GenericAlias)):
        return "function"
    return "object" if type(value).__module__.startswith("corejax") and methods(value) else "constant"


def methods(value: Any) -> list[str]:
    """Return the names of the public methods of an object."""
    return [name for name in dir(value) if not name.startswith("_") and inspect.isroutine(getattr(value, name))]


def resolve(namespace: str) -> Any:
    """Return the module `corejax.NAMESPACE`, or `corejax` for the empty name."""
    found: Any = corejax
    for part in namespace.split(".") if namespace else ():
        found = getattr(found, part)
    return found


def is_namespace(value: Any) -> bool:
    """Return whether a value is a module with a file or with submodules; those of `scipy.stats` have neither."""
    return isinstance(value, types.ModuleType) and ("__file__" in vars(value) or "__path__" in vars(value))


def _facade() -> set[str]:
    """Names of `corejax` itself: what it imports by name, but for the modules that it is made of."""
    own = {name for name in dir(corejax) if not isinstance(getattr(corejax, name), types.ModuleType)}
    return own.union(KERNEL_MODULES) - {"annotations"}


def _own(namespace: str, module: Any) -> set[str]:
    """Return the names in the module's `__all__`, or what its package defines if the module has no such list."""
    if namespace == "":
        return _facade()
    if namespace not in WITHOUT_LIST:
        return set(getattr(module, "__all__", ()))
    own = module.__name__ if module.__name__.startswith("corejax.") else module.__name__.partition(".")[0]
    return {name for name, value in vars(module).items() if str(getattr(value, "__module__", "")).startswith(own)}


def _listed(namespace: str, module: Any) -> set[str]:
    """Return the public names of a module, and the names that plugins export into it."""
    prefix = f"{namespace}." if namespace else ""
    offered = (name.removeprefix(prefix) for name in plugins.manager().offered() if name.startswith(prefix))
    names = _own(namespace, module).union(name.partition(".")[0] for name in offered)
    return {name for name in names if name.isidentifier() and not name.startswith("_")}


def names_of(namespace: str) -> list[Public]:
    """Return the public names of a namespace, without namespaces inside it, in alphabetical order."""
    module = resolve(namespace)
    found = ((name, getattr(module, name)) for name in sorted(_listed(namespace, module), key=str.lower))
    return [Public(namespace, name, value, kind_of(value)) for name, value in found if not is_namespace(value)]


def _inside(namespace: str) -> Iterator[str]:
    module = resolve(namespace)
    for name in sorted(_listed(namespace, module)):
        if is_namespace(getattr(module, name)):
            yield f"{namespace}.{name}" if namespace else name


@functools.cache
def namespaces() -> list[str]:
    """All of them in alphabetical order, the facade ("") first; of a module with two names the shorter one."""
    found, level = {id(corejax): ""}, [""]
    while level:
        level = [inner for namespace in level for inner in _inside(namespace) if id(resolve(inner)) not in found]
        found.update((id(resolve(namespace)), namespace) for namespace in reversed(level))
    return sorted(found.values())


@functools.cache
def originals() -> dict[int, Public]:
    """By identity of functions and classes, the first public name of each; its later names are aliases.

    The facade counts before all, `corejax.tree` before `corejax.tree_util`; in a namespace the name that is its own
    (`__name__`) before others, but in `corejax.tree` the short ones before JAX's older ones (`tree_map`).
    """

    def rank(public: Public) -> tuple[bool, bool]:
        return public.name.startswith("tree_"), getattr(public.value, "__name__", None) != public.name

    found: dict[int, Public] = {}
    for namespace in namespaces():
        for public in sorted(names_of(namespace), key=rank):
            if public.kind in ("function", "class", "exception", "primitive") and not isinstance(
                public.value, enum.Enum
            ):
                found.setdefault(id(public.value), public)
    return found
