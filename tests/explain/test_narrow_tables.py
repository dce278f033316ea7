"""Tables of the commands on narrow terminals: names stay whole."""

from __future__ import annotations

import io

import pytest

import corejax_explain._tables as tables

NAME = "custom_linear_solve_of_acme"
TABLE = ("primitives", ("primitive", "equations", "of them inside others", "plugin"), [(NAME, "12", "3", "acme_rules")])


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_names_are_neither_folded_nor_cut(width: int) -> None:
    from rich.console import Console

    file = io.StringIO()
    console = Console(width=width, force_terminal=True, color_system=None, file=file, highlight=False)
    tables._print_rich(console, "f: 12 equations of 1 primitive", [TABLE])
    text = file.getvalue()
    assert NAME in text and "acme_rules" in text and "equations" in text
    assert max(map(len, text.splitlines())) <= width
