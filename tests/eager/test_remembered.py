"""Functions whose eager calls are remembered: the function runs, then is recorded, then is not called any more."""

from __future__ import annotations

import enum
import gc
import warnings
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, vmap
from corejax.extend import Primitive, as_array, config, impl_rules, remembered
from corejax.extend.messages import observe, warn_user
from corejax_eager import cache
from tests.kernel.toys import add, mul

X = as_array(np.arange(6, dtype=np.float32).reshape(2, 3))
Y = as_array(np.ones((2, 3), np.float32))


class Color(enum.Enum):
    RED = 0
    BLUE = 1


class Counted:
    """A function that counts its runs, remembered."""

    def __init__(self, fun: Any) -> None:
        self.runs = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.runs += 1
            return fun(*args, **kwargs)

        self.call = remembered(counted)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def test_the_third_call_runs_the_program() -> None:
    f = Counted(lambda x, y: mul(add(x, y), y))
    results = [np.asarray(f(x, Y)) for x in (X, X, X, Y, X)]
    assert f.runs == 3  # once, and twice when it is recorded: for the program and for the result
    for got, x in zip(results, (X, X, X, Y, X), strict=True):
        np.testing.assert_array_equal(got, np.asarray(x) + 1)


@pytest.mark.filterwarnings("error")
def test_what_overflows_beforehand_is_not_warned_of() -> None:
    large = as_array(np.full((2, 3), 3e38, np.float32))
    f = Counted(lambda x: add(x, mul(large, large)))
    for _ in range(6):
        assert np.isinf(np.asarray(f(X))).all()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ((1, 2), [1, 2]),
        (np.float32, np.float64),
        ("a", "bc"),
        (None, ...),
        (Color.RED, Color.BLUE),
        ((1,), (1, 1)),
    ],
)
def test_static_arguments_are_told_apart(one: Any, other: Any) -> None:
    f = Counted(lambda x, a: add(x, as_array(np.float32(len(repr(a))))))
    for _ in range(4):
        for a in (one, other):
            np.testing.assert_array_equal(f(X, a), np.asarray(X) + np.float32(len(repr(a))))
    assert f.runs == 6


def test_arrays_by_keyword_in_any_order() -> None:
    @remembered
    def difference(*, b: Any, a: Any) -> Any:
        return add(a, mul(b, as_array(np.float32(-1))))

    for _ in range(5):
        assert difference(b=Y, a=X).tolist() == difference(a=X, b=Y).tolist() == (np.asarray(X) - 1).tolist()


def test_types_are_told_apart() -> None:
    f = Counted(lambda x: mul(x, x))
    for _ in range(4):
        for x in (X, as_array(np.arange(6.0).reshape(2, 3)), as_array(np.arange(3, dtype=np.float32))):
            out = f(x)
            assert out.aval is x.aval
            np.testing.assert_array_equal(out, np.asarray(x) ** 2)
    assert f.runs == 9


def test_other_arguments_run_the_function() -> None:
    f = Counted(lambda x, a: add(x, np.asarray(a)))
    for _ in range(4):
        f(X, np.ones(3, np.float32)[0])
    assert f.runs == 4


def test_results_are_put_together_as_the_function_does() -> None:
    f = Counted(lambda x, y, k=1: {"sum": add(x, y), "both": [x, (y, mul(x, y))]})
    for _ in range(4):
        out = f(X, y=Y, k=2)
    assert f.runs == 3
    assert corejax.tree.structure(out) == corejax.tree.structure({"sum": 0, "both": [0, (0, 0)]})
    np.testing.assert_array_equal(out["both"][1][1], X)
    np.testing.assert_array_equal(out["both"][0], X)


def test_values_that_depend_on_no_argument_are_computed_once() -> None:
    runs: list[Any] = []

    def impl(x: Any) -> Any:
        runs.append(x)
        return x + 1

    counted_p = Primitive("toy.counted_runs", impl=impl, abstract_eval=lambda aval: aval)
    f = remembered(lambda x: add(x, counted_p.bind(as_array(np.float32(3)))))
    for _ in range(5):
        np.testing.assert_array_equal(f(X), np.asarray(X) + 4)
    assert len(runs) == 3


def test_a_result_has_memory_of_its_own() -> None:
    f = remembered(lambda x: (x, as_array(np.zeros(3, np.float32))))
    for _ in range(3):
        same, zeros = f(X)
    again = f(X)
    assert not np.shares_memory(np.asarray(zeros), np.asarray(again[1]))
    assert not np.shares_memory(np.asarray(same), np.asarray(X))


def test_a_function_that_needs_values_is_run() -> None:
    f = Counted(lambda x: add(x, x) if float(np.asarray(x).sum()) > 10 else x)
    for x, wanted in ((X, 2), (X, 2), (Y, 1), (X, 2), (Y, 1)):
        np.testing.assert_array_equal(f(x), wanted * np.asarray(x))


def test_transformations_see_the_function() -> None:
    f = remembered(lambda x: mul(x, x))
    for _ in range(3):
        f(X)
    np.testing.assert_array_equal(vmap(f)(X), np.asarray(X) ** 2)
    np.testing.assert_array_equal(grad(lambda x: f(x))(as_array(np.float32(3))), 6)
    assert [e.primitive.name for e in corejax.make_jaxpr(f)(X).eqns] == ["toy.mul"]


def test_errors_are_the_functions_own() -> None:
    f = remembered(lambda x: add(x, as_array(np.ones(3, np.float32))))
    good = as_array(np.ones(3, np.float32))
    for _ in range(3):
        f(good)
        with pytest.raises(ValueError, match="mismatch"):
            f(as_array(np.ones(4, np.float32)))
    good.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(good)


def test_what_is_watched_is_not_a_program() -> None:
    f = Counted(lambda x: mul(x, x))
    for _ in range(3):
        f(X)
    runs, seen = f.runs, []
    with observe.watching(lambda *step: seen.append(step)):
        f(X)
    assert f.runs == runs + 1


def test_settings_and_clear_caches_forget_programs() -> None:
    f = Counted(lambda x: mul(x, x))
    for _ in range(3):
        f(X)
    corejax.clear_caches()
    f(X)
    assert f.runs == 4
    f(X), f(X)
    runs = f.runs
    with config.override(default_dtype_bits=64):
        f(X)
    assert f.runs == runs + 1


def test_it_has_the_functions_name() -> None:
    def fun(x: Any, y: int = 2) -> Any:
        """Doc."""
        return x

    call = remembered(fun)
    assert (call.__name__, call.__doc__, call.__wrapped__) == ("fun", "Doc.", fun)


def test_a_call_that_warns_does_so_each_time() -> None:
    def half(x: Any) -> Any:
        warn_user("it is large")
        return add(x, x)

    f = Counted(half)
    for _ in range(4):
        with pytest.warns(UserWarning, match="it is large"), warnings.catch_warnings():
            warnings.simplefilter("always")
            f(X)
    assert f.runs >= 4


def test_programs_are_found_again_when_settings_come_back() -> None:
    f = Counted(lambda x: add(x, x))
    for _ in range(3):
        f(X)
        with config.override(x64_compat=True):
            f(X)
    runs = f.runs
    for _ in range(3):
        f(X)
        with config.override(x64_compat=True):
            f(X)
    assert f.runs == runs


def test_a_function_that_is_gone_leaves_nothing() -> None:
    add(X, X)  # which fills the engine's other caches
    gc.collect()
    before = len(cache._filled)
    f = remembered(lambda x: add(x, x))
    for _ in range(6):
        f(X)
    assert len(cache._filled) == before + 1
    del f
    gc.collect()
    assert len(cache._filled) == before


def test_what_is_no_function() -> None:
    with pytest.raises(TypeError, match="remembered takes a function, got 3 of type int"):
        remembered(3)
    with pytest.raises(TypeError, match=r"ufunc has to be a NumPy ufunc, such as np\.copysign, got 3"):
        remembered(ufunc=3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, v: mul(x, 2.0) if v > 12 else add(x, v),  # chooses by the number
        lambda x, v: mul(x, 1 / (3 * v)),  # computes with Python's numbers
        lambda x, v: add(x, 1.0) if isinstance(v, float) else mul(x, v),
        lambda x, v: mul(x, float(f"{v:.3f}")),
    ],
)
def test_where_a_number_is_not_an_operand_each_call_runs_the_function(f: Any) -> None:
    g = remembered(f, numbers=True)
    x = as_array(np.float32([1.5, -2.0, 0.3]))
    for i in range(30):
        np.testing.assert_array_equal(g(x, 0.7 + i), f(x, 0.7 + i))


def test_programs_that_take_numbers_follow_rules() -> None:
    p = Primitive("remembered_test.scaled", impl=np.multiply, abstract_eval=lambda x, y: x)
    g = remembered(lambda x, v: p.bind(x, v), numbers=True)
    x = as_array(np.float32([1.0, 2.0]))
    for i in range(20):
        np.testing.assert_array_equal(g(x, 1.0 + i), np.float32([1, 2]) * np.float32(1 + i))
    impl_rules.register(p, lambda x, y: x + y, override=True)
    np.testing.assert_array_equal(g(x, 100.5), [101.5, 102.5])


def test_functions_look_at_numbers_unless_they_say_otherwise() -> None:
    @remembered
    def f(x: Any, v: Any) -> Any:
        if isinstance(v, float) and v < 0:
            raise ValueError("negative")
        return mul(x, v)

    for i in range(20):
        f(X, 1.0 + i)
    with pytest.raises(ValueError, match="negative"):
        f(X, -1.0)
