"""The kernel stays small: lines of whole files, and lines of each interpreter's `process_primitive`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.packaging.building import ROOT

KERNEL = ROOT / "corejax"
ENGINE = ROOT / "plugins" / "eager" / "src"


def lines(*folders: Path) -> int:
    return sum(len(path.read_text().splitlines()) for folder in folders for path in folder.rglob("*.py"))


@pytest.mark.parametrize(
    ("folders", "limit"),
    [
        pytest.param((KERNEL,), 18_000, id="kernel"),
        pytest.param((KERNEL / "core", KERNEL / "rules", KERNEL / "interpreters"), 5_300, id="heart"),
        pytest.param((ENGINE,), 1_500, id="engine"),
    ],
)
def test_a_part_of_the_house_stays_within_its_lines(folders: tuple[Path, ...], limit: int) -> None:
    assert 0 < lines(*folders) <= limit


def test_every_interpreter_processes_a_primitive_in_fifteen_lines() -> None:
    found = {}
    for path in sorted((KERNEL / "interpreters").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name == "process_primitive":
                end = node.end_lineno
                assert end is not None
                found[path.stem] = end - node.lineno + 1
    assert {"jvp", "batching", "staging", "partial_eval"} <= set(found)
    assert {name: count for name, count in found.items() if count > 15} == {}
