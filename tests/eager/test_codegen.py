"""Small programs that run often are written out as functions: results, errors and rules are as step by step."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, observe
from corejax.extend import Primitive, ShapedArray, eval_jaxpr_on_host, impl_rules, primitives, remembered
from corejax.extend.speed import HostCode
from corejax_eager import codegen

_numbers = itertools.count()
MANY = codegen.RUNS + 2
F32 = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)


def unary(rule: Callable[..., Any], abstract_eval: Callable[..., Any] = lambda x, **_: x, **flags: Any) -> Primitive:
    """A primitive of one operand."""
    p = Primitive(f"host_function_test.p{next(_numbers)}", abstract_eval=abstract_eval)
    impl_rules.register(p, rule, **flags)
    return p


def functions_of(closed: Any) -> Any:
    """The program written out, None where it is not."""
    return closed.jaxpr.memo["generated"][-1]


def check(f: Callable[..., Any], *args: np.ndarray, written: bool = True) -> Any:
    """Results of the first and of later runs are the same, bit by bit, and read-only."""
    closed = cj.make_jaxpr(f)(*args)
    first = eval_jaxpr_on_host(closed, args)
    for _ in range(MANY):
        later = eval_jaxpr_on_host(closed, args)
    assert (functions_of(closed) is not None) is written
    for a, b, aval in zip(first, later, closed.out_avals, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape) == (aval.dtype, aval.shape)
        assert a.tobytes() == b.tobytes()
        assert not b.flags.writeable
    return closed


@pytest.mark.sampled
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint32, np.complex64]
)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)])
def test_arithmetic(dtype: Any, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    check(lambda x, y: (x * y + 2, jnp.where(x == y, x, -y), jnp.sum(x), abs(x - y)), x, x + np.ones((), dtype))


def test_small_integers() -> None:
    x = np.arange(8).astype(ml_dtypes.int4)
    check(lambda x: (x + x, x * x, jnp.sum(x), lax.max(x, x - x)), x)


def test_values_of_rank_0_beside_others() -> None:
    check(
        lambda x, s: (lax.mul(x, s), lax.add(s, s), lax.lt(s, x), lax.select(lax.lt(s, s), s, s)),
        F32,
        np.float32(3).reshape(()),
    )


def test_several_results_views_and_constants() -> None:
    def f(x: Any) -> Any:
        a, b = lax.split(x, (1, 2), axis=1)
        return a.T, jnp.sort(b), x[::-1], np.arange(3.0), x, 1.5, lax.broadcast_in_dim(a, (4, 2, 3), (1, 2))

    check(f, F32)


def test_equations_without_operands_or_results() -> None:
    check(
        lambda x: (lax.iota(np.int32, 3), lax.broadcasted_iota(np.float32, (2, 3), 1) + x, lax.add(x, np.float32(1))),
        F32,
    )
    nothing = Primitive(f"host_function_test.p{next(_numbers)}", multiple_results=True, abstract_eval=lambda: [])
    impl_rules.register(nothing, list)
    check(lambda x: nothing.bind() or x * 2, F32)


def test_loops_and_branches_inside() -> None:
    def f(x: Any) -> Any:
        c, ys = lax.scan(lambda c, row: (c + row, c * 2), x[0], x)
        return lax.cond(c[0] > 0, jnp.sin, jnp.cos, c), ys, lax.fori_loop(0, 4, lambda i, v: v + i, c)

    check(f, F32)


def test_values_are_freed_after_their_last_use() -> None:
    p = unary(lambda x: x + 1)

    def f(x: Any) -> Any:
        for _ in range(4):
            x = lax.abs(p.bind(lax.neg(p.bind(x))))
        return x

    x = np.ones(100_000, np.float32)
    closed = check(f, x)
    tracemalloc.start()
    eval_jaxpr_on_host(closed, [x])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.5 * x.nbytes  # an operand and a result


def test_what_is_long_or_has_effects_is_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    check(lambda x: [x := x + 1 for _ in range(300)][-1], F32, written=False)

    def f(x: Any) -> Any:
        cj.debug.print("once")
        return x + 1

    check(f, F32, written=False)
    assert capsys.readouterr().out.count("once") == 1 + MANY


def test_arguments_of_other_types_are_refused() -> None:
    closed = check(lambda x: lax.mul(x, x), F32)
    with pytest.raises(TypeError, match=r"takes \(f32\[2,3\]\) was given \(f64\[2,3\]\)"):
        eval_jaxpr_on_host(closed, [F32.astype(np.float64)])
    with pytest.raises(TypeError, match=r"takes \(f32\[2,3\]\) was given \(f32\[3\]\)"):
        eval_jaxpr_on_host(closed, [F32[0]])


def test_an_error_names_the_primitive_and_its_line() -> None:
    failing: list[Exception] = []

    def rule(x: Any) -> Any:
        if failing:
            raise failing[0]
        return x * 2

    p = unary(rule)
    closed = check(lambda x: p.bind(x) + 1, F32)
    failing.append(ValueError("no such value"))
    with pytest.raises(ValueError, match="no such value") as caught:
        eval_jaxpr_on_host(closed, [F32])
    [note] = [n for n in caught.value.__notes__ if p.name in n]
    assert "test_codegen.py" in note
    failing.clear()
    np.testing.assert_array_equal(eval_jaxpr_on_host(closed, [F32])[0], F32 * 2 + 1)


def test_a_broken_promise_is_found() -> None:
    kind = [np.float32]
    p = unary(lambda x: (x * 2).astype(kind[0]))
    closed = check(lambda x: p.bind(x) + 1, F32)
    kind[0] = np.float64
    with pytest.raises(TypeError, match=f"{p.name}.*its impl rule returned float64"):
        eval_jaxpr_on_host(closed, [F32])


@pytest.mark.parametrize("ufunc_before", [False, True])
def test_a_rule_that_writes_to_its_operand_is_refused(ufunc_before: bool) -> None:
    def rule(x: Any) -> Any:
        x += 1
        return x

    p = unary(rule)
    closed = cj.make_jaxpr(lambda x: p.bind(-x if ufunc_before else x))(F32)
    for _ in range(MANY):
        with pytest.raises(ValueError, match="read-only"):
            eval_jaxpr_on_host(closed, [F32.copy()])


def test_memory_that_a_rule_keeps_is_copied() -> None:
    kept = np.zeros((2, 3), np.float32)

    def rule(x: Any) -> Any:
        kept[...] = x
        return kept

    p = unary(rule)
    closed = check(lambda x: p.bind(x), F32)
    [out] = eval_jaxpr_on_host(closed, [F32])
    kept[...] = 7
    np.testing.assert_array_equal(out, F32)


def test_another_rule_is_obeyed() -> None:
    p = unary(lambda x: x + np.float32(1))
    closed = check(lambda x: p.bind(x), F32)
    impl_rules.register(p, lambda x: x + np.float32(2), override=True)
    np.testing.assert_array_equal(eval_jaxpr_on_host(closed, [F32])[0], F32 + 2)


def test_watchers_are_told_of_each_rule() -> None:
    closed = check(lambda x: lax.sin(lax.mul(x, x)), F32)
    seen: list[str] = []
    with observe.watching(lambda step, begins: seen.append(step.primitive.name) if begins else None):
        for _ in range(MANY):
            eval_jaxpr_on_host(closed, [F32])
    assert seen == ["mul", "sin"] * MANY


# -- rules that are prepared ---------------------------------------------------------------------------------------


def test_a_prepared_rule_runs_in_programs_that_run_often() -> None:
    asked: list[Any] = []

    def prepared(avals: list[ShapedArray], *, n: int) -> Any:
        asked.append((avals, n))
        return (lambda x: x * np.float32(n)) if n else None

    def rule(x: Any, *, n: int) -> Any:
        return x * np.float32(n)

    p = unary(rule, prepared=prepared)
    check(lambda x: p.bind(x, n=3), F32)
    assert {(avals[0], n) for avals, n in asked} == {(ShapedArray((2, 3), np.float32), 3)}
    check(lambda x: p.bind(x, n=0), F32)
    f = remembered(lambda x: p.bind(p.bind(x, n=2), n=2))
    for _ in range(2 * MANY):
        np.testing.assert_array_equal(f(jnp.asarray(F32)), F32 * 4)


def test_what_preparing_raises_names_the_primitive() -> None:
    def prepared(avals: Any, **params: Any) -> Any:
        raise ValueError("cannot prepare")

    p = unary(lambda x: x + np.float32(1), prepared=prepared)
    closed = cj.make_jaxpr(lambda x: p.bind(x))(F32)
    with pytest.raises(ValueError, match="cannot prepare") as caught:
        for _ in range(MANY):
            eval_jaxpr_on_host(closed, [F32])
    assert any(p.name in note for note in caught.value.__notes__)


EXTREMES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.49999997, 2.5, 1e-45, -1e-40, 1e38, np.inf, -np.inf, np.nan, 8388609.0]
PARAMS = {
    "round": {"rounding_method": lax.RoundingMethod.AWAY_FROM_ZERO},
    "broadcast_in_dim": {"shape": (2, 15, 3), "broadcast_dimensions": (1,)},
    "integer_pow": {"y": 3},
    **{name: {"axis": 0, "reverse": False} for name in ("cumsum", "cumprod", "cummax", "cummin")},
}


def _prepared_primitives() -> list[str]:
    jnp.sin(1.0)
    rules = {name: impl_rules.rule_of(p) for name, p in primitives.items() if "." not in name}
    return sorted(name for name, rule in rules.items() if rule is not None and rule.flags.get("prepared"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, np.uint8, np.bool_, np.complex64])
def test_what_is_prepared_is_what_the_rule_gives(dtype: Any) -> None:
    """Of every primitive of this repository that has it, bit by bit, on values where functions differ."""
    found = 0
    with np.errstate(all="ignore"):
        values = np.array(EXTREMES).astype(dtype)
    for name in _prepared_primitives():
        p = primitives[name]
        params = PARAMS.get(name, {"axes": (0,)} if name.startswith("reduce_") else {})
        rule, prepare = impl_rules.rule_of(p).fn, impl_rules.rule_of(p).flags["prepared"]
        pairs = tuple(np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values, values))
        for operands in ((values,), pairs, (pairs[0] != 0, *pairs)):
            avals = [ShapedArray(x.shape, x.dtype) for x in operands]
            try:
                promised = p.abstract(tuple(avals), params)
            except (TypeError, ValueError):
                continue
            fast = prepare(avals, **params)
            if fast is None:
                continue
            found += 1
            with np.errstate(all="ignore"):
                got, wanted = np.asarray(fast(*operands)), np.asarray(rule(*operands, **params))
            assert got.dtype == wanted.dtype == promised[0].dtype, name
            assert got.tobytes() == wanted.tobytes(), name
    assert found > 5


# -- HostCode ------------------------------------------------------------------------------------------------------


def coded(text: str, rule: Callable[..., Any], **how: Any) -> Primitive:
    """A primitive of one operand whose rule is lines of code."""
    return unary(rule, prepared=lambda avals: HostCode(text, **how))


def test_lines_in_place_of_a_call() -> None:
    calls = []

    def rule(x: Any) -> Any:
        calls.append(x.shape)
        return np.exp(x) + 1

    p = coded("{out} = {exp}({0})\n{add}({out}, {one}, {out})", rule, exp=np.exp, add=np.add, one=np.ones((), "f"))
    q = coded("{out} = {0}[::-1]", lambda x: x[::-1])
    # Memory is used again only where no variable and no view of it is read any more.
    check(lambda x: (q.bind(p.bind(x)), p.bind(q.bind(p.bind(x)) + 1) * 2), F32)
    check(lambda x: [y := p.bind(x), q.bind(y), lax.neg(y), lax.neg(lax.neg(y)) + q.bind(y)], F32)
    assert len(calls) < 7 * (MANY + 1)
    assert repr(HostCode("{out} = {0}")) == "HostCode('{out} = {0}')"


def test_operands_and_arguments_are_not_written_over() -> None:
    p = coded("{out} = {0}", lambda x: x)

    def f(x: Any, y: Any) -> Any:
        a = p.bind(x)
        b = lax.neg(a)  # of which c is a name
        c = p.bind(b)
        return lax.exp(a), lax.exp(b), lax.sin(c), lax.exp(lax.exp(y))

    x, y = F32.copy(), F32.copy()
    check(f, x, y)
    np.testing.assert_array_equal(x, F32)
    np.testing.assert_array_equal(y, F32)


def test_operands_are_not_written_to() -> None:
    p = Primitive(f"host_function_test.p{next(_numbers)}", abstract_eval=lambda x, y: x)
    code = HostCode("{out} = {add}({0}, {1})\n{out} += 0", add=np.add)
    impl_rules.register(p, np.add, prepared=lambda avals: code)
    q = coded("{out} = {0}[::-1]", lambda x: x[::-1])

    def f(x: Any) -> Any:
        a = lax.neg(x)
        b = p.bind(a, x)
        c = p.bind(x, b)
        d, e = lax.neg(x), lax.exp(x)
        view = q.bind(d)
        return c, p.bind(d, e), view, p.bind(e, e), p.bind(lax.exp(e), e), p.bind(c, b)

    check(f, F32)


def test_numbers_of_rank_0() -> None:
    p = Primitive(f"host_function_test.p{next(_numbers)}", abstract_eval=lambda x: ShapedArray((), x.dtype))
    code = HostCode("{out} = {reduce}({0}, None)", scalar=True, reduce=np.add.reduce)
    impl_rules.register(p, lambda x: np.asarray(x.sum()), prepared=lambda avals: code)
    assert type(code(F32)) is np.ndarray and code(F32).shape == ()
    q = unary(lambda x: np.asarray(x * 2))

    def f(x: Any) -> Any:
        s = p.bind(x)
        t = (s + 1) / (s - 2.5) * s - s
        return s, t, q.bind(t), lax.sqrt(t), x * t, lax.neg(t)

    check(f, F32)
    check(f, F32.astype(np.float64))
    over_zero = remembered(lambda x: p.bind(x) / lax.mul(p.bind(x), jnp.float32(0)))
    assert all(np.isinf(over_zero(jnp.asarray(F32))) for _ in range(MANY + 3))  # and nobody is warned


def test_arguments_that_are_results_have_memory_of_their_own() -> None:
    f = remembered(lambda x: (x, x + 1, [x]))
    x = jnp.asarray(F32)
    for i in range(MANY + 3):
        a, b, [c] = f(x)
        for y in (a, c):
            np.testing.assert_array_equal(y, F32)
            assert i < 2 or not np.shares_memory(np.asarray(y), np.asarray(x))  # the function itself runs twice
        np.testing.assert_array_equal(b, F32 + 1)
    large = jnp.zeros(1 << 16)
    keep = remembered(lambda x: x.reshape(x.shape))
    assert all(np.shares_memory(np.asarray(keep(large)), np.asarray(large)) for _ in range(MANY + 3))


def test_a_rule_that_changes_is_seen_by_calls_that_were_written_out() -> None:
    p = unary(np.negative)
    f = remembered(lambda x: lax.mul(p.bind(x), x))
    x = jnp.asarray(F32)
    for _ in range(MANY + 3):
        np.testing.assert_array_equal(f(x), -F32 * F32)
    impl_rules.register(p, np.exp, override=True)
    for _ in range(MANY + 3):
        np.testing.assert_array_equal(f(x), np.exp(F32) * F32)


def test_what_depends_on_no_argument_is_computed_once() -> None:
    calls = []

    def counted(x: Any) -> Any:
        calls.append(x)
        return x + 1

    p = unary(counted)

    def f(x: Any) -> Any:
        known = p.bind(lax.iota(np.float32, 3))
        return x + known, known, jnp.sum(known)

    check(f, F32)
    assert len(calls) == codegen.RUNS  # before it is written out, and then once
    function = remembered(lambda x: f(x)[1])
    first, second = ([function(jnp.asarray(F32)) for _ in range(2 * MANY)])[-2:]
    np.testing.assert_array_equal(first, [1, 2, 3])
    assert not np.shares_memory(np.asarray(first), np.asarray(second))
