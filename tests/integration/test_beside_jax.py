"""corejax never imports jax; beside it in one process, in either order, both go on working."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS = """
import corejax, numpy as np
import corejax.numpy as jnp
def check_ours():
    f = corejax.jit(lambda x, y: jnp.sum(jnp.sin(x) * y))
    x = np.arange(4, dtype=np.float64)
    for _ in range(3):
        assert abs(float(f(x, x)) - np.sum(np.sin(x) * x)) < 1e-12
    assert f(x, x).dtype == np.float64
    assert corejax.jit(lambda x: x + 1)(1).dtype == np.int32
    g = corejax.jit(corejax.vmap(corejax.grad(jnp.sin)))
    np.testing.assert_allclose(g(np.arange(3.)), np.cos(np.arange(3.)), rtol=1e-6)
"""
THEIRS = """
import jax, numpy as np
import jax.numpy as jjnp
def check_theirs():
    f = jax.jit(lambda x, y: jjnp.sum(jjnp.sin(x) * y))
    x = np.arange(4, dtype=np.float64)
    for _ in range(3):
        assert abs(float(f(x, x)) - np.sum(np.sin(x) * x)) < 1e-5
    assert f(x, x).dtype == np.float32
    with jax.enable_x64(True):
        assert f(x, x).dtype == np.float64
    assert jax.jit(lambda x: x + 1)(1).dtype == np.int32
    g = jax.jit(jax.vmap(jax.grad(jjnp.sin)))
    np.testing.assert_allclose(g(np.arange(3.)), np.cos(np.arange(3.)), rtol=1e-6)
"""
EVERYTHING = """
import sys
import corejax, numpy as np, ml_dtypes
import corejax.numpy as jnp, corejax.lax as lax
f = corejax.jit(lambda x: lax.scan(lambda c, a: (c + a, c), x[0], x)[0])
np.asarray(f(np.arange(3, dtype=np.float32)))
np.asarray(f(np.arange(3).astype(ml_dtypes.bfloat16)))
corejax.grad(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0)
corejax.hessian(lambda x: jnp.sum(x ** 3))(np.arange(3.0))
from click.testing import CliRunner
from corejax.cli import main
assert CliRunner().invoke(main, ["list-primitives"]).exit_code == 0
assert "jax" not in sys.modules, "jax was imported"
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_jax_is_never_imported() -> None:
    run(EVERYTHING)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(
            OURS + THEIRS + "check_ours(); check_theirs(); check_ours(); check_theirs()", marks=pytest.mark.slow
        ),
        pytest.param(
            THEIRS + OURS + "check_theirs(); check_ours(); check_theirs(); check_ours()", marks=pytest.mark.slow
        ),
        OURS + "check_ours()\n" + THEIRS + "check_theirs(); check_ours(); check_theirs()",
        THEIRS + "check_theirs()\n" + OURS + "check_ours(); check_theirs(); check_ours()",
    ],
    ids=["ours first", "jax first", "ours used first", "jax used first"],
)
def test_both_work_in_one_process(order: str) -> None:
    pytest.importorskip("jax")
    run(order)
