"""Effects: what an application does beyond its results has to survive transformations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import Example, ShapedArray
from corejax_testing import verify
from tests.testing_kit.toys import mulsin_jvp, mulsin_vmap, toy

EXAMPLES = [Example((ShapedArray((3,), np.dtype(np.float32)),) * 2)]


def _elsewhere(axis_size: int, vals: Any, dims: Any) -> Any:
    x = vals[0] if dims[0] is not None else vals[1]
    return lax.sin(x), dims[0] if dims[0] is not None else dims[1]


def _jvp(primals: Any, tangents: Any) -> Any:
    return corejax.extend.primitives["toy.mulsin"].bind(*primals), mulsin_jvp(primals, tangents)[1]


@pytest.mark.parametrize(("vmap", "status"), [(mulsin_vmap, "passed"), (_elsewhere, "failed")])
def test_effects_survive_dce_of_a_batched_program(vmap: Any, status: str) -> None:
    with toy("toy.mulsin", {"vmap": vmap, "jvp": _jvp}, effects=("toy.print",)) as primitive:
        (result,) = verify(primitive, EXAMPLES, checks=["effects"])
    assert result.status == status
    if status == "failed":
        assert result.rule == "vmap"
        assert "dce removes the batched application with its effects" in result.message


def test_primitives_without_effects_are_left_alone() -> None:
    (result,) = verify(corejax.extend.primitives["sin"], checks=["effects"])
    assert result.status == "not applicable"
    assert result.message == "it has no effects"
