"""The kit's check `sharded` over eight devices: right rules pass, wrong ones are found, with the rule to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.base.tables import restore, snapshot
from corejax.extend import Example, Primitive, ShapedArray, impl_rules, move_batch_axis, vmap_rules, xla_translations
from corejax_testing import tests_for, verify

corejax.plugins.load_everything()
F32 = np.dtype(np.float32)
EXAMPLES = [Example((ShapedArray((4, 3), F32),)), Example((ShapedArray((8,), F32),))]
COLLECTIVES = ("all_gather", "all_to_all", "axis_index", "pmax", "pmin", "ppermute", "psum", "reduce_scatter")
OF_EACH_SORT = ("psum", "all_gather", "shard_map", "xla_pmap")
QUICK = ["examples", "types", "text", "xla", "sharded"]
DERIVED = ["jvp", "transpose", "vjp", "splits", "kept_effects"]


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = snapshot()
    yield
    restore(before)


def checked(primitive: Primitive, examples: list[Example] = EXAMPLES) -> Any:
    (result,) = verify(primitive, examples, checks=["sharded"])
    return result


def rows_type(x: ShapedArray) -> ShapedArray:
    if x.ndim < 1:
        raise TypeError("rows have an axis")
    return x.strip_weak_type()


def rows(**rules: Any) -> Primitive:
    """Cumulative sums of rows, called back."""
    given = {"impl": lambda x: np.cumsum(x, -1, x.dtype), "abstract_eval": rows_type, **rules}
    return Primitive("test.kit_rows", **given)


def leading(primitive: Primitive) -> None:
    @vmap_rules.register(primitive)
    def _vmap(size: int, vals: Any, dims: Any) -> Any:
        return primitive.bind(move_batch_axis(size, dims[0], 0, vals[0])), 0


def test_right_rules_pass() -> None:
    p = rows()
    leading(p)
    result = checked(p)
    assert (result.status, result.note) == ("passed", "on 8 devices"), result.report()


def test_a_vmap_rule_for_what_is_no_batch() -> None:
    """Sums of all that went before, in all rows: the rule says that rows are alone."""
    p = rows(impl=lambda x: np.cumsum(x.reshape(-1), dtype=x.dtype).reshape(x.shape))
    leading(p)
    result = checked(p, EXAMPLES[:1])
    assert result.failed
    assert (result.rule, result.check) == ("vmap", "sharded")
    assert "devices, operands split along (0,)" in result.message
    assert "test_kit.py:" in result.where
    assert "with the same parameters" in result.hint


def test_abstract_eval_of_fewer_dimensions_than_impl_means() -> None:
    """Of a matrix it is no batch of what it is of vectors; abstract eval should refuse these."""
    p = rows(abstract_eval=lambda x: x.strip_weak_type(), impl=lambda x: np.asarray(x / np.sum(x * x), x.dtype))
    leading(p)
    result = checked(p, EXAMPLES[:1])
    assert result.failed
    assert result.rule == "vmap"
    assert "fewer dimensions" in result.hint


def test_batch_dims_of_what_is_no_batch() -> None:
    """A triangular system of equations, whose rows are said to be a batch."""
    corejax.jit(corejax.numpy.linalg.inv)(np.eye(2, dtype=F32))  # registers the kernels
    p = Primitive("test.solve", abstract_eval=lambda a, b: b.strip_weak_type())

    @xla_translations.register(p)
    def _translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        attributes = {
            name: np.uint8(ord(c)) for name, c in (("side", "L"), ("uplo", "U"), ("trans_x", "N"), ("diag", "N"))
        }
        return ctx.custom_call("lapack_strsm_ffi", *in_vals, out=in_avals[1], attributes=attributes, batch_dims=1)

    matrix = np.triu(np.ones((8, 8), F32)) + np.eye(8, dtype=F32)
    result = checked(p, [Example((matrix, ShapedArray((8, 8), F32)))])
    assert result.failed
    assert result.rule == "xla_translation"
    assert "test_kit.py:" in result.where


def test_a_wrong_vmap_rule_in_shard_map() -> None:
    p = Primitive("test.wrong", abstract_eval=rows_type, impl=lambda x: np.asarray(x * 2, x.dtype))
    xla_translations.register(p, lambda ctx, avals, vals: ctx.op("add", *vals, *vals, out=avals[0].strip_weak_type()))

    @vmap_rules.register(p)
    def _vmap(size: int, vals: Any, dims: Any) -> Any:
        return corejax.numpy.flip(p.bind(vals[0]), dims[0]), dims[0]

    result = checked(p)
    assert result.failed
    assert result.rule == "vmap"
    assert "test_kit.py:" in result.where


def test_a_collective_rule_of_its_own_is_not_asked_for_without_an_axis() -> None:
    p = Primitive("test.none", abstract_eval=rows_type)
    result = checked(p, [])
    assert (result.status, result.message) == ("not applicable", "no plugin provides examples")


def test_what_has_effects_is_left_alone() -> None:
    p = Primitive("test.effect", abstract_eval=rows_type, effects=("test",))
    impl_rules.register(p, lambda x: x)
    assert checked(p).message == "its effects happen once, and not on each device"


test_first_party = tests_for(
    *("sin", "add", "dot_general", "cholesky", "sort", "reduce", "custom_partitioning", "scan", "custom_lin"),
    checks=["sharded"],
    quick=True,
)
test_collectives = pytest.mark.sampled(tests_for(*COLLECTIVES, "shard_map", "xla_pmap", checks=QUICK, quick=True))
test_derivatives = pytest.mark.sampled(
    tests_for(*OF_EACH_SORT, checks=DERIVED, quick=True)
)  # test_collectives.py has those of all, beside jax's
test_batches = tests_for("shard_map", "xla_pmap", checks=["vmap"], quick=True)
test_everything_of_the_plugin = pytest.mark.slow(tests_for("parallel"))
test_everything_sharded = pytest.mark.slow(
    tests_for("lax_basic", "linalg", "fft", "control_flow", "random", "scipy_api", checks=["sharded"], quick=True)
)
