"""Functions that are defined again are traced again and compiled once: equal programs have one executable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax

pytest.importorskip("jaxlib")

X = np.arange(1, 5, dtype=np.float32)


@pytest.fixture(autouse=True)
def nothing_before() -> Iterator[None]:
    corejax.clear_caches()
    yield
    corejax.clear_caches()


def compilations(action: Callable[[], object]) -> list[str]:
    """For each compilation whether it was one: where the executable is from otherwise."""
    found = [event for event in corejax.explain(action)().jit if event.kind == "compile"]
    return [event.reasons[1] if len(event.reasons) > 1 else "compiled" for event in found]


AGAIN = "an equal program was compiled before"


def loss(w: Any) -> Any:
    return jnp.sum(jnp.tanh(w) ** 2)


@pytest.mark.parametrize(
    "made",
    [
        lambda: corejax.jit(lambda x: jnp.sin(x) * 2),
        lambda: corejax.jit(corejax.grad(loss)),
        lambda: corejax.jit(corejax.vmap(lambda x: lax.fori_loop(0, 3, lambda _, c: c * x, x))),
        lambda: corejax.jit(lambda x: jnp.cos(x), donate_argnums=0),
    ],
    ids=["lambda", "grad", "loop", "donating"],
)
def test_a_function_defined_again_is_compiled_once(made: Callable[[], Any]) -> None:
    results = []
    found = compilations(lambda: [results.append(made()(jnp.asarray(X))) for _ in range(3)])
    assert found == ["compiled", AGAIN, AGAIN]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_what_is_closed_over_counts() -> None:
    def scaled(a: Any) -> Any:
        return corejax.jit(lambda x: x * a)(X)

    results: list[Any] = []
    found = compilations(lambda: results.extend(map(scaled, (2.0, 3.0, 2.0))))
    assert found == ["compiled", "compiled", AGAIN]
    np.testing.assert_array_equal(np.stack(results), [X * 2, X * 3, X * 2])


def test_types_of_results_and_options_count() -> None:
    weak, strong = (lambda x: x * 2), (lambda x: x * 2)
    assert corejax.jit(weak)(2.0).weak_type and not corejax.jit(strong)(np.float32(2)).weak_type
    slow = {"xla_cpu_enable_fast_math": False, "xla_backend_optimization_level": 0}
    found = compilations(
        lambda: [corejax.jit(lambda x: x + 1, compiler_options=options)(X) for options in (None, slow, None, slow)]
    )
    assert found == ["compiled", "compiled", AGAIN, AGAIN]


def test_names_that_profiles_show_count() -> None:
    def named(name: str) -> Any:
        def twin(x: Any) -> Any:
            with corejax.named_scope(name):
                return jnp.sin(x)

        return corejax.jit(twin).lower(X).compile()

    texts = [named(name).as_text() for name in ("here", "there")]
    assert "here" in texts[0] and "there" in texts[1]


def test_programs_that_call_python_are_compiled_each_time() -> None:
    seen = []

    def made(i: int) -> Any:
        return corejax.jit(lambda x: corejax.pure_callback(lambda v: (seen.append(i), v)[1], X, x))

    for i in range(2):
        np.testing.assert_array_equal(made(i)(X), X)
    assert seen == [0, 1]


def test_as_many_are_kept_as_the_setting_says() -> None:
    def two() -> None:
        for _ in range(2):
            corejax.jit(lambda x: x + 1)(X), corejax.jit(lambda x: x + 2)(X)

    for kept, expected in ((0, ["compiled"] * 4), (1, ["compiled"] * 4), (2, ["compiled"] * 2 + [AGAIN] * 2)):
        corejax.clear_caches()
        with corejax.config.override(kept_programs=kept):
            assert compilations(two) == expected
    with pytest.raises(ValueError, match="kept_programs"):
        corejax.config.update("kept_programs", -1)


def test_threads_that_define_the_same_function() -> None:
    results: list[Any] = []

    def work() -> None:
        for _ in range(5):
            results.append(np.asarray(corejax.jit(lambda x: jnp.sin(x) + 3)(X)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for result in results:
        np.testing.assert_array_equal(result, results[0])
