"""The check of derivatives in functions of blocks, by operands that all devices share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax_testing
from corejax.extend import (
    Example,
    Primitive,
    ShapedArray,
    abstract_eval_rules,
    find_primitive,
    jvp_rules,
    transpose_rules,
    vmap_rules,
)
from corejax.extend import is_undef_primal as is_linear
from corejax.extend.transforms import structural
from corejax.extend.types import join_refinements

pytest.importorskip("corejax_parallel")

EXAMPLE = Example((ShapedArray((3,), "float32"), ShapedArray((3,), "float32")))


@pytest.fixture
def product(request: pytest.FixtureRequest) -> Primitive:
    p = Primitive(f"tests.product of {request.node.name}", tags=("higher_order",), impl=np.multiply)

    @jvp_rules.register(p)
    def _jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (s, t) = primals, tangents
        return p.bind(x, y), structural.add(p.bind(s, y), p.bind(x, t))

    @transpose_rules.register(p)
    def _transpose(ct: Any, x: Any, y: Any) -> Any:
        return (p.bind(ct, y), None) if is_linear(x) else (None, p.bind(x, ct))

    vmap_rules.register(p, lambda size, vals, dims: (p.bind(*np.broadcast_arrays(*vals)), 0))
    return p


def shared(p: Primitive) -> Any:
    (result,) = corejax_testing.verify(p, [EXAMPLE], checks=["shared"])
    return result


def test_types_that_forget_along_which_axes_values_differ_are_caught(product: Primitive) -> None:
    abstract_eval_rules.register(product, lambda x, y: ShapedArray(x.shape, x.dtype))
    result = shared(product)
    assert result.failed and result.rule == "abstract_eval"
    assert "vma" in result.report() and "abstract_eval rule" in result.report()


def test_types_that_tell_pass(product: Primitive) -> None:
    abstract_eval_rules.register(product, lambda x, y: x.refined(join_refinements(x.refinement, y.refinement)))
    assert shared(product).status == "passed"


def test_the_kernel_tells_for_the_others() -> None:
    (result,) = corejax_testing.verify(find_primitive("mul"), checks=["shared"], quick=True)
    assert result.status == "not applicable" and "the kernel infers along which axes" in result.message
