"""The code on the pages fits into the site's column."""

from __future__ import annotations

import pathlib

import pytest

from tools.site import code_lines


@pytest.mark.parametrize("page", code_lines.pages(), ids=lambda page: str(page.relative_to(code_lines.ROOT)))
def test_code_lines_fit(page: pathlib.Path) -> None:
    assert not list(code_lines.long_lines(page))
