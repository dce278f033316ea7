"""Without the plugin: what is missing from `corejax.lax` says which distribution has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from corejax import lax, plugins
from corejax.errors import PluginMissingError, PluginMissingImportError
from corejax.plugins._discovery import installed_entry_points
from corejax.plugins._plugin_manager import PluginManager

NAMES = ("cond", "switch", "scan", "while_loop", "fori_loop", "map", "ProgressBar")


@pytest.fixture
def uninstalled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process's plugins without this one."""
    for name in NAMES:
        monkeypatch.delitem(vars(lax), name, raising=False)
    others = PluginManager(lambda: (r for r in installed_entry_points() if r.name != "control_flow"))
    others._loaded = others._discovered = True
    earlier = plugins.set_manager(others)
    yield
    plugins.set_manager(earlier)


@pytest.mark.usefixtures("uninstalled")
@pytest.mark.parametrize("name", NAMES)
def test_not_installed(name: str) -> None:
    text = rf"^module 'corejax.lax' has no attribute '{name}'; .* \(pip install corejax-control-flow\)$"
    with pytest.raises(PluginMissingError, match=text):
        getattr(lax, name)
    with pytest.raises(PluginMissingImportError, match=text):
        exec(f"from corejax.lax import {name}")
    assert not hasattr(lax, name)


def test_switched_off() -> None:
    program = """
from corejax import lax
for program in ("lax.scan", "from corejax.lax import cond"):
    try:
        exec(program)
    except Exception as error:
        print(type(error).__name__, error)
"""
    environment = {**os.environ, "COREJAX_PLUGINS": "-control_flow"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["PluginMissingError", "PluginMissingImportError"], done.stderr
    for line, name in zip(lines, ("scan", "cond"), strict=True):
        assert f"module 'corejax.lax' has no attribute '{name}'; it comes with plugin 'control_flow' " in line
        assert "(corejax-control-flow " in line
        assert line.endswith("which is switched off by COREJAX_PLUGINS=-control_flow (unset that to use it)")


def test_what_a_later_release_will_have() -> None:
    if hasattr(lax, "while_loop"):
        pytest.skip("it is here")
    with pytest.raises(PluginMissingError, match=r"comes with corejax-control-flow, but .* does not export it$"):
        lax.while_loop  # noqa: B018


def test_misspelt_names_get_suggestions() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'sinn'; did you mean 'sin'\?"):
        lax.sinn  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'swich'; did you mean 'switch'\?"):
        lax.swich  # noqa: B018
    with pytest.raises(AttributeError, match=r"^module 'corejax.lax' has no attribute '_private'$"):
        lax._private  # noqa: B018
