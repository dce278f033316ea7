"""Directories of installed-looking plugin distributions, for tests of discovery and of the command."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from importlib_metadata import distributions

import corejax
from corejax import plugins
from corejax.base.tables import Entries, restore, snapshot
from corejax.plugins._discovery import GROUP
from corejax.plugins._plugin_manager import PluginManager
from corejax.plugins._records import PluginRecord
from corejax.rules import registries

DISTRIBUTIONS = Path(__file__).parents[1] / "distributions"
KERNEL = Path(__file__).parents[2]

# What a program under test runs first: only distributions of the site are installed.
ONLY_THE_SITE = """
import importlib_metadata as _metadata
_distributions = _metadata.distributions
_metadata.distributions = lambda: _distributions(path=[{site!r}])
"""


def contents() -> dict[str, dict[Any, Entries]]:
    """Return the entries of all tables by the tables' names, to compare."""
    found: dict[str, dict[Any, Entries]] = {}
    for table, entries in snapshot():
        if entries:
            found.setdefault(table.name, {}).update(entries)
    return found


class Site:
    """A directory on the path with distributions in it.

    Args:
        path: an empty directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packages: set[str] = set()

    def add(self, name: str, plugin: str, *, version: str = "1.0", distribution: str | None = None) -> str:
        """Install a plugin that is one module.

        Args:
            name: of the entry point; the module is `<name>_plugin`.
            plugin: the module's source; `hookimpl` and `extend` are imported.
            version: of the distribution.
            distribution: its name, by default `corejax-<name>`.

        Returns:
            Name of the module.
        """
        module = f"{name}_plugin"
        header = "from corejax import extend\nfrom corejax.extend import hookimpl\n"
        (self.path / f"{module}.py").write_text(header + textwrap.dedent(plugin))
        self._describe(distribution or f"corejax-{name}", version, {name: module})
        self.packages.add(module)
        return module

    def add_package(self, name: str, **modules: str) -> str:
        """Install a plugin that is a package `<name>_plugin`: sources of its modules, `plugin` has the hooks.

        Returns:
            Name of the package.
        """
        package = f"{name}_plugin"
        (self.path / package).mkdir()
        for module, source in {"__init__": "", **modules}.items():
            header = "from corejax import extend\nfrom corejax.extend import hookimpl\n" if module == "plugin" else ""
            (self.path / package / f"{module}.py").write_text(header + textwrap.dedent(source))
        self._describe(f"corejax-{name}", "1.0", {name: f"{package}.plugin"})
        self.packages.add(package)
        return package

    def install(self, directory: str) -> None:
        """Install one of `tests/distributions`, as an editable install would."""
        project = tomllib.loads((DISTRIBUTIONS / directory / "pyproject.toml").read_text())["project"]
        self._describe(project["name"], project["version"], project["entry-points"][GROUP])
        for package in (DISTRIBUTIONS / directory / "src").iterdir():
            if package.suffix != ".egg-info":
                (self.path / package.name).symlink_to(package, target_is_directory=True)
                self.packages.add(package.name)

    def _describe(self, distribution: str, version: str, entry_points: dict[str, str]) -> None:
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"[{GROUP}]", *(f"{name} = {value}" for name, value in entry_points.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def find(self) -> Iterator[PluginRecord]:
        """What is installed, in the order of distribution names."""
        found = sorted(distributions(path=[str(self.path)]), key=lambda dist: dist.name)
        for dist in found:
            for entry in dist.entry_points:
                yield PluginRecord(entry.name, entry.value, dist.name, dist.version, dist=dist)

    def is_imported(self, name: str) -> bool:
        """Whether a plugin's module was imported in this process."""
        return f"{name}_plugin" in sys.modules

    def forget(self) -> None:
        """Drop the site's modules."""
        for name in list(sys.modules):
            if name.partition(".")[0] in self.packages:
                del sys.modules[name]
        importlib.invalidate_caches()

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program in a process of its own that sees the kernel and the site's plugins only."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("COREJAX_")}
        path = os.pathsep.join([str(self.path), str(KERNEL)])
        source = ONLY_THE_SITE.format(site=str(self.path)) + textwrap.dedent(program)
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", source, *arguments],
            env={**clean, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **environment},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty directory of plugin distributions, on the path; `--plain` switches off a plugin that is not there."""
    plugins.manager().discover()
    monkeypatch.delenv("COREJAX_PLUGINS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Site(tmp_path)
    yield found
    found.forget()


@pytest.fixture
def fresh(site: Site) -> Iterator[PluginManager]:
    """The process's manager, for the site's plugins only; what they contribute is gone afterwards.

    What the facade and the registries have of other plugins is put aside for the length of the test.
    """
    manager = PluginManager(site.find, plugins._reserved)
    before, exports, aliases = snapshot(), _take_exports(), _take_aliases()
    _take_rule_kinds_and_derivations()
    earlier = plugins.set_manager(manager)
    yield manager
    plugins.set_manager(earlier)
    restore(before)
    _take_exports()
    _take_aliases()
    vars(corejax).update(exports)
    sys.modules.update(aliases)


def _take_rule_kinds_and_derivations() -> None:
    for kind, registry in list(registries.items()):
        if registry.provenance.package != "corejax":
            del registries[kind]
        for derivation in list(registry.derivations):
            if not derivation.make.__module__.startswith("corejax."):
                registry.derivations.remove(derivation)


def _take_exports() -> dict[str, Any]:
    facade = vars(corejax)
    names = [name for name in facade if not name.startswith("_") and name not in plugins._reserved]
    return {name: facade.pop(name) for name in names}


def _take_aliases() -> dict[str, Any]:
    names = [
        name for name in sys.modules if name.startswith("corejax.") and name.split(".")[1] not in plugins._reserved
    ]
    return {name: sys.modules.pop(name) for name in names}
