"""The check `jax` of `corejax verify`. Imported by corejax-testing only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from corejax.extend import as_array, host_value
from corejax_testing import Call, Check, Framework, check_in_framework
from corejax_to_jax.to_jax import to_jax
from corejax_to_jax.types import key_from_numbers, key_to_numbers, to_numbers

Function = Callable[..., Sequence[Any]]


def check_jax(call: Call, rng: np.random.Generator) -> None:
    """Check that a primitive has the same results in JAX, eager and compiled, under nests of vmap, scan, jvp, grad."""
    check_in_framework(FRAMEWORK, call, rng)


def _array(x: np.ndarray[Any, Any]) -> Any:
    if x.dtype.names is not None:  # random keys
        numbers, impl = key_to_numbers(as_array(x))
        return jax.random.wrap_key_data(jnp.asarray(host_value(numbers)), impl=impl)
    return jnp.asarray(x)


def _numpy(x: Any) -> np.ndarray[Any, Any]:
    numbers, impl = to_numbers(x)
    return np.asarray(host_value(key_from_numbers(np.asarray(numbers), impl)))


def _listed(fun: Function) -> Callable[..., list[Any]]:
    return lambda *xs: list(fun(*xs))


def _scan(fun: Function) -> Function:
    return lambda *batch: jax.lax.scan(lambda carry, row: (carry, list(fun(*row))), (), batch)[1]


def _jvp(fun: Function, xs: list[Any], tangents: list[Any]) -> Any:
    return jax.jvp(fun, tuple(xs), tuple(tangents))[1]


def _vjp(fun: Function, xs: list[Any], cotangents: list[Any]) -> Any:
    return jax.vjp(fun, *xs)[1](list(cotangents))


FRAMEWORK = Framework(
    name="jax",
    bridge=to_jax,
    array=_array,
    numpy=_numpy,
    maps={"jit": lambda fun: jax.jit(_listed(fun)), "vmap": lambda fun: jax.vmap(_listed(fun)), "scan": _scan},
    derivatives={"jvp": _jvp, "grad": _vjp},
    context=lambda: jax.enable_x64(True),
)
JAX = Check("jax", check_jax, limit=2, optimised=True, quick=1)
