"""`ensure_compile_time_eval`: what is known is computed while the rest is traced."""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax
from corejax import Tracer, ensure_compile_time_eval, grad, jit, lax, make_jaxpr, vmap
from corejax import numpy as jnp

X = np.float32([1, 2, 3])


def test_known_values_are_computed_and_traced_ones_are_traced() -> None:
    def f(x: Any) -> Any:
        with ensure_compile_time_eval():
            table = jnp.cumsum(jnp.arange(4.0))
            total = jit(lambda t: t.sum())(table)
            slope = grad(jnp.sin)(1.0)
            count = int(total) - 7
            doubled = x * 2
            mixed = grad(lambda a: jnp.sin(a) * x.sum())(1.0)
        assert not isinstance(table, Tracer) and not isinstance(slope, Tracer) and count == 3
        assert isinstance(doubled, Tracer) and isinstance(mixed, Tracer)
        assert isinstance(jnp.arange(3.0) + 1, Tracer), "it ends with the block"
        return doubled + table[:count] + slope + mixed

    expected = 2 * X + [0, 1, 3] + np.cos(1) + 6 * np.cos(1)
    for run in (jit(f), lambda x: jit(vmap(f))(x[None])[0], jit(jit(f))):
        np.testing.assert_allclose(run(X), expected, rtol=1e-6)
    assert "cumsum" not in str(make_jaxpr(f)(X))


def test_eagerly_and_after_an_error() -> None:
    try:
        with ensure_compile_time_eval():
            assert float(lax.sin(1.0)) == float(np.sin(np.float32(1)))
            assert jnp.array([1, 2]).tolist() == [1, 2] == jnp.arange(4)[jnp.asarray(np.array([1, 2]))].tolist()
            for made in (jnp.asarray(jnp.ones(3)), jnp.array([1.0, 1.0]), jnp.array(jnp.ones(2)).at[0].set(1)):
                assert isinstance(made, corejax.Array) and made.sum() == made.size
            raise KeyError
    except KeyError:
        pass
    assert isinstance(jit(lambda x: [jnp.ones(2), x])(X)[0], corejax.Array)
