"""The import contracts of `pyproject.toml` refuse what they are there for, and nothing of the code as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.packaging.building import ROOT

grimp = pytest.importorskip("grimp")
api = pytest.importorskip("importlinter.api")
contracts = pytest.importorskip("tools.import_contracts")

CONFIGURATION = api.read_configuration(str(ROOT / "pyproject.toml"))
SESSION, CONTRACTS = CONFIGURATION["session_options"], {c["id"]: c for c in CONFIGURATION["contracts_options"]}
ROOTS = SESSION["root_packages"]
PLUGINS = [root for root in ROOTS if root != "corejax"]


@pytest.fixture(scope="module")
def graph() -> Any:
    return grimp.build_graph(*ROOTS, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None)


def doors() -> Any:
    options = {key: value for key, value in CONTRACTS["doors"].items() if key not in ("id", "name", "type")}
    return contracts.Doors("doors", SESSION, options)


def problems(graph: Any, *imports: tuple[str, str]) -> list[str]:
    """What the contract says of the graph with imports added."""
    changed = copy.deepcopy(graph)
    for importer, imported in imports:
        changed.add_import(importer=importer, imported=imported, line_number=7, line_contents="")
    return doors().check(changed, verbose=False).metadata["problems"]


def test_every_plugin_is_under_contract() -> None:
    packages = [path.parent.name for path in ROOT.glob("plugins/*/src/*/__init__.py")]
    assert sorted(PLUGINS) == sorted(packages)


def test_the_code_keeps_the_contract(graph: Any) -> None:
    assert problems(graph) == []


def test_every_plugin_is_closed_to_other_plugins_and_to_the_kernel(graph: Any) -> None:
    wanted = []
    for plugin in PLUGINS:
        other = "corejax_fft" if plugin != "corejax_fft" else "corejax_jet"
        wanted += [(f"{other}.plugin", f"{plugin}.plugin"), (f"{other}.plugin", plugin), ("corejax.core.trace", plugin)]
    assert problems(graph, *wanted) == sorted(f"{importer} -> {imported} (l.7)" for importer, imported in wanted)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("corejax_fft.plugin", "corejax.core.trace"),
        ("corejax_fft.plugin", "corejax.plugins.manifest"),
        ("corejax_fft.plugin", "jax"),
        ("corejax.core.trace", "jax"),
        ("corejax_xla_backend._jit", "jax"),
        ("corejax_fft.plugin", "jaxlib"),
        ("corejax_xla_backend._jit", "jaxlib"),
        ("corejax.core.trace", "jaxlib"),
        ("corejax_fft.plugin", "pytest"),
        ("corejax_fft.plugin", "hypothesis"),
        ("corejax_checkify.plugin", "corejax_testing"),
        ("corejax.core.trace", "scipy"),
        ("corejax.core.trace", "opt_einsum"),
        ("corejax.core.trace", "corejax_lax_basic.lax"),
    ],
)
def test_a_private_module_and_a_guarded_library_are_refused(importer: str, imported: str, graph: Any) -> None:
    assert problems(graph, (importer, imported)) == [f"{importer} -> {imported} (l.7)"]


@pytest.mark.parametrize("imported", ["corejax", "corejax.extend", "corejax_lax_basic.lax", "numpy"])
def test_a_public_module_and_any_other_library_are_open(imported: str, graph: Any) -> None:
    assert problems(graph, ("corejax_fft.plugin", imported)) == []


def test_an_exception_that_nothing_needs_is_an_error(graph: Any) -> None:
    changed = copy.deepcopy(graph)
    changed.remove_import(importer="corejax_jet.verification", imported="corejax_testing")
    found = doors().check(changed, verbose=False).metadata["problems"]
    assert found == ["corejax_jet.verification -> corejax_testing is listed but not used"]


@pytest.mark.parametrize("root", ["corejax", "corejax_fft"])
def test_a_cycle_in_any_package_is_refused(root: str) -> None:
    graph = grimp.ImportGraph()
    for name in (*ROOTS, f"{root}.one", f"{root}.two"):
        graph.add_module(name)
    graph.add_import(importer=f"{root}.one", imported=f"{root}.two")
    contract = contracts.NoCycles("no cycles", SESSION, {})
    assert contract.check(copy.deepcopy(graph), verbose=False).kept
    graph.add_import(importer=f"{root}.two", imported=f"{root}.one")
    assert not contract.check(graph, verbose=False).kept
