"""Every installed primitive in JAX, under twenty nests of transformations: no result is another than corejax's."""

from __future__ import annotations

import pytest

import corejax_testing
from corejax.extend import load_everything, primitives
from corejax_testing.contributions import examples_of

pytest.importorskip("jax")
pytest.importorskip("corejax_to_jax")
load_everything()

pytestmark = pytest.mark.filterwarnings("ignore")  # of the framework

SAMPLE = {
    "cumsum",
    "custom_lin",
}  # one passes, one fails by design; the others are slow; `make sweep-bridges` counts them
NAMES = [
    pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.slow)
    for name in sorted(name for name in primitives if examples_of(name))
]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_results_of_corejax(name: str) -> None:
    (result,) = corejax_testing.verify(primitives[name], checks=["jax"], quick=True)
    if result.status == "not applicable":
        pytest.skip(result.message)
    assert result.status == "passed", result.report()
