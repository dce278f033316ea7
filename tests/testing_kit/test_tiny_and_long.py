"""Mistakes that show in tiny results, in long arrays, or for another size of a batch only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax.extend import Example, Primitive, ShapedArray, defjvp, vmap_rules, xla_translations
from corejax_testing import verify
from tests.testing_kit.toys import same

pytestmark = pytest.mark.usefixtures("nothing_is_left")

F3 = ShapedArray((3,), np.dtype(np.float32))
TINY = 1e-10


def tiny(**rules: Any) -> Primitive:
    """The primitive 1e-10 sin(x)."""
    given = {"impl": lambda x: np.sin(x) * x.dtype.type(TINY), "abstract_eval": same, "tags": ("elementwise",), **rules}
    return Primitive("toy.tiny", **given)


def failing(p: Primitive, example: Example, *checks: str) -> list[str]:
    return [r.check for r in verify(p, [example], checks=checks, quick=True) if r.failed]


def translated(factor: float) -> Any:
    def rule(ctx: Any, avals: Any, vals: Any) -> Any:
        sine = ctx.op("sine", vals[0], out=avals[0])
        return ctx.op("multiply", sine, ctx.constant(np.full(avals[0].shape, factor, avals[0].dtype)), out=avals[0])

    return rule


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_tiny_results_of_each_rule(factor: float) -> None:
    p = tiny()
    vmap_rules.register(p, lambda size, vals, dims: (p.bind(vals[0]) * factor, dims[0]))
    xla_translations.register(p, translated(TINY * factor))
    defjvp(p, lambda t, x: t * jnp.cos(x) * np.asarray(TINY * factor, x.dtype))
    reference = lambda x: np.sin(x) * x.dtype.type(TINY * factor)
    checks = ["values", "jvp", "vmap", "xla"]
    assert failing(p, Example([F3], reference=reference), *checks) == ([] if factor == 1 else checks)


def test_rounding_errors_of_terms_that_cancel_are_no_mistakes() -> None:
    p = Primitive("toy.cancelled", impl=lambda x: x + 1 - 1 - x, abstract_eval=same, tags=("elementwise",))
    other = lambda x: x + (x.dtype.type(1) - 1) - x
    assert failing(p, Example([F3], reference=other), "values") == []
    flat = Primitive("toy.flat", impl=lambda x: x**3, abstract_eval=same, tags=("elementwise",))
    defjvp(flat, lambda t, x: 3 * t * x * x)
    assert failing(flat, Example([np.zeros(3, np.float32)]), "jvp") == []


@pytest.mark.parametrize("tags", [(), ("elementwise",)], ids=["structured", "elementwise"])
def test_wrong_beyond_a_thousand_elements(tags: tuple[str, ...]) -> None:
    p = tiny(tags=tags, impl=lambda x: np.where(np.arange(x.shape[-1] if x.ndim else 1) < 1000, x, -x).reshape(x.shape))
    assert failing(p, Example([F3], reference=lambda x: x), "values") == ["values"]


def only_for_three(p: Primitive) -> Any:
    def rule(size: int, vals: Any, dims: Any) -> Any:
        outs = [p.bind(jnp.take(vals[0], i, dims[0])) for i in range(min(size, 3))]
        return jnp.stack(outs), 0

    return rule


def axis_by_its_length(p: Primitive) -> Any:
    def rule(size: int, vals: Any, dims: Any) -> Any:
        return p.bind(vals[0]), vals[0].shape.index(size)

    return rule


@pytest.mark.parametrize("wrong", [only_for_three, axis_by_its_length])
def test_rules_for_one_size_of_batches(wrong: Any) -> None:
    p = tiny(impl=lambda x: x + 1)
    vmap_rules.register(p, wrong(p))
    assert failing(p, Example([ShapedArray((4,), F3.dtype)]), "vmap") == ["vmap"]
