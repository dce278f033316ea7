"""benchmarks/scale.py: programs for large meshes cost what the sizes of the model say, and the page says so."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "scaling.md"


@pytest.fixture(scope="module")
def scale() -> Any:
    spec = importlib.util.spec_from_file_location("scale", ROOT / "benchmarks" / "scale.py")
    module: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    path = list(sys.path)
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    finally:
        sys.path[:] = path
    return module


def check(scale: Any, axes: tuple[int, int], sizes: Any) -> list[int]:
    """What the program costs is what was counted: exactly, but for temporaries, which the compiler may share."""
    run = scale.ahead(axes, sizes)
    assert run.found[:4] == run.pencil[:4]
    assert 0.9 < run.found.temporary_bytes / run.pencil.temporary_bytes < 1.1
    return list(run.found)


@pytest.mark.parametrize(
    "axes", [*(pytest.param(axes, marks=pytest.mark.slow) for axes in ((8, 8), (8, 1), (1, 8))), (2, 4)]
)
def test_small_models(scale: Any, axes: tuple[int, int]) -> None:
    check(scale, axes, scale.model.Sizes(letters=50, width=64, blocks=3, heads=8, length=48, batch=16))


@pytest.mark.parametrize(
    "axes", [(8, 8), pytest.param((16, 16), marks=pytest.mark.slow), pytest.param((64, 64), marks=pytest.mark.slow)]
)
def test_the_page_has_what_the_programs_cost(scale: Any, axes: tuple[int, int]) -> None:
    found = check(scale, axes, scale.LARGE[axes])
    lines = PAGE.read_text().splitlines()
    head = next(line for line in lines if line.startswith("| on each device, a step |") and "by hand" in line).split(
        "|"
    )
    column = head.index(f" {axes[0]} × {axes[1]}, by hand ") + 1
    for name, number in zip(scale.ROWS, found, strict=True):
        row = next(line for line in lines if line.startswith(f"| {name} |"))
        assert int(row.split("|")[column].replace(",", "")) == number
    assert f"{scale.parameters(scale.LARGE[axes]):,}" in PAGE.read_text()


def test_tables_are_written_between_marks(scale: Any) -> None:
    page = "a\n\n<!-- ahead -->\n\n| old |\n\n<!-- end -->\n\nb\n"
    assert scale.written(page, "ahead", ["| x |", "| y |"]) == page.replace("| old |", "| x |\n| y |")
    with pytest.raises(scale.click.ClickException, match="<!-- measured -->"):
        scale.written(page, "measured", [])


def test_times_are_of_real_steps(scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SMALL", scale.model.Sizes(letters=8, width=16, blocks=1, heads=2, length=4, batch=2))
    rows = scale.measured_table(1, 1)
    assert len(rows) == 3 and rows[2].startswith("| one device | 1 × 1 | 2 |") and " 100% " in rows[2]
