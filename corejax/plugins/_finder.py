"""The import of `corejax.<namespace>`: the finder makes a plugin's module an alias under the facade's name."""

from __future__ import annotations

import _imp
import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corejax.plugins._plugin_manager import PluginManager


class _Loader:
    """Load a module under a facade name. An alias keeps its own `__name__` and `__spec__`.

    A module without `__dir__` or `__getattr__` gets one: its `__all__`, or its public names that are not modules, and
    the names that plugins export inside it.
    """

    def __init__(self, manager: Callable[[], PluginManager], name: str, make: Callable[[], ModuleType]) -> None:
        self.manager = manager
        self.name = name
        self.make = make
        self.spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self.make()
        self.spec = module.__spec__ or spec
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec
        if "__dir__" not in vars(module):
            names = lambda: sorted({*_public(module), *self.manager().names_inside(self.name)})  # noqa: E731
            module.__dir__ = names  # type: ignore[method-assign]  # as PEP 562 allows
        if "__getattr__" not in vars(module):
            module.__getattr__ = self.attribute  # type: ignore[method-assign]  # as PEP 562 allows

    def attribute(self, attribute: str) -> Any:
        """Return the object that a plugin exports inside the namespace.

        Raises:
            AttributeError: no plugin exports the name; an ImportError in `from module import name`.
        """
        if attribute.startswith("_"):
            raise AttributeError(f"module 'corejax.{self.name}' has no attribute {attribute!r}")
        value = self.manager().exported(f"{self.name}.{attribute}")
        if value is None:
            from corejax.plugins._missing_names import missing_name  # needed for an error only

            importing = is_import_from(sys._getframe(1))
            raise missing_name(self.manager(), f"{self.name}.{attribute}", importing=importing)
        return value


def _public(module: ModuleType) -> list[str]:
    names = vars(module).get("__all__")
    if names is not None:
        return list(names)
    public = ((name, value) for name, value in vars(module).items() if not name.startswith("_"))
    return [name for name, value in public if not isinstance(value, ModuleType) and name != "annotations"]


class NamespaceFinder:
    """A meta path finder for namespaces that plugins export, and for modules inside them.

    Args:
        manager: returns the plugin manager; called only if a namespace of a plugin is imported.
        kernel_modules: names of the kernel's own modules, which the finder ignores.
    """

    def __init__(self, manager: Callable[[], PluginManager], kernel_modules: Collection[str]) -> None:
        self.manager = manager
        self.kernel_modules = frozenset(kernel_modules)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the plugin's module for `corejax.<namespace>...`; None for anything else.

        Raises:
            PluginMissingImportError: the namespace belongs to a plugin that is not installed or is switched off.
            PluginError: the plugin failed.
        """
        facade, _, name = fullname.partition(".")
        if facade != "corejax" or not name or name.partition(".")[0] in self.kernel_modules:
            return None
        with _without_import_lock():
            return self._find(fullname, name)

    def _find(self, fullname: str, name: str) -> ModuleSpec | None:
        manager = self.manager()
        if (make := self._maker(manager, name)) is None:  # no plugin that is loaded has the module
            manager.load_for(name)
            make = self._maker(manager, name)
        if make is not None:  # a package, even if `make` returns a plain module: plugins export namespaces inside it
            loader = _Loader(self.manager, name, make)
            return ModuleSpec(fullname, loader, is_package=True)  # type: ignore[arg-type]  # a loader by duck typing
        from corejax.plugins._missing_names import is_expected, missing_name  # needed for an error only

        if is_expected(manager, name):
            raise missing_name(manager, name, importing=True)
        return None  # Python's own error names the module that was asked for

    def _maker(self, manager: PluginManager, name: str) -> Callable[[], ModuleType] | None:
        place = self._target(manager, name)
        if place is None:  # `corejax.experimental`, around `experimental.checkify`
            text = f"The names that plugins export as `corejax.{name}.<name>`."
            return partial(ModuleType, f"corejax.{name}", text) if manager.has_inside(name) else None
        if "." not in name or importlib.util.find_spec(place) is not None:
            return partial(importlib.import_module, place)
        inside = _inside(place)  # no file of its own: `scipy.stats.norm`
        return None if inside is None else lambda: inside

    def _target(self, manager: PluginManager, name: str) -> str | None:
        namespace = name
        while namespace:
            if entry := manager.namespaces.get(namespace):
                return entry[0] + name[len(namespace) :]
            namespace = namespace.rpartition(".")[0]
        return None


@contextmanager
def _without_import_lock() -> Iterator[None]:
    """Release the global import lock, which Python holds while it calls a finder, for a `with` block.

    The block imports plugins. It could wait for a module that another thread is importing while that thread waits for
    the lock, and Python detects deadlocks between waits for modules only.
    """
    try:
        _imp.release_lock()
    except RuntimeError:  # not held: the finder was not called by an import statement
        yield
        return
    try:
        yield
    finally:
        _imp.acquire_lock()


def is_import_from(frame: FrameType) -> bool:
    """Return True if a frame is executing `from module import name`, which hides the message of an AttributeError."""
    import dis

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _inside(name: str) -> ModuleType | None:
    """Return the module that an imported module has as an attribute and lists in its `__all__`, or None."""
    parent, _, last = name.rpartition(".")
    outer = sys.modules.get(parent)
    inner = getattr(outer, last, None) if last in getattr(outer, "__all__", ()) else None
    return inner if isinstance(inner, ModuleType) else None


def install(manager: Callable[[], PluginManager], kernel_modules: Collection[str]) -> None:
    """Put the finder first in `sys.meta_path`, so that no module is imported twice under two names."""
    if not any(isinstance(finder, NamespaceFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, NamespaceFinder(manager, kernel_modules))
