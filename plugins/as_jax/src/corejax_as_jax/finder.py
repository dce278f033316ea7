"""The import hook for `jax` and its modules."""

from __future__ import annotations

import _imp
import dis
import functools
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from corejax.extend.messages import did_you_mean
from corejax_as_jax.refusals import NAMES, MissingAttribute, MissingModule, MissingName, late, missing_text


class JaxFinder(MetaPathFinder):
    """Find `jax` and its modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of jax; None for any other module.

        Raises:
            ModuleNotFoundError: neither `names` nor corejax has the module.
        """
        package, _, inner = fullname.partition(".")
        if package != "jax":
            return None
        place = NAMES.joinpath(*inner.split("."))
        if place.is_dir():
            return spec_from_file_location(
                fullname,
                place / "__init__.py",
                loader=NamesLoader(fullname, str(place / "__init__.py")),
                submodule_search_locations=[str(place)],
            )
        file = place.with_suffix(".py")
        if inner and file.is_file():
            return spec_from_file_location(fullname, file, loader=NamesLoader(fullname, str(file)))
        module = _imported(f"core{fullname}")
        if module is not None:
            return ModuleSpec(fullname, AliasLoader(), is_package="__path__" in vars(module))
        library = _importing_package()
        text = f"no module named {fullname!r}"
        raise late(MissingModule(name=fullname), lambda: missing_text(text, library))


def _imported(name: str) -> ModuleType | None:
    """Do as `corejax_module`, without the global import lock, which Python holds while it calls a finder.

    Other threads need the lock to import modules that this import waits for.
    """
    try:
        _imp.release_lock()
    except RuntimeError:  # not held: the finder was not called by an import statement
        return corejax_module(name)
    try:
        return corejax_module(name)
    finally:
        _imp.acquire_lock()


def corejax_module(name: str) -> ModuleType | None:
    """Return a module of corejax, or None if corejax has no such module; private ones are none of JAX's."""
    if name in _no_modules or "._" in name:
        return None
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("corejax."):
            _no_modules.add(name)
            return None
        raise


_no_modules: set[str] = set()  # known not to be there: looking for a module takes long


class AliasLoader(Loader):
    """A loader of a module that has the names of corejax's module, and no file."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: Python creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module return the names of corejax's module."""
        _fall_through(module)


class NamesLoader(SourceFileLoader):
    """A loader that runs a file of `names`, and adds the names of corejax's module that the file lacks."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the file."""
        super().exec_module(module)
        _fall_through(module)


def _fall_through(module: ModuleType) -> None:
    """Let a module return the submodules in `names` and the names of corejax's module, which it does not hold."""
    own = vars(module).get("__getattr__")
    # A module's functions of these names stand in for methods.
    module.__getattr__ = lambda name: lookup(module, own, name)  # type: ignore[method-assign]  # as PEP 562 allows
    module.__dir__ = lambda: sorted({*vars(module), *_inner_modules(module), *_names_of_corejax(module)})  # type: ignore[method-assign]  # PEP 562


def lookup(module: ModuleType, own: Any, name: str) -> Any:
    """Return an attribute that a module of jax does not hold yet: a submodule, or a name of corejax's module.

    Args:
        module: a module of jax.
        own: the `__getattr__` of its file, or None.
        name: the attribute.

    Raises:
        AttributeError: the name does not exist; an ImportError for `from module import name`, because Python would not
            show the text of the AttributeError.
    """
    jax_module = module.__name__
    if name == "__all__":
        return [public for public in dir(module) if not public.startswith("_")]
    if not name.startswith("__"):
        if name in _inner_modules(module):
            return import_module(f"{jax_module}.{name}")
        for source in (own, functools.partial(_attribute_of, f"core{jax_module}")):
            if source is None:
                continue
            try:
                value = source(name)
            except AttributeError:
                continue
            else:
                is_inner = isinstance(value, ModuleType) and "__path__" in vars(module)
                if is_inner and value is corejax_module(f"core{jax_module}.{name}"):
                    return import_module(f"{jax_module}.{name}")
                if source is own or _is_kept(f"core{jax_module}", name):
                    setattr(module, name, value)  # so that it is not looked up again
                return value
    text = f"module {jax_module!r} has no attribute {name!r}"
    if name.startswith("__"):
        raise AttributeError(text)
    frame = sys._getframe(2)  # of the code that reads the attribute
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    library = _package_of(frame)
    error = MissingName(name=jax_module) if instruction == "IMPORT_FROM" else MissingAttribute()
    raise late(error, lambda: missing_text(text, library, did_you_mean(name, dir(module))))


def _attribute_of(module: str, name: str) -> Any:
    return getattr(corejax_module(module), name)  # an AttributeError if corejax has no such module, too


def _is_kept(module: str, name: str) -> bool:
    """Return whether a module of corejax holds a value, rather than computing it each time."""
    return name in vars(sys.modules[module])


def _inner_modules(module: ModuleType) -> frozenset[str]:
    """Return the names of the submodules in `names`."""
    return _modules_in(tuple(vars(module).get("__path__", ())))


@functools.cache
def _modules_in(directories: tuple[str, ...]) -> frozenset[str]:
    places: Iterator[Path] = (place for directory in directories for place in Path(directory).iterdir())
    return frozenset(place.stem for place in places if not place.name.startswith("__"))


def _names_of_corejax(module: ModuleType) -> list[str]:
    found = corejax_module(f"core{module.__name__}")
    return [] if found is None else dir(found)


def _package_of(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _importing_package() -> str:
    """Return the package that runs the import statement."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _package_of(frame) in ("importlib", "_frozen_importlib"):
        frame = frame.f_back
    return _package_of(frame)
