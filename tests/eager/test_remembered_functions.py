"""Functions remembered as programs give the same, bit for bit, when they run, are recorded and run recorded."""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax.errors import CorejaxError
from corejax_eager import remembered as program

NAMESPACES = {  # -> how many of its functions are to be met at least
    "numpy": 120,
    "nn": 24,
    "image": 1,
    "ops": 4,
    "numpy.fft": 18,
    "numpy.linalg": 10,
    "scipy.linalg": 10,
    "scipy.signal": 9,
}
REFUSED = (TypeError, ValueError, NotImplementedError, CorejaxError, IndexError, AttributeError)


def _operands() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    x, v, s = (jnp.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((4, 4), (6,), ()))
    i = jnp.asarray([3, 1, 2])
    return [
        *((v,), (x,), (i,), (3,), (s,), (v, v), (x, x), (i, i), (v, 2), (i, 5), (v, 0.3), (x, v[:4])),
        *((v, v, v), (s, v, v), (v, v, 2), (v, 2, 0), (x, 1, 0), (v > 0, v, v), (v[:3], v[3:]), (v[:3], i, 5)),
        *(([v, v],), ([x, x],), (x, (2, 2), "bilinear"), (x, (4, 4), (0, 1), v[:2], v[2:4], "linear"), ((3, 4), 0.5)),
    ]


def _functions(namespace: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(f"corejax.{namespace}")
    for name in dir(module):
        found = getattr(module, name)
        if getattr(getattr(found, "__code__", None), "co_filename", None) == program.__file__:
            yield name, found


def _same(a: Any, b: Any) -> None:
    leaves, structure = corejax.tree.flatten(a)
    others, other = corejax.tree.flatten(b)
    assert structure == other
    for x, y in zip(leaves, others, strict=True):
        assert type(x) is type(y)
        assert getattr(x, "aval", None) == getattr(y, "aval", None)
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape
        assert np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()


@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("namespace", NAMESPACES)
def test_calls_that_come_again_give_the_same(namespace: str, most: int | None) -> None:
    """With all operands that a function takes, or with some, of each function others."""
    corejax.clear_caches()
    met: Counter[str] = Counter()
    every = _operands()
    for start, (name, function) in enumerate(_functions(namespace)):
        for number in range(len(every)):
            operands = every[(start + number) % len(every)]
            if met[name] == most:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    first = function.__wrapped__(*operands)
                except REFUSED:
                    continue
                for _ in range(4):  # met, recorded, run from equation to equation, written out
                    _same(function(*operands), first)
            met[name] += 1
    met = +met
    assert len(met) >= NAMESPACES[namespace], sorted({name for name, _ in _functions(namespace)} - met.keys())


DRAWS = {
    "ball": (3,),
    "beta": (2.0, 3.0, (7,)),
    "binomial": (10.0, 0.3, (7,)),
    "categorical": (np.arange(4.0),),
    "choice": (9, (4,)),
    "dirichlet": (np.ones(3), (2,)),
    "double_sided_maxwell": (1.0, 2.0, (7,)),
    "f": (2.0, 3.0, (7,)),
    "gamma": (2.0, (7,)),
    "generalized_normal": (1.5, (7,)),
    "geometric": (0.3, (7,)),
    "multinomial": (9, np.ones(3) / 3),
    "multivariate_normal": (np.zeros(2), np.eye(2), (3,)),
    "orthogonal": (3,),
    "pareto": (2.0, (7,)),
    "permutation": (9,),
    "poisson": (3.0, (7,)),
    "randint": ((7,), 0, 9),
    "rayleigh": (2.0, (7,)),
    "t": (3.0, (7,)),
    "triangular": (0.0, 0.5, 1.0, (7,)),
    "truncated_normal": (-1.0, 1.0, (7,)),
    "wald": (2.0, (7,)),
    "weibull_min": (1.0, 2.0, (7,)),
    **dict.fromkeys(("bernoulli", "bits", "cauchy", "exponential", "gumbel", "laplace", "logistic", "maxwell")),
    **dict.fromkeys(("normal", "rademacher")),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_that_come_again_are_the_same(name: str) -> None:
    corejax.clear_caches()
    draw, operands = getattr(corejax.random, name), DRAWS[name]
    for seed in (0, 1):
        key = corejax.random.key(seed)
        drawn = [draw(key, *operands) if operands else draw(key, shape=(7,)) for _ in range(5)]
        for later in drawn[1:]:
            _same(later, drawn[0])


def test_settings_that_come_back_have_their_programs() -> None:
    for _ in range(4):
        with corejax.config.override(default_dtype_bits=64):
            assert jnp.linspace(0, 1, 3).dtype == np.float64
        assert jnp.linspace(0, 1, 3).dtype == np.float32


def test_a_misspelt_keyword_argument_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'keep_dims'. .id you mean 'keepdims'"):
        jnp.mean(jnp.ones(3), keep_dims=True)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'colour'$"):
        jnp.mean(jnp.ones(3), colour=True)
