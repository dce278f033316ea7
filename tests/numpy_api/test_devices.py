"""Memory shared by DLPack, devices, and what the namespace tells about itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.dlpack
import corejax.numpy as jnp
from corejax import lax


class Elsewhere:
    """An object of another library, in the memory of a GPU."""

    def __dlpack__(self, **options: Any) -> Any:
        raise AssertionError("asked for what is not on the host")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 1)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_what_others_own_is_shared(dtype: str) -> None:
    owner = np.arange(6).reshape(2, 3).astype(dtype)
    for x in (jnp.from_dlpack(owner), jnp.from_dlpack(owner, copy=False), corejax.dlpack.from_dlpack(owner.T).T):
        assert x.dtype == owner.dtype and not x.weak_type
        np.testing.assert_array_equal(x, owner)
        assert np.shares_memory(np.asarray(x), owner)
    assert owner.flags.writeable
    assert not np.shares_memory(np.asarray(jnp.from_dlpack(owner, copy=True)), owner)
    np.testing.assert_array_equal(corejax.jit(lambda x: x)(jnp.from_dlpack(owner)), owner)


def test_arrays_of_ours_stay() -> None:
    x = jnp.arange(3)
    assert jnp.from_dlpack(x) is x
    assert jnp.from_dlpack(x, copy=True) is not x
    assert jnp.from_dlpack(np.arange(3), device=x.device).devices() == {x.device}


def test_narrowing_needs_a_copy() -> None:
    with corejax.config.override(x64_compat=True):
        assert jnp.from_dlpack(np.ones(3)).dtype == np.float32
        with pytest.raises(BufferError, match="converted to 32 bits"):
            jnp.from_dlpack(np.ones(3), copy=False)


def test_what_cannot_be_shared() -> None:
    with pytest.raises(TypeError, match="__dlpack_device__, got list"):
        jnp.from_dlpack([1])  # type: ignore[arg-type]
    with pytest.raises(BufferError, match=r"x is on device \(2, 1\) of DLPack, not on the host"):
        jnp.from_dlpack(Elsewhere())
    with pytest.raises(BufferError, match="does not export bfloat16"):
        np.from_dlpack(jnp.ones(3, "bfloat16"))
    assert corejax.dlpack.is_supported_dtype("float16") and not corejax.dlpack.is_supported_dtype("bfloat16")


def test_what_the_namespace_tells() -> None:
    info = jnp.__array_namespace_info__()
    assert info.capabilities().keys() == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    assert info.default_device() in info.devices() and corejax.devices()[0] in info.devices()
    assert info.default_dtypes()["real floating"] == np.float32
    assert info.dtypes().keys() == {"bool", *info.dtypes(kind="numeric")} and len(info.dtypes()) == 13
    assert info.dtypes(kind=("bool", "real floating")).keys() == {"bool", "float32", "float64"}
    with corejax.config.override(x64_compat=True):
        assert info.dtypes(kind="complex floating").keys() == {"complex64"}
    with pytest.raises(ValueError, match=r"kind is one of 'bool', .*, got 'real'"):
        info.dtypes(kind="real")
    with pytest.raises(ValueError, match="got 'tpu'"):
        info.dtypes(device="tpu")


def test_arrays_name_their_namespace() -> None:
    x = jnp.ones(3)
    assert x.__array_namespace__() is jnp and x.__array_namespace__(api_version="2023.12") is jnp
    assert corejax.jit(lambda x: x.__array_namespace__().sum(x))(x) == 3
    with pytest.raises(ValueError, match=r"'2024\.12' or an earlier one, got '2030\.12'"):
        x.__array_namespace__(api_version="2030.12")


def test_the_namespace_dlpack_takes_arguments_as_jax_does() -> None:
    owner = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(corejax.dlpack.from_dlpack(external_array=owner), owner)
    assert not np.shares_memory(np.asarray(corejax.dlpack.from_dlpack(owner, None, True)), owner)


def test_arrays_like_one_that_is_bound_to_a_device_are_there() -> None:
    device = corejax.devices()[-1]
    x = corejax.device_put(jnp.arange(3.0), device)
    made = [jnp.full_like(x, 2), jnp.zeros_like(x), jnp.ones_like(x, int), jnp.empty_like(x, shape=(2, 2))]
    made += [lax.full_like(x, 1), lax.full_like(x, 1, int), jnp.asarray(x, int), jnp.array(x, int), jnp.astype(x, int)]
    for out in made:
        assert out.committed and out.devices() == {device}
    assert not jnp.full_like(jnp.arange(3.0), 2).committed
