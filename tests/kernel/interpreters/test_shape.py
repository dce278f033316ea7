"""Interpreters read as autodidax's: `process_primitive` fits into fifteen lines, and names no sharding."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import corejax

INTERPRETERS = Path(corejax.__file__).parent / "interpreters"
CLASSES = {"jvp": "JVPTrace", "batching": "BatchTrace", "staging": "StagingTrace", "partial_eval": "PartialEvalTrace"}


@pytest.mark.parametrize("file", CLASSES)
def test_process_primitive_is_short(file: str) -> None:
    tree = ast.parse((INTERPRETERS / f"{file}.py").read_text())
    (trace,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == CLASSES[file])
    (process,) = (f for f in trace.body if isinstance(f, ast.FunctionDef) and f.name == "process_primitive")
    assert process.end_lineno is not None and process.end_lineno - process.lineno + 1 <= 15


@pytest.mark.parametrize("file", [*CLASSES, "evaluation", "transposition", "linearize"])
def test_interpreters_name_neither_shardings_nor_watchers(file: str) -> None:
    text = (INTERPRETERS / f"{file}.py").read_text()
    assert "if observe.watched" not in text.replace("Layer(_reporting) if observe.watched", "")
    assert not any(word in text for word in (".vma", "PartitionSpec", "mesh"))
