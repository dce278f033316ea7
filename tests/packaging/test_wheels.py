"""The distributions as users get them: built as wheels, installed from these into fresh environments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.packaging.building import KERNEL, PROJECTS, ROOT, Environment, Wheels, fresh_environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="makes symbolic links")

PROGRAM = """
import os, sys
import numpy as np
import corejax
import corejax.numpy as jnp
from corejax import grad, jit, lax, make_jaxpr, vmap

home = os.path.realpath(sys.prefix)
assert os.path.realpath(corejax.__file__).startswith(home), corejax.__file__

def f(x):
    return jnp.sin(x) * 2.0

x = np.linspace(0.0, 1.0, 5, dtype=np.float32)
np.testing.assert_allclose(np.asarray(jit(vmap(grad(f)))(x)), 2 * np.cos(x), rtol=1e-6)
total, sums = lax.scan(lambda c, a: (c + a, c + a), np.float32(0), x)
np.testing.assert_allclose(np.asarray(sums), np.cumsum(x), rtol=1e-6)
assert "cos" in str(make_jaxpr(grad(f))(0.5))
assert corejax.explain(jnp.sin)(1.0).primitive("sin").bound == 1
assert "jax" not in sys.modules
print("works")
"""

KERNEL_PROGRAM = """
import importlib.util, sys
import corejax

assert importlib.util.find_spec("jaxlib") is None
assert importlib.util.find_spec("scipy") is None
for name in ("grad", "vmap", "jvp", "make_jaxpr"):
    assert callable(getattr(corejax, name)), name
try:
    corejax.jit
except AttributeError as error:
    assert "corejax-xla-backend" in str(error), error
else:
    raise AssertionError("corejax.jit exists without its plugin")
try:
    corejax.explain
except AttributeError as error:
    assert "pip install corejax-explain" in str(error), error
else:
    raise AssertionError("corejax.explain exists without its plugin")
print("works")
"""


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_contents(wheels: Wheels, name: str) -> None:
    package = name.replace("-", "_")
    contents = wheels.contents(name)
    assert {entry.split("/")[0] for entry in contents} == {package, f"{package}-0.1.0.dist-info"}
    assert f"{package}/__init__.py" in contents
    assert f"{package}/py.typed" in contents
    sources = ROOT / PROJECTS[name] / ("" if name == KERNEL else "src") / package
    files = [*sources.rglob("*.py"), *sources.rglob("*.pyi")]
    wanted = {f"{package}/{file.relative_to(sources).as_posix()}" for file in files}
    assert wanted <= contents, "a directory without __init__.py is left out of the wheel"
    assert name != KERNEL or "corejax/messages/homes.txt" in contents


@pytest.mark.parametrize("name", PROJECTS)
def test_wheel_carries_the_licence(wheels: Wheels, name: str) -> None:
    assert wheels.text(name, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()


def test_everything_works_from_wheels(everything: Environment) -> None:
    assert everything.run("python", "-c", PROGRAM).split() == ["works"]
    listing = everything.run("corejax", "list-primitives")
    for text in ("sin", "dot_general", "xla_call", "scan", "lax_basic", "control_flow", "xla_backend"):
        assert text in listing
    # Templates are data of the kit's wheel.
    assert "pyproject.toml" in everything.run("corejax", "new-plugin", "acme")


def test_kernel_alone(wheels: Wheels, tmp_path: Path) -> None:
    environment = fresh_environment(tmp_path / "alone", wheels, [KERNEL])
    assert environment.run("python", "-c", KERNEL_PROGRAM).split() == ["works"]
    environment.run("corejax", "list-primitives")
    environment.run("corejax", "plugins")
