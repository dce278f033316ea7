"""Values that settings refuse."""

from __future__ import annotations

from typing import Any

import pytest

import corejax
from corejax.settings.config import Config


@pytest.mark.parametrize(("name", "value"), [("debug_nans", 2), ("disable_jit", None), ("memory_limit", "1G")])
def test_what_a_setting_refuses_is_told_with_its_name(name: str, value: Any) -> None:
    before = corejax.config.read(name)
    with pytest.raises(ValueError, match=rf"^{name}: "):
        corejax.config.update(name, value)
    assert corejax.config.read(name) == before


def test_the_key_of_traces_has_what_differs_from_defaults() -> None:
    """A plugin that is loaded, or the order of loading, is no reason to trace again; a value in the environment is."""
    one, other = Config(), Config()
    key = one.trace_key()
    one.add_setting("acme_level", 3, int, traced=True)
    one.add_setting("acme_name", "a", str, traced=True)
    other.add_setting("acme_name", "a", str, traced=True)
    other.add_setting("acme_level", 3, int, traced=True)
    assert one.trace_key() == other.trace_key() == key
    keys = {key}
    for name, value in (("acme_name", "b"), ("acme_level", 4), ("acme_name", "a"), ("default_dtype_bits", 64)):
        one.update(name, value)
        other.update(name, value)
        assert one.trace_key() == other.trace_key() not in keys
        keys.add(one.trace_key())
