"""`disable_jit`: control flow calls its functions as Python would, where what it decides by is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import Tracer, grad, jit, lax, make_jaxpr, tree_util, vmap

X = np.float32([1, 2, 3])

PROGRAMS = {
    "scan": lambda x: lax.scan(lambda c, a: (c + a * x, {"y": c * a}), x, X),
    "scan in reverse": lambda x: lax.scan(lambda c, a: (c + a, (c, a)), x, X, reverse=True),
    "scan without arrays": lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=3),
    "scan of nothing": lambda x: lax.scan(lambda c, a: (c + a, c), x, X[:0]),
    "while_loop": lambda x: lax.while_loop(lambda v: v[0] < 5, lambda v: (v[0] + 1, v[1] * x), (0, x)),
    "while_loop that does not run": lambda x: lax.while_loop(lambda v: v < 0, lambda v: v + 1, x),
    "fori_loop": lambda x: lax.fori_loop(1, 4, lambda i, v: v + i * x, x),
    "cond": lambda x: lax.cond(True, lambda x: x * 2, lambda x: x, x),
    "cond on a value": lambda x: lax.cond(x > 1, lambda x: x * 2, lambda x: x * 3, x),
    "switch": lambda x: lax.switch(5, [lambda x: x, lambda x: x * 2], x),
    "map": lambda x: lax.map(lambda a: a * x, X),
    "map in batches": lambda x: lax.map(lambda a: a * x, X, batch_size=2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str) -> None:
    f = PROGRAMS[name]
    runs = (f, jit(f), lambda x: vmap(f)(x * X), lambda x: corejax.jvp(f, (x,), (x,)))
    for run in runs:
        expected, structure = tree_util.tree_flatten(run(np.float32(1.5)))
        with corejax.disable_jit():
            got, same = tree_util.tree_flatten(run(np.float32(1.5)))
        assert same == structure
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype
            if a.dtype.kind != "V":  # float0, which has no values
                np.testing.assert_allclose(a, b, rtol=1e-6)


def test_functions_see_values() -> None:
    seen: list[Any] = []

    def body(c: Any, x: Any) -> Any:
        seen.append(x if isinstance(x, Tracer) else float(x))
        return c + x, c

    with corejax.disable_jit():
        lax.scan(body, 0.0, X)
        lax.fori_loop(0, 2, lambda i, v: body(v, i)[0], 0.0)
        lax.while_loop(lambda v: v < 2, lambda v: body(v, 1.0)[0], 0.0)
        assert seen == [1.0, 2.0, 3.0, 0.0, 1.0, 1.0, 1.0]
        float(grad(lambda x: lax.scan(lambda c, a: (c * x, None), 1.0, None, length=3)[0])(2.0))
    assert "scan" in str(make_jaxpr(lambda x: lax.scan(body, x, X))(1.0))
