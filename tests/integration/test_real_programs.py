"""Programs written for jax run here when the import is changed: same values and dtypes, about as many equations."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import corejax
from tests.integration.real_programs import PROGRAMS
from tests.integration.test_program_sizes import size
from tests.recorded import Recorded

MORE = 1.15  # times the equations that jax has
# A loop over a batch with a condition for each element is lowered to selections in jax, and has them here already.
LONGER = {"mandelbrot", "implicit_differentiation"}
# Holds its programs where nobody counts in jax.
UNCOUNTED = {"rbf_interpolation"}
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    for name in ("nn", "numpy", "lax", "image", "ops", "flatten_util"):
        importlib.import_module(f"jax.{name}")
    return module


def _on(library: Any, name: str) -> tuple[Any, Any]:
    """A program as a function of one library, and its arguments as arrays of it."""
    program = PROGRAMS[name]
    args = library.tree_util.tree_map(library.numpy.asarray, program.args)
    return (lambda *xs: program.function(library, *xs)), args


def _gradient(library: Any, name: str) -> tuple[Any, Any]:
    """The gradient of the sum of all floating-point results."""
    f, args = _on(library, name)

    def total(*xs: Any) -> Any:
        leaves = library.tree_util.tree_leaves(f(*xs))
        return sum(x.astype(np.float32).sum() for x in leaves if np.dtype(x.dtype).kind == "f")

    return library.grad(total, argnums=PROGRAMS[name].grad), args


def _compare(name: str, ours: Any, theirs: Any) -> None:
    tolerance = PROGRAMS[name].tolerance
    mine, wanted = corejax.tree_util.tree_leaves(ours), [np.asarray(x) for x in theirs]
    assert [(x.shape, np.dtype(x.dtype)) for x in mine] == [(x.shape, x.dtype) for x in wanted]
    for x, y in zip(mine, wanted, strict=True):
        if y.dtype.kind in "iub":
            np.testing.assert_array_equal(x, y)
        else:
            wide = np.complex128 if y.dtype.kind == "c" else np.float64
            scale = float(np.max(np.abs(y), where=np.isfinite(y), initial=1.0))
            np.testing.assert_allclose(
                np.asarray(x).astype(wide), y.astype(wide), rtol=tolerance, atol=tolerance * scale
            )


def _compiled_by(jax: Any, f: Any, args: Any) -> Any:
    return jax.tree_util.tree_leaves(jax.jit(f).lower(*args).compile(compiler_options=QUICKLY)(*args))


def _size(library: Any, f: Any, args: Any) -> int:
    return size(library.make_jaxpr(f)(*args))  # type: ignore[no-any-return]


RECORDED, COUNTS = Recorded("real_programs"), Recorded("sizes_of_real_programs")


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_jaxs(name: str, jax: Any) -> None:
    f, args = _on(corejax, name)
    _compare(name, f(*args), RECORDED.of(name, lambda: _compiled_by(jax, *_on(jax, name))))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_values_and_gradients_are_jaxs(name: str, jax: Any) -> None:
    f, args = _on(corejax, name)
    _compare(name, corejax.jit(f)(*args), _compiled_by(jax, *_on(jax, name)))
    if PROGRAMS[name].grad is not None:
        f, args = _gradient(corejax, name)
        theirs = _compiled_by(jax, *_gradient(jax, name))
        _compare(name, f(*args), theirs)
        _compare(name, corejax.jit(f)(*args), theirs)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in UNCOUNTED | LONGER])
def test_they_have_about_as_many_equations(name: str, jax: Any) -> None:
    for made in (_on, _gradient)[: 1 if PROGRAMS[name].grad is None else 2]:
        ours = _size(corejax, *made(corejax, name))
        (theirs,) = COUNTS.of(f"{name}{made.__name__}", lambda made=made: [_size(jax, *made(jax, name))])
        assert ours <= MORE * theirs, f"{ours} equations, jax has {theirs}"
