"""Checks in programs of blocks: `shard_map` and `pmap`. Of the elements the first that failed counts, as in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import checkify, lax
from corejax.sharding import PartitionSpec as P

pytest.importorskip("jaxlib")

ALL = checkify.user_checks | checkify.nan_checks


def positive(x: Any) -> Any:
    checkify.check((x > 0).all(), "{} of {}", x.min(), lax.psum(x.sum(), "i"))
    return jnp.log(x), lax.psum(x, "i")


def mapped(size: int, check_vma: bool = True) -> Any:
    mesh = corejax.make_mesh((size,), ("i",))
    return corejax.shard_map(positive, mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P()), check_vma=check_vma)


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("size", [1, 4])
def test_shard_map(size: int, check_vma: bool) -> None:
    f = mapped(size, check_vma)
    for g in (f, corejax.jit(f), corejax.jit(lambda x: f(2 * x / 2))):
        for wrapped in (checkify.checkify(g, ALL), corejax.jit(checkify.checkify(g, ALL))):
            error, out = wrapped(jnp.arange(1.0, 5.0))
            assert error.get() is None
            np.testing.assert_allclose(out[0], np.log(np.arange(1.0, 5.0)), rtol=1e-6)
            error, _ = wrapped(jnp.array([1.0, 2.0, 3.0, -4.0]))
            assert str(error.get()).startswith("-4.0 of 2.0 (`check` failed)")


def test_pmap_and_what_is_around() -> None:
    count = len(corejax.devices())
    error, out = checkify.checkify(corejax.pmap(positive, axis_name="i"))(-jnp.ones((count, 2)))
    assert str(error.get()).startswith(f"-1.0 of {-2.0 * count} (`check` failed)") and out[0].shape == (count, 2)
    error, _ = checkify.checkify(corejax.vmap(mapped(1)), ALL)(jnp.array([[1.0], [-3.0], [-4.0]]))
    assert str(error.get()).startswith("-3.0 of -3.0 ")
    error, _ = checkify.checkify(lambda x: corejax.grad(lambda x: mapped(1)(x)[0].sum())(x))(jnp.array([-5.0]))
    assert str(error.get()).startswith("-5.0 of -5.0 ")
    unchecked = corejax.shard_map(jnp.sin, mesh=corejax.make_mesh((1,), ("i",)), in_specs=P("i"), out_specs=P("i"))
    error, out = checkify.checkify(unchecked, ALL)(jnp.ones(1))
    assert error.get() is None and out.shape == (1,)
