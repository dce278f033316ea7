"""Operations that come often are written out: the same bits, and nothing passed over that somebody wants to see."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Primitive, ShapedArray, impl_rules
from corejax.extend.messages import observe, run_within
from corejax.extend.speed import HostCode
from corejax_eager import codegen
from corejax_eager.specialise import operations

_numbers = itertools.count()
MANY = codegen.RUNS + 2
X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)


def scaled(prepared: Callable[..., Any] | None = None) -> tuple[Primitive, list[Any]]:
    """`x * factor` of the operand's type, and the factors that its rule was called with."""
    calls: list[Any] = []

    def rule(x: Any, *, factor: Any) -> Any:
        calls.append(factor)
        return np.asarray(x * factor, x.dtype)

    def prepare(avals: Any, *, factor: Any) -> HostCode:
        return HostCode("{out} = {0} * {factor}", factor=np.asarray(factor, avals[0].dtype))

    p = Primitive(f"written_test.p{next(_numbers)}", abstract_eval=lambda x, *, factor: x)
    impl_rules.register(p, rule, prepared=prepared or prepare)
    return p, calls


def test_it_is_written_once_it_has_come_a_few_times() -> None:
    p, calls = scaled()
    for i in range(MANY):
        out = p.bind(X, factor=3)
        np.testing.assert_array_equal(out, X * 3)
        assert not np.asarray(out).flags.writeable and out.aval is cj.typeof(X)
        assert len(calls) == i + 1  # NumPy arrays are made arrays of by the long way
    for _ in range(MANY):
        p.bind(jnp.asarray(X), factor=3)
    assert len(calls) == MANY


@pytest.mark.parametrize("others", [(1, 1.0, True), (0, 0.0, -0.0, False), (2.0, 2, np.float32(2)), (float("nan"),)])
def test_params_that_are_equal_are_told_apart(others: tuple[Any, ...]) -> None:
    x = jnp.asarray(X)
    for first in others:
        used: list[Any] = []

        def prepare(avals: Any, *, factor: Any, used: list[Any] = used) -> HostCode:
            def called(x: Any) -> Any:
                used.append(factor)
                return x * np.asarray(factor, x.dtype)

            return HostCode("{out} = {called}({0})", called=called)

        p, calls = scaled(prepare)
        for factor in (first,) * MANY + others * MANY:
            calls.clear()
            used.clear()
            out = np.asarray(p.bind(x, factor=factor))
            assert out.tobytes() == np.asarray(X * factor, X.dtype).tobytes()
            [seen] = calls + used
            assert type(seen) is type(factor) and repr(seen) == repr(factor)


def test_operations_with_all_kinds_of_results() -> None:
    x, s, b = jnp.asarray(X), jnp.float32(2), jnp.asarray(X > 0)
    operations: list[Callable[[], Any]] = [
        lambda: lax.reduce_sum(x, (0, 1)),
        lambda: lax.reduce_sum(x, (0,)),
        lambda: lax.div(s, s),
        lambda: lax.reshape(x, (6,)),
        lambda: lax.transpose(x, (1, 0)),
        lambda: lax.slice(x, (0, 1), (2, 3)),
        lambda: lax.broadcast_in_dim(s, (2, 3), ()),
        lambda: lax.dot_general(x, x, (((1,), (1,)), ((), ()))),
        lambda: lax.select(b, x, -x),
        lambda: lax.integer_pow(x, 3),
        lambda: lax.convert_element_type(x, jnp.int8),
        lambda: lax.cumsum(x, 1),
        lambda: lax.argmax(x, 1, np.int32),
        lambda: lax.clamp(jnp.float32(-1), x, s),
        lambda: lax.concatenate([x, x], 0),
    ]
    for operation in operations:
        first, *others = [operation() for _ in range(MANY + 2)]
        for out in others:
            assert out.aval is first.aval
            assert np.asarray(out).tobytes() == np.asarray(first).tobytes()
            assert not np.asarray(out).flags.writeable


def test_another_rule_is_in_force_at_once() -> None:
    p, _ = scaled()
    x = jnp.asarray(X)
    for _ in range(MANY):
        p.bind(x, factor=2)
    impl_rules.register(p, lambda x, *, factor: x - factor, override=True)
    np.testing.assert_array_equal(p.bind(x, factor=2), X - 2)


def test_whoever_watches_sees_each_rule() -> None:
    p, calls = scaled()
    x = jnp.asarray(X)
    for _ in range(MANY):
        p.bind(x, factor=2)
    count, steps = len(calls), []
    watching = observe.watching(lambda step, begins: steps.append(step.kind))
    run_within((watching,), lambda: p.bind(x, factor=2))
    assert len(calls) == count + 1 and "impl" in steps
    with pytest.raises(FloatingPointError), cj.debug_nans(True):
        p.bind(jnp.asarray([np.nan]), factor=2)


def test_an_error_is_the_rule_s_own_and_names_it() -> None:
    fails: list[bool] = []

    def called(x: Any) -> Any:
        if fails:
            raise ValueError("no such value")
        return x * 2

    p = Primitive(f"written_test.p{next(_numbers)}", abstract_eval=lambda x, *, axis: ShapedArray(x.shape, x.dtype))
    impl_rules.register(
        p, lambda x, *, axis: called(x), prepared=lambda avals, *, axis: HostCode("{out} = {f}({0})", f=called)
    )
    x = jnp.asarray(X)
    for _ in range(MANY):
        p.bind(x, axis=0)
    fails.append(True)
    with pytest.raises(ValueError, match="no such value") as caught:
        p.bind(x, axis=0)
    assert p.name in "".join(caught.value.__notes__)


def test_params_without_a_hash_are_left_to_the_rule() -> None:
    p = Primitive(f"written_test.p{next(_numbers)}")  # whose results are of the types that its rule gives
    impl_rules.register(
        p,
        lambda x, *, factors: x * np.float32(factors),
        prepared=lambda avals, *, factors: HostCode("{out} = {0} * {f}", f=np.float32(factors)),
    )
    for factors in ([1, 2, 3],) * MANY + ([2, 2, 2],):
        np.testing.assert_array_equal(p.bind(jnp.asarray(X), factors=factors), X * factors)


def test_a_rule_without_a_prepared_form_is_called_from_a_generated_function() -> None:
    kept: list[Any] = []

    def rule(x: Any, *, axes: tuple[int, ...]) -> Any:
        kept.append(np.flip(x, axes) + 1)
        return kept[-1]

    p = Primitive(f"written_test.p{next(_numbers)}", abstract_eval=lambda x, *, axes: x)
    impl_rules.register(p, rule)
    x = jnp.asarray(X)
    for _ in range(MANY):
        out = p.bind(x, axes=(0,))
        kept[-1][...] = 0  # the result has memory of its own
        np.testing.assert_array_equal(out, X[::-1] + 1)
    assert [type(entry) for key, entry in operations.items() if key[0] is p] == [FunctionType]


def test_an_operation_without_operands_runs_each_time() -> None:
    count = itertools.count()
    p = Primitive(f"written_test.p{next(_numbers)}", abstract_eval=lambda: ShapedArray((), np.dtype(np.int32)))
    impl_rules.register(p, lambda: np.int32(next(count)))
    assert [int(p.bind()) for _ in range(MANY)] == [*range(MANY)]
