"""A name loads only the plugins that it needs, and a later need loads the others."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import corejax.numpy as jnp
from corejax.plugins import manager

def loaded():
    return {record.name for record in manager().records.values() if record.status == "loaded"}

(jnp.ones(3) + 1).sum()
assert {"lax_basic", "numpy_api", "xla_backend"} <= loaded(), loaded()
assert not {"control_flow", "explain", "jet", "random", "scipy_api", "testing"} & loaded(), loaded()
assert not manager().loaded

value = corejax.jit(corejax.value_and_grad(lambda x: jnp.tanh(x).sum()))(jnp.zeros(3))
assert (float(value[0]), value[1].tolist()) == (0.0, [1.0] * 3)
assert corejax.vmap(jnp.sin)(jnp.zeros(3)).shape == (3,)
assert not {"explain", "jet", "random", "scipy_api", "testing"} & loaded(), loaded()

import corejax.scipy.stats.norm, corejax.experimental, corejax.nn.initializers
assert not hasattr(corejax.nn.initializers, "__wrapped__")
assert "scipy_api" in loaded() and not {"explain", "jet", "testing"} & loaded(), loaded()

corejax.lax.scan
assert "control_flow" in loaded() and "testing" not in loaded(), loaded()

assert corejax.config.debug_key_reuse is False, "a setting of a plugin that was not loaded"
assert len(loaded()) == len(manager().records), corejax.plugins.errors()
"""

COMMAND = """
import sys
from corejax.cli import main
from corejax.plugins import manager

main(["cache", "--json"], standalone_mode=False)
assert {r.name for r in manager().records.values() if r.status == "loaded"} == {"xla_backend"}, manager().records
assert not {"jaxlib", "importlib_metadata", "importlib.metadata"} & set(sys.modules)
"""

JIT = """
import sys
import corejax.numpy as jnp

f = corejax.jit(jnp.sin)
assert "jaxlib" in sys.modules and "jaxlib.mlir" not in sys.modules, "MLIR is for the first compilation"
assert f(0.0) == 0 and "jaxlib.mlir" in sys.modules
"""

MISSING = """
import corejax.numpy as jnp
from corejax.plugins import manager

try:
    corejax.lax.scam
except AttributeError as error:
    assert "did you mean 'scan'" in str(error), error
try:
    jnp.ones(3).no_such_attribute
except AttributeError as error:
    print(error)
"""


def run(program: str, **variables: str) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "COREJAX_PLUGINS"}
    command = [sys.executable, "-c", f"import corejax\n{program}"]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_name_loads_only_what_it_needs() -> None:
    run(PROGRAM)


def test_a_command_loads_only_its_plugin() -> None:
    run(COMMAND)


def test_jit_alone_imports_no_mlir() -> None:
    run(JIT, COREJAX_COMPILATION_CACHE="off")


def test_names_that_are_missing_are_explained_as_before() -> None:
    assert "no attribute 'no_such_attribute'" in run(MISSING)


def test_strict_plugins_load_together() -> None:
    program = "import corejax.numpy\nassert corejax.plugins.manager().loaded"
    run(program, COREJAX_STRICT_PLUGINS="1")
