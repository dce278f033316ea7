"""`stage` and the primitive `copy`: identities, beside jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cjnp
from corejax import lax


@pytest.mark.parametrize("value", [3.0, 2, True, 1j, np.float64(2), np.arange(3, dtype=np.int8), np.zeros((0, 2))])
def test_what_is_staged_is_an_array(value: Any) -> None:
    found = lax.stage(value)
    assert isinstance(found, corejax.Array)
    assert found.weak_type is (type(value) in (int, float, complex))
    np.testing.assert_array_equal(np.asarray(found), value)


def test_numbers_that_are_staged_are_traced() -> None:
    seen = []

    @corejax.jit
    def f(x: Any) -> Any:
        seen.append(lax.stage(2.0))
        assert lax.stage(x) is x
        return x * seen[0]

    assert float(f(3.0)) == 6.0
    assert isinstance(seen[0], corejax.extend.Tracer)
    with pytest.raises(TypeError, match=r"operand of primitive 'stage': \[1, 2\] of type list is not an array"):
        lax.stage([1, 2])


@pytest.mark.parametrize("name", ["copy_p", "stage_p"])
def test_identities_beside_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    x = np.array([0.5, -1.0, 2.0], np.float32)

    def scalar(lax: Any) -> Any:
        return lambda x: (getattr(lax, name).bind(x) ** 3).sum()

    ours, theirs = scalar(lax), scalar(jax.lax)
    for wrap in ("grad", "hessian"):
        np.testing.assert_allclose(getattr(corejax, wrap)(ours)(x), getattr(jax, wrap)(theirs)(x), rtol=1e-6)
    transposed = corejax.linear_transpose(getattr(lax, name).bind, x)(x)
    np.testing.assert_array_equal(np.asarray(transposed[0]), x)
    batched = corejax.vmap(getattr(lax, name).bind, in_axes=1, out_axes=1)(np.stack([x, x]))
    np.testing.assert_array_equal(np.asarray(batched), np.stack([x, x]))


def test_a_copy_has_memory_of_its_own() -> None:
    x = cjnp.arange(4.0)
    assert not np.shares_memory(np.asarray(lax.copy_p.bind(x)), np.asarray(x))
    on_device = corejax.device_put(x)
    copied = corejax.jit(lax.copy_p.bind)(on_device)
    assert copied.unsafe_buffer_pointer() != on_device.unsafe_buffer_pointer()
    keys = corejax.random.split(corejax.random.key(0))
    assert (corejax.random.key_data(lax.copy_p.bind(keys)) == corejax.random.key_data(keys)).all()
