"""The programs under examples/ as modules: as they are, and with jax in place of corejax."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corejax

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


class Beside(NamedTuple):
    """One program twice."""

    ours: Any
    theirs: Any


def load(name: str, library: str = "corejax") -> types.ModuleType:
    """The program of this name, with another library's name wherever it says corejax."""
    path = EXAMPLES / f"{name}.py"
    module = types.ModuleType(f"{name}_with_{library}")
    module.__file__ = str(path)
    exec(compile(path.read_text().replace("corejax", library), str(path), "exec"), vars(module))
    return module


def beside_jax(name: str) -> Beside:
    """The program with corejax, and with jax."""
    return Beside(load(name), load(name, "jax"))


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Pytrees of one structure, of the same shapes and dtypes, and of the same numbers to rounding."""
    import jax

    found, wanted = corejax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(found) == len(wanted)
    for a, b in zip(map(np.asarray, found), map(np.asarray, wanted), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol, atol)
