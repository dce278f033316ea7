"""Jitted functions are copied and pickled as functions are; what belongs to this process says so."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import pickletools
from typing import Any

import numpy as np
import pytest

from corejax import grad, jit

pytest.importorskip("jaxlib")

X = np.arange(3, dtype=np.float32)


def scaled(x: Any, n: int = 2, *, mode: str = "times") -> Any:
    """What is compiled by name."""
    return x * n if mode == "times" else x + n


@jit
def decorated(x: Any) -> Any:
    """The name is the jitted function's."""
    return x + 1


class Model:
    """A jitted method kept in its own object."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.step = jit(self._step)

    def _step(self, x: Any) -> Any:
        return x * self.weight


COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}
COPIES |= {f"pickle {n}": lambda f, n=n: pickle.loads(pickle.dumps(f, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)}


@pytest.mark.sampled
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("options", [{}, {"static_argnums": 1}, {"static_argnames": ("n", "mode"), "inline": True}])
def test_copies_compute_the_same(how: str, options: dict[str, Any]) -> None:
    f = jit(scaled, backend="cpu", **options)
    np.testing.assert_array_equal(f(X, 3), X * 3)
    twin = COPIES[how](f)
    np.testing.assert_array_equal(twin(X, 3), X * 3)
    assert type(twin) is type(f) and twin.__wrapped__ is scaled and twin.__name__ == "scaled"
    assert str(twin.lower(X, 3).as_text()) == str(f.lower(X, 3).as_text())
    if "static_argnames" in options:
        np.testing.assert_array_equal(twin(X, n=3, mode="plus"), X + 3)
        with pytest.raises(TypeError, match="static argument 'n'"):
            twin(X, n=[3])


@pytest.mark.parametrize("how", COPIES)
def test_a_decorated_function_is_itself(how: str) -> None:
    assert COPIES[how](decorated) is decorated
    assert "decorated" in "".join(str(arg) for _, arg, _ in pickletools.genops(pickle.dumps(decorated)))


@pytest.mark.parametrize("how", [name for name in COPIES if name != "copy"])
def test_a_copied_object_has_its_own_jitted_method(how: str) -> None:
    model = Model(2.0)
    model.step(X)
    twin = COPIES[how](model)
    twin.weight = 5.0
    np.testing.assert_array_equal(twin.step(X), X * 5)
    np.testing.assert_array_equal(model.step(X), X * 2)


def test_what_cannot_be_pickled_fails_as_without_jit() -> None:
    for f in (lambda x: x, jit(lambda x: x)):
        with pytest.raises((AttributeError, pickle.PicklingError), match="<lambda>"):
            pickle.dumps(f)
    assert copy.deepcopy(jit(lambda x: x + 1))(1) == 2


@pytest.mark.parametrize("compiled", [False, True])
def test_stages_belong_to_their_process(compiled: bool) -> None:
    stage = jit(scaled).lower(X)
    stage = stage.compile() if compiled else stage
    with pytest.raises(TypeError, match=r"of scaled cannot be pickled: .* Pickle the function"):
        pickle.dumps(stage)
    assert copy.copy(stage) is stage and copy.deepcopy(stage) is stage


def test_functions_with_static_arguments_are_methods_too() -> None:
    class Scale:
        factor = 3

        def times(self, x: Any, n: int) -> Any:
            return x * n * self.factor

        times = jit(times, static_argnums=(0, 2))  # type: ignore[assignment]

    np.testing.assert_array_equal(Scale().times(X, 2), X * 6)
    assert list(inspect.signature(Scale.times).parameters) == ["self", "x", "n"]
    again = jit(jit(scaled, static_argnums=1), static_argnums=1)
    np.testing.assert_array_equal(again(X, 2), X * 2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again))(X, 2), X * 2)


@pytest.mark.parametrize("tier", [None, "auto"])
@pytest.mark.parametrize("static", [(), (1,)])
def test_signature_is_the_functions(tier: str | None, static: tuple[int, ...]) -> None:
    f = jit(scaled, static_argnums=static, tier=tier)
    for _ in range(2):
        for given in (f, grad(f), functools.partial(jit, inline=True)(f)):
            assert inspect.signature(given) == inspect.signature(scaled)
        assert inspect.signature(f, follow_wrapped=False) == inspect.signature(scaled)
        f(X, 2)
    assert list(inspect.signature(jit(functools.partial(scaled, n=2))).parameters) == ["x", "n", "mode"]
