"""`pad` in every mode: values as NumPy's, dtypes and weak types as jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled_together, check_gradients, check_mapped

X = (np.arange(6, dtype=np.float32) ** 2).reshape(2, 3)
I = np.array([[3, -1, 4], [1, 5, -9]], np.int8)

WIDTHS: list[Any] = [1, (1, 2), ((2, 0), (1, 3)), ((0, 0), (5, 4)), ((1, 2),), 0, [3]]
CONSTANTS: list[dict[str, Any]] = [
    {},
    {"constant_values": 7},
    {"constant_values": (1, 2)},
    {"constant_values": ((1, 2), (3, 4))},
    {"constant_values": np.array([[5, 6]])},
]
CONTINUED: list[tuple[str, dict[str, Any]]] = [
    ("edge", {}),
    ("wrap", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
    ("maximum", {}),
    ("minimum", {"stat_length": 2}),
    ("mean", {"stat_length": ((1, 2), (3, 9))}),
    ("mean", {}),
    ("median", {}),
    ("median", {"stat_length": ((2, 1), (2, 3))}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": ((1.5, -2), (-3, 4))}),
]


@pytest.mark.parametrize("x", [X, I, X > 4], ids=["f32", "i8", "bool"])
def test_constants(x: np.ndarray) -> None:
    for options in CONSTANTS:
        for width in WIDTHS:
            check(lambda xp, x: xp.pad(x, width, **options), x)  # noqa: B023


@pytest.mark.parametrize("mode, options", CONTINUED, ids=[f"{m} {o}" for m, o in CONTINUED])
def test_continued(mode: str, options: dict[str, Any]) -> None:
    for x in (X, I):
        tolerance = 1.0 if x is I and mode == "linear_ramp" else 1e-5  # rounded down, from float32 as in jax
        for width in WIDTHS:
            check(lambda xp, x: xp.pad(x, width, mode, **options), x, rtol=tolerance)  # noqa: B023


@pytest.mark.parametrize("reflect_type", ["even", "odd"])
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_mirrored_several_times(mode: str, reflect_type: str) -> None:
    for size in (1, 2, 3, 5):
        x = np.arange(1, size + 1) ** 2
        for width in ((0, 9), (1, 10), (2, 3), (7, 1), (4, 4), (12, 11)):
            found = jnp.pad(x, width, mode, reflect_type=reflect_type)
            assert found.tolist() == np.pad(x, width, mode, reflect_type=reflect_type).tolist()


def test_ramps_of_integers_are_exact() -> None:
    found = jnp.pad(np.zeros(1, np.uint8), 3, "linear_ramp", end_values=3)
    assert found.dtype == np.uint8 and found.tolist() == [3, 2, 1, 0, 1, 2, 3]
    assert jnp.linspace(np.array(255), np.array(3), 43, dtype=int).tolist() == list(range(255, 2, -6))


def test_one_element_and_none() -> None:
    one, none = np.full((1, 2), 3, np.float32), np.zeros((0, 2), np.float32)
    for mode in ("edge", "wrap", "reflect", "symmetric"):
        check(lambda xp, x: xp.pad(x, ((3, 2), (0, 0)), mode), one)  # noqa: B023
        check(lambda xp, x: xp.pad(x, ((0, 0), (1, 0)), mode), none)  # noqa: B023
    assert jnp.pad(X, 1, "empty").shape == (4, 5)
    assert jnp.pad(jnp.asarray(2.0), ()).shape == ()


def test_compiled_and_derivatives() -> None:
    calls = [lambda xp, x, m=m, o=o: xp.pad(x, ((1, 2), (5, 0)), m, **o) for m, o in CONTINUED]
    calls += [lambda xp, x, o=o: xp.pad(x, 1, **o) for o in CONSTANTS]
    check_compiled_together(calls[1::2], X, rtol=1e-5)
    check_mapped(calls, X, rtol=1e-5)
    check_gradients([calls[i] for i in (0, 1, 4, 5, 8, 11, 15)], X)


def test_by_a_function() -> None:
    def numpy_rule(vector: Any, widths: Any, axis: int, kwargs: Any) -> None:
        vector[: widths[0]] = kwargs["value"] + axis
        vector[vector.size - widths[1] :] = 2 * kwargs["value"]

    def rule(vector: Any, widths: Any, axis: int, kwargs: Any) -> Any:
        front = jnp.full(widths[0], kwargs["value"] + axis, vector.dtype)
        back = jnp.full(widths[1], 2 * kwargs["value"], vector.dtype)
        return jnp.concatenate([front, vector[widths[0] : vector.size - widths[1]], back])

    for width in (1, ((2, 1), (0, 3))):
        np.testing.assert_array_equal(jnp.pad(X, width, rule, value=5), np.pad(X, width, numpy_rule, value=5))


def test_traced_values() -> None:
    padded = corejax.grad(lambda c: jnp.sum(jnp.pad(X, ((1, 0), (0, 0)), constant_values=c)))
    assert padded(2.0) == 3
    both = corejax.jacrev(lambda c: jnp.pad(X, ((1, 2), (0, 0)), constant_values=c).sum())
    np.testing.assert_array_equal(both(jnp.zeros(2)), [3, 6])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jnp.pad(X, ((1, 1), (1, 1), (1, 1))), ValueError, "2 axes"),
        (lambda: jnp.pad(X, -1), ValueError, "not negative, got -1"),
        (lambda: jnp.pad(X, 1.5), TypeError, "integers, got 1.5"),
        (lambda: jnp.pad(X, ((1,), (1, 2))), ValueError, "`pad_width` is a number, a pair"),
        (lambda: jnp.pad(X, 1, "edges"), ValueError, "one of 'constant', 'edge'.*got 'edges'"),
        (lambda: jnp.pad(X, 1, "edge", constant_values=1), ValueError, "takes no argument, got 'constant_values'"),
        (lambda: jnp.pad(X, 1, "mean", end_values=1), ValueError, "takes 'stat_length', got 'end_values'"),
        (lambda: jnp.pad(X, 1, "mean", stat_length=0), ValueError, "positive integers, got 0"),
        (lambda: jnp.pad(X, 1, "reflect", reflect_type="other"), ValueError, "'even' or 'odd', got 'other'"),
        (lambda: jnp.pad(X, 1, constant_values=np.ones(3)), ValueError, r"`constant_values`.*\[3\]"),
        (lambda: jnp.pad(jnp.zeros((0, 2)), 1, "wrap"), ValueError, r"axis 0 of f32\[0,2\] has no elements"),
        (lambda: corejax.jit(lambda n: jnp.pad(X, n))(1), TypeError, "pad|concrete"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
