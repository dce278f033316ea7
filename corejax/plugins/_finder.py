"""Imports of `corejax.<namespace>`: the plugin's own module, under the facade's name too."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Collection, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager


class _AliasLoader:
    """Gives an already importable module to the import system; it keeps its own name and spec.

    Where the module has no `__dir__`, `dir` lists its `__all__`, or what is no module, not what it imports. Where it
    has no `__getattr__`, the error for a name that it lacks says what was meant, and what users call the module.
    A module with other plugins' namespaces inside (`lax.linalg` in `lax`) is a package to the import system.
    """

    def __init__(self, manager: Callable[[], PluginManager], name: str, target: str, has_inside: bool) -> None:
        self.manager = manager
        self.name = name
        self.target = target
        self.has_inside = has_inside
        self.spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
        if self.has_inside and not hasattr(module, "__path__"):
            module.__path__ = []
        if not self.has_inside and "__dir__" not in vars(module):
            module.__dir__ = lambda: sorted({*_public(module), *(n for n in vars(module) if n.startswith("__"))})  # type: ignore[method-assign]
        if "__getattr__" not in vars(module):
            module.__getattr__ = self.missing  # type: ignore[method-assign]

    def missing(self, attribute: str) -> Any:
        """For a name that the module does not have.

        Raises:
            PluginMissingError: always, or `AttributeError` for a private name.
        """
        if attribute.startswith("_"):
            raise AttributeError(f"module 'corejax.{self.name}' has no attribute {attribute!r}")
        from corejax.plugins._missing_names import missing_name  # needed for an error only

        importing = is_import_from(sys._getframe(1))
        raise missing_name(self.manager(), f"{self.name}.{attribute}", importing=importing)


def _public(module: ModuleType) -> list[str]:
    names = vars(module).get("__all__")
    if names is not None:
        return list(names)
    found = ((name, value) for name, value in vars(module).items() if not name.startswith("_"))
    return [name for name, value in found if not isinstance(value, ModuleType) and name != "annotations"]


class _InsideLoader:
    """Gives what a namespace has among its names and is a module, without a file of its own: `scipy.stats.norm`."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        return None


class _OuterLoader:
    """Makes the module around namespaces with a dot in their names: `corejax.experimental` of `experimental.checkify`.

    Its names are what plugins export inside it.
    """

    def __init__(self, manager: Callable[[], PluginManager], name: str) -> None:
        self.manager = manager
        self.name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        def get(attribute: str) -> Any:
            found = None if attribute.startswith("_") else self.manager().exported(f"{self.name}.{attribute}")
            if found is None:
                from corejax.plugins._missing_names import missing_name  # needed for an error only

                raise missing_name(self.manager(), f"{self.name}.{attribute}", importing=False)
            return found

        module.__doc__ = f"What plugins export as `corejax.{self.name}.<name>`."
        module.__getattr__ = get  # type: ignore[method-assign]
        module.__dir__ = self.names  # type: ignore[method-assign]

    def names(self) -> list[str]:
        """What is inside."""
        prefix = f"{self.name}."
        inside = {name.removeprefix(prefix) for name in self.manager().offered() if name.startswith(prefix)}
        return sorted(name for name in inside if "." not in name)


class NamespaceFinder:
    """A meta path finder for namespaces that plugins export, and for modules inside them.

    Args:
        manager: gives the plugin manager, which is not made before it is needed.
        kernel_modules: names of the kernel's own modules.
    """

    def __init__(self, manager: Callable[[], PluginManager], kernel_modules: Collection[str]) -> None:
        self.manager = manager
        self.kernel_modules = frozenset(kernel_modules)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The plugin's module for `corejax.<namespace>...`; None for anything else.

        Raises:
            PluginMissingImportError: the namespace belongs to a plugin that is not installed or switched off.
            PluginError: the plugin failed.
        """
        facade, _, name = fullname.partition(".")
        if facade != "corejax" or not name or name.partition(".")[0] in self.kernel_modules:
            return None
        manager = self.manager()
        if manager.may_export(name):
            manager.load()
        module = self._target(manager, name)
        if module is None and manager.has_inside(name):
            outer = _OuterLoader(self.manager, name)
            return importlib.machinery.ModuleSpec(fullname, outer, is_package=True)  # type: ignore[arg-type]
        if module is None:
            from corejax.plugins._missing_names import is_expected, missing_name  # needed for an error only

            if is_expected(manager, name):
                raise missing_name(manager, name, importing=True)
            return None
        if "." in name and not _exists(module):
            inside = _inside(module)
            if inside is None:
                return None  # so that the error names the module that was asked for
            return importlib.machinery.ModuleSpec(fullname, _InsideLoader(inside))  # type: ignore[arg-type]
        loader = _AliasLoader(self.manager, name, module, manager.has_namespace_inside(name))
        return importlib.machinery.ModuleSpec(fullname, loader)  # type: ignore[arg-type]

    def _target(self, manager: PluginManager, name: str) -> str | None:
        namespace, rest = name, ""
        while namespace:
            found = manager.namespaces.get(namespace)
            if found is not None:
                return found[0] + rest
            namespace, _, last = namespace.rpartition(".")
            rest = f".{last}{rest}"
        return None


def is_import_from(frame: FrameType) -> bool:
    """Whether a frame is executing `from module import name`, which hides an AttributeError's message."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _exists(module: str) -> bool:
    from importlib.util import find_spec

    return find_spec(module) is not None


def _inside(name: str) -> ModuleType | None:
    """The module that is an attribute of a module, and among its `__all__`."""
    parent, _, last = name.rpartition(".")
    around = sys.modules.get(parent)
    found = getattr(around, last, None) if last in getattr(around, "__all__", ()) else None
    return found if isinstance(found, ModuleType) else None


def install(manager: Callable[[], PluginManager], kernel_modules: Collection[str]) -> None:
    """Put the finder in front, so that a namespace's modules are never imported twice under two names."""
    if not any(isinstance(finder, NamespaceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, NamespaceFinder(manager, kernel_modules))
