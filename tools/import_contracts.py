"""Contracts of import-linter for packages that live side by side; `pyproject.toml` names them and has their data."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract


class NoCycles(AcyclicSiblingsContract):
    """No cycles between the modules of any root package."""

    def __init__(self, name: str, session_options: dict[str, Any], contract_options: dict[str, Any]) -> None:
        roots = session_options["root_packages"]
        super().__init__(name, session_options, {**contract_options, "ancestors": roots})


class _Table(fields.Field):
    def parse(self, raw_data: Any) -> dict[str, list[str]]:
        if not isinstance(raw_data, dict) or not all(isinstance(value, list) for value in raw_data.values()):
            raise fields.ValidationError("Must be a table of lists.")
        return raw_data


class Doors(Contract):
    """Only the importers that a table lists for a module import it from outside its package.

    External packages are open to all unless the table lists them. An importer stands for its submodules too and may
    have the wildcards of `fnmatch`. An importer without an import is an error, so that no old exception stays behind.
    """

    importers = _Table()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compare each import between two packages with the table."""
        refused: list[str] = []
        unused = {(pattern, door) for door, patterns in self.importers.items() for pattern in patterns}
        for importer, imported in _imports_between_packages(graph):
            if graph.is_module_squashed(imported) and imported not in self.importers:
                continue
            patterns = [p for p in self.importers.get(imported, ()) if fnmatchcase(f"{importer}.", f"{p}.*")]
            unused -= {(pattern, imported) for pattern in patterns}
            if not patterns:
                lines = [str(d["line_number"]) for d in graph.get_import_details(importer=importer, imported=imported)]
                refused.append(f"{importer} -> {imported} (l.{', l.'.join(lines)})")
        problems = sorted(refused) + [f"{pattern} -> {door} is listed but not used" for pattern, door in sorted(unused)]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each problem."""
        for problem in check.metadata["problems"]:
            output.print_error(problem)
        output.print_error("Of the kernel import corejax.extend; of another plugin, the names that users import.")


def _imports_between_packages(graph: ImportGraph) -> Iterator[tuple[str, str]]:
    for importer in graph.modules:
        if not graph.is_module_squashed(importer):
            for imported in graph.find_modules_directly_imported_by(importer):
                if imported.partition(".")[0] != importer.partition(".")[0]:
                    yield importer, imported
