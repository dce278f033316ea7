"""Every distribution gives what jax gives for the same key, dtype and shape: run, compiled, mapped and in loops."""

import os

import numpy as np
import pytest

import corejax
import corejax.random as random
from corejax.extend import dtypes
from tests.random.oracle import ALL, CASES, EXACT, FIXTURE, NEED_LINALG, SEED, assert_same, drawn, rewrite

if os.environ.get("REWRITE_FIXTURES"):
    rewrite()
with np.load(FIXTURE) as _archive:
    DRAWS = {tuple(name.split()[:2]): (_archive[name], name.split()[2]) for name in _archive.files}


def of_jax(name, number):
    value, dtype = DRAWS[name, str(number)]
    return value.astype(dtypes.dtype(dtype))


def _skip_without_linalg(name):
    if name in NEED_LINALG:
        pytest.importorskip("corejax.numpy.linalg")


@pytest.mark.parametrize(("name", "number"), ALL)
def test_eager(name, number):
    _skip_without_linalg(name)
    assert_same(drawn(random, name, number, random.key(SEED)), of_jax(name, number), name in EXACT)


SLOW = {"ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"}  # loops in loops
SLOW |= {"binomial", "multinomial", "permutation", "choice", "categorical"}


LONG = {"beta", "loggamma", "multinomial"}  # gamma and binomial have their loops: `slow`
OF_GAMMA = {"chisquare", "dirichlet", "f", "ball", "generalized_normal", "t"}  # its draws, and elementwise functions


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in CASES if n not in OF_GAMMA]
)
@pytest.mark.parametrize("count", [1, pytest.param(None, marks=pytest.mark.slow)], ids=["first", "all"])
def test_compiled(name, count):
    """The first case of a distribution; all as one program, but for those that take seconds to compile."""
    _skip_without_linalg(name)
    cases = CASES[name][: 1 if name in SLOW else count]

    @corejax.jit
    def draw(key):
        return [getattr(random, name)(key, *args, **kwargs) for args, kwargs in cases]

    for number, got in enumerate(draw(random.key(SEED))):
        assert_same(np.asarray(got), of_jax(name, number), name in EXACT)
