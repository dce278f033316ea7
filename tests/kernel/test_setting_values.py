"""Values that settings refuse."""

from __future__ import annotations

from typing import Any

import pytest

import corejax


@pytest.mark.parametrize(("name", "value"), [("debug_nans", 2), ("disable_jit", None), ("memory_limit", "1G")])
def test_what_a_setting_refuses_is_told_with_its_name(name: str, value: Any) -> None:
    before = corejax.config.read(name)
    with pytest.raises(ValueError, match=rf"^{name}: "):
        corejax.config.update(name, value)
    assert corejax.config.read(name) == before
