"""No modules of a package import each other in a circle, imports in functions and for annotations counted."""

from __future__ import annotations

import graphlib
from typing import Any

import pytest

grimp = pytest.importorskip("grimp")
api = pytest.importorskip("importlinter.api")

from tests.packaging.building import ROOT  # noqa: E402

ROOTS = api.read_configuration(str(ROOT / "pyproject.toml"))["session_options"]["root_packages"]


@pytest.fixture(scope="module")
def graph() -> Any:
    return grimp.build_graph(*ROOTS, cache_dir=None)


@pytest.mark.parametrize("root", ROOTS)
def test_no_modules_import_each_other_in_a_circle(graph: Any, root: str) -> None:
    modules = {root, *graph.find_descendants(root)}
    imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
    graphlib.TopologicalSorter(imports).prepare()


def test_imports_for_annotations_and_in_functions_count(graph: Any) -> None:
    assert "corejax.ir" in graph.find_modules_directly_imported_by("corejax.extend._translation")
    assert "corejax.base.texts" in graph.find_modules_directly_imported_by("corejax.rules.attribution")
