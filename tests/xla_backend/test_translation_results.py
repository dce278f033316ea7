"""Translation rules that give something else than their primitive's type: refused, not compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import Primitive, xla_translations
from corejax.extend.plugins import isolated_plugins

jit = corejax.jit  # before plugins are taken away
X = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def isolated() -> Iterator[None]:
    with isolated_plugins():
        yield


RULES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "nothing": (lambda ctx, avals, vals: None, ("None", "f32[3]")),
    "a list": (lambda ctx, avals, vals: list(vals), ("a list of 1", "f32[3]")),
    "another dtype": (lambda ctx, avals, vals: ctx.convert(vals[0], np.dtype(np.int32)), ("i32[3]", "f32[3]")),
    "another shape": (lambda ctx, avals, vals: ctx.reshape(vals[0], (3, 1)), ("f32[3,1]", "f32[3]")),
}


@pytest.mark.parametrize("name", RULES)
def test_one_result(name: str) -> None:
    rule, words = RULES[name]
    p = Primitive("acme.same", abstract_eval=lambda x: x)
    xla_translations.register(p, rule)
    for call in (jit(p.bind), p.bind):
        with pytest.raises(TypeError, match=r"'acme.same': its XLA translation rule") as info:
            call(X)
        for word in words:
            assert word in str(info.value)


@pytest.mark.parametrize("give", [lambda vals: vals[0], lambda vals: [vals[0]], lambda vals: [vals[0], None]])
def test_several_results(give: Any) -> None:
    p = Primitive("acme.twice", multiple_results=True, abstract_eval=lambda x: [x, x])
    xla_translations.register(p, lambda ctx, avals, vals: give(vals))
    with pytest.raises(TypeError, match=r"'acme.twice': its XLA translation rule"):
        jit(p.bind)(X)


def test_programs_of_equal_params_that_differ_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(ctx: Any, avals: Any, vals: Any, *, k: Any) -> Any:
        traced.append(k)
        number = k[0] if isinstance(k, tuple) else k
        value = 7.0 if number is True else np.copysign(2.0, number)
        return ctx.constant(np.full(avals[0].shape, value, np.float32))

    traced: list[Any] = []
    p = Primitive("acme.sign", abstract_eval=lambda x, *, k: x)
    xla_translations.register(p, rule)
    given = [0.0, -0.0, 1, True, (0.0,), (-0.0,), ((1,),)[0], (True,), np.float32(-0.0), np.float32(0), float("nan")]
    expected = [2, -2, 2, 7, 2, -2, 2, 7, -2, 2, 2]
    for _ in range(3):
        assert [float(p.bind(X, k=k)[0]) for k in given] == expected
    assert len(traced) <= 2 * len(given)  # the second call of each decides what is compiled, and none comes after
