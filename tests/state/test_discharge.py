"""Primitives on references: the rule kind `discharge`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import jit, lax, new_ref
from corejax.extend import Example, ShapedArray, find_primitive, jvp_rules
from corejax.extend.plugins import isolated_plugins
from corejax.ref import RefPrimitive, discharge_rules
from corejax_state.verification import DISCHARGE
from corejax_testing.runner import run_check
from tests.value_types import dense, symmetric


@pytest.fixture
def isolated() -> Iterator[None]:
    with isolated_plugins():
        yield


def _push(buffer: Any, end: Any, x: Any) -> tuple[Any, None]:
    """Append a value to a ring buffer."""
    return (buffer.at[end % len(buffer)].set(x), end + 1), None


def _adam(param: Any, m: Any, v: Any, grad: Any, *, lr: float) -> tuple[Any, Any]:
    m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
    step = lr * m / (jnp.sqrt(v) + 1e-3)
    return (param - step, m, v), (step**2).sum()


push_p = RefPrimitive("test.push", ("buffer", "end", "x"), writes=("buffer", "end"), discharge=_push)
adam_p = RefPrimitive("test.adam", ("param", "m", "v", "grad"), writes=("param", "m", "v"), discharge=_adam)
dot_p = RefPrimitive("test.dot", ("a", "b"), reads=("a", "b"), discharge=lambda a, b: ((), a @ b))
both_p = RefPrimitive(
    "test.both",
    ("total", "x"),
    writes=("total",),
    multiple_results=True,
    discharge=lambda total, x: ([total + x], [total, x]),
)


def push(buffer: Any, end: Any, x: Any) -> None:
    push_p.bind(buffer, end, x)


def push_by_indexing(buffer: Any, end: Any, x: Any) -> None:
    buffer[end[...] % buffer.shape[0]] = x
    end[...] += 1


def program(push: Any, x: Any) -> Any:
    """Push in a scan, a branch and a mapped function, and return a scalar."""
    buffer, end = new_ref(jnp.zeros(3)), new_ref(0)

    def body(carry: Any, y: Any) -> Any:
        push(buffer, end, jnp.sin(carry * y))
        lax.cond(carry > 0, lambda: push(buffer, end, carry), lambda: None)
        return carry + buffer[0], buffer[...].sum()

    total, ys = lax.scan(corejax.checkpoint(body), x, jnp.arange(4.0))
    buffers, ends = new_ref(jnp.ones((2, 3)) * x), new_ref(jnp.array([1, 5]))
    corejax.vmap(push, in_axes=(0, 0, None))(buffers, ends, total)
    lax.fori_loop(0, 2, lambda i, _: push(buffers.at[i], ends.at[i], total * i), None)
    return (ys * jnp.arange(4.0)).sum() + (buffers[...] ** 2).sum() + buffer[...] @ jnp.arange(3.0)


TRANSFORMATIONS = {
    "eager": lambda f: f,
    "jit": jit,
    "grad": corejax.grad,
    "jit of grad": lambda f: jit(corejax.grad(f)),
    "grad of jit": lambda f: corejax.grad(jit(f)),
    "jvp": lambda f: lambda x: corejax.jvp(f, (x,), (2.0,))[1],
    "hessian": corejax.hessian,
    "linearize": lambda f: lambda x: corejax.linearize(f, x)[1](3.0),
    "vmap": lambda f: lambda x: corejax.vmap(f)(jnp.stack([x, 2 * x])),
    "vmap of grad": lambda f: lambda x: corejax.vmap(corejax.grad(f))(jnp.stack([x, 2 * x])),
    "jit of vmap of jit": lambda f: lambda x: jit(corejax.vmap(jit(f)))(jnp.stack([x, -x])),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_does_what_indexing_does(transformation: str) -> None:
    transform = TRANSFORMATIONS[transformation]
    got, wanted = (transform(lambda x, p=p: program(p, x))(jnp.asarray(0.7)) for p in (push, push_by_indexing))
    np.testing.assert_allclose(got, wanted, rtol=2e-5)


def test_references_of_the_enclosing_functions() -> None:
    buffer, end = new_ref(jnp.zeros(3)), new_ref(0)
    push(buffer, end, 1.0)
    jit(lambda x: push_p.bind(buffer, end, x))(2.0)
    jit(push)(buffer, end, 3.0)
    lax.scan(lambda _, x: (None, push(buffer, end, x)), None, jnp.array([4.0, 5.0]))
    np.testing.assert_array_equal(buffer[...], [4, 5, 3])
    assert end[...] == 5


def test_results_params_and_reads() -> None:
    param, m, v = (new_ref(jnp.zeros(2)) for _ in range(3))
    step = jit(lambda grad: adam_p.bind(param, m, v, grad, lr=0.1))
    assert step(jnp.ones(2)).shape == ()
    assert adam_p.bind(param, m, v, jnp.ones(2), lr=0.2).shape == ()
    expected = np.zeros(2), np.zeros(2), np.zeros(2)
    for lr in (0.1, 0.2):
        expected = _adam(*map(jnp.asarray, expected), jnp.ones(2), lr=lr)[0]
    for ref, value in zip((param, m, v), expected, strict=True):
        np.testing.assert_allclose(ref[...], value, rtol=1e-6)
    np.testing.assert_allclose(dot_p.bind(m, m), m[...] @ m[...])
    total = new_ref(1.0)
    assert both_p.bind(total, 2.0) == [1.0, 2.0]
    assert total[...] == 3.0
    assert push_p.bind(new_ref(jnp.zeros(3)), new_ref(0), 1.0) is None


def test_keys_and_value_types() -> None:
    def scale(matrix: Any, key: Any, x: Any) -> Any:
        key, used = corejax.random.split(key)
        return (symmetric(x * dense(matrix)), key), corejax.random.uniform(used)

    scale_p = RefPrimitive("test.scale", ("matrix", "key", "x"), writes=("matrix", "key"), discharge=scale)
    ref, key = new_ref(symmetric(jnp.eye(2))), new_ref(corejax.random.key(0))
    draws = [scale_p.bind(ref, key, 2.0), jit(lambda x: scale_p.bind(ref, key, x))(3.0)]
    draws += lax.scan(lambda _, x: (None, scale_p.bind(ref, key, x)), None, jnp.array([1.0, 2.0]))[1].tolist()
    assert len(set(map(float, draws))) == 4
    np.testing.assert_array_equal(dense(ref[...]), 12 * np.eye(2))


def test_programs_show_the_primitive_of_arrays() -> None:
    text = str(corejax.make_jaxpr(lambda x: program(push, x))(1.0))
    assert "test.push" in text and "Ref" not in text
    primitive = find_primitive("test.push")
    assert primitive is push_p.primitive and RefPrimitive.of(primitive) is push_p
    assert RefPrimitive.of(find_primitive("sin")) is None
    buffer, end = primitive.bind(jnp.zeros(2), jnp.asarray(3), 7.0)
    np.testing.assert_array_equal(buffer, [0, 7])
    assert end == 4


def test_another_rule_for_the_primitive_of_arrays(isolated: None) -> None:
    @jvp_rules.register(dot_p.primitive)
    def dot_jvp(primals: Any, tangents: Any) -> Any:
        return dot_p.primitive.bind(*primals), [7 * (tangents[0] @ primals[1])]

    gradient = corejax.grad(lambda x: dot_p.bind(new_ref(x), new_ref(x)))(jnp.arange(2.0))
    np.testing.assert_array_equal(gradient, [0, 7])


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "cond in scan"])
def test_no_loop_copies_a_reference(loop: str) -> None:
    buffer, end = new_ref(jnp.zeros(1000)), new_ref(0)

    def fill() -> None:
        if loop == "fori_loop":
            lax.fori_loop(0, 10, lambda i, _: push(buffer, end, 1.0 * i), None)
        elif loop == "scan":
            lax.scan(lambda _, x: (None, push(buffer, end, x)), None, jnp.arange(10.0))
        else:
            lax.scan(
                lambda _, x: (None, lax.cond(x > 3, lambda: push(buffer, end, x), lambda: None)), None, jnp.arange(10.0)
            )

    compiled = jit(fill).lower().compile()
    text = compiled.as_text()
    assert "input_output_alias" in text
    assert not [line for line in text.splitlines() if " copy(" in line and "f32[1000]" in line.split("copy(")[0]]
    assert compiled.memory_analysis()["temp"] < 1000


# -- errors ------------------------------------------------------------------------------------------------------------


def test_a_written_reference_passed_twice() -> None:
    ref = new_ref(jnp.zeros(3))
    with pytest.raises(
        ValueError, match=r"test.adam: Ref\(.*passed twice, as 'param' and as 'v', and .* writes 'param'"
    ):
        adam_p.bind(ref, new_ref(jnp.zeros(3)), ref, jnp.ones(3), lr=0.1)
    with pytest.raises(ValueError, match=r"passed twice, as 'buffer' and as 'end'"):
        push_p.bind(ref.at[:2], ref.at[2], 1.0)
    assert dot_p.bind(ref, ref) == 0.0


def test_operands_of_the_wrong_kind() -> None:
    ref = new_ref(jnp.zeros(3))
    with pytest.raises(TypeError, match=r"test.push: argument 'end' is .*i32\[\], and has to be a reference"):
        push_p.bind(ref, jnp.asarray(0), 1.0)
    with pytest.raises(
        TypeError, match=r"test.push: argument 'x' is .*, and has to be an array: pass its value, ref\["
    ):
        push_p.bind(ref, new_ref(0), ref)
    with pytest.raises(TypeError, match=r"test.push takes 3 operands \('buffer', 'end', 'x'\), got 2"):
        push_p.bind(ref, ref)


def test_references_that_cannot_be_used() -> None:
    end, frozen, kept = new_ref(0), new_ref(jnp.zeros(3)), []
    corejax.freeze(frozen)
    jit(lambda x: kept.append(new_ref(x)) or x)(jnp.zeros(3))
    for ref, problem in ((frozen, "is frozen, by freeze at"), (kept[0], "has escaped from the function")):
        with pytest.raises(ValueError, match=f"^test.push: argument 'buffer': Ref.*{problem}"):
            push_p.bind(ref, end, 1.0)
    assert end[...] == 0


def test_values_of_inner_transformations_are_refused() -> None:
    buffer, end = new_ref(jnp.zeros(3)), new_ref(0)

    def loss(x: Any) -> Any:
        push(buffer, end, x)
        return x

    with pytest.raises(
        ValueError, match=r"test.push: argument 'buffer': cannot write to Ref.*grad, inside the function"
    ):
        corejax.grad(loss)(1.0)
    assert end[...] == 0  # an error leaves all references unchanged
    corejax.grad(lambda x: loss(lax.stop_gradient(x)))(1.0)
    assert end[...] == 1
    constant = new_ref(jnp.zeros(3), kind="no_grad_no_remat")
    corejax.grad(lambda x: push_p.bind(constant, end, x) or x)(2.0)
    assert constant[1] == 2.0


WRONG = {
    "forgets a reference": (
        lambda a, b, x: ((a,), None),
        r"a tuple of 1 as new values: return a tuple with the new value of each reference .* \('a', 'b'\)",
    ),
    "shape": (lambda a, b, x: ((a, b[:1]), None), r"f32\[1\] as the new value of 'b', which holds f32\[2\]"),
    "dtype": (lambda a, b, x: ((a.astype(int), b), None), r"i32\[2\] as the new value of 'a', which holds f32\[2\]"),
    "value type": (
        lambda a, b, x: ((a, symmetric(jnp.eye(2))), None),
        r"Symmetric.* as the new value of 'b', which holds f32\[2\]",
    ),
    "no array": (lambda a, b, x: ((a, None), None), "None of type NoneType as the new value of 'b'"),
    "no pair": (lambda a, b, x: [a, b, x], r"a list of 3 instead of a pair \(new_values, out\)"),
    "several results": (lambda a, b, x: ((a, b), (x, x)), "a tuple of 2 as out, instead of an array or None"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_rule(mistake: str, isolated: None) -> None:
    rule, problem = WRONG[mistake]
    wrong_p = RefPrimitive("test.wrong", ("a", "b", "x"), writes=("a", "b"), discharge=rule)
    a, b = new_ref(jnp.zeros(2)), new_ref(jnp.ones(2))
    message = rf"primitive 'test.wrong': its discharge rule \(from .*test_discharge.py.*\) returned .*{problem}"
    for call in (wrong_p.bind, jit(wrong_p.bind)):
        with pytest.raises(TypeError, match=message):
            call(a, b, 1.0)
    np.testing.assert_array_equal(a[...], [0, 0])


def test_a_missing_rule_and_an_override(isolated: None) -> None:
    set_p = RefPrimitive("test.set", ("ref", "x"), writes=("ref",), doc="Replace the value.")
    ref = new_ref(0.0)
    with pytest.raises(
        corejax.errors.MissingRuleError, match=r"(?s)has no discharge rule.*@discharge_rules.register\("
    ):
        set_p.bind(ref, 1.0)

    @discharge_rules.register(set_p.primitive)
    def rule(value: Any, x: Any) -> Any:
        return [x], None

    set_p.bind(ref, 1)  # a number takes the dtype of the reference
    assert ref[...] == 1.0 and ref.dtype == jnp.float32
    discharge_rules.register(find_primitive("test.set"), lambda value, x: ([x], value), override=True)
    assert set_p.bind(ref, 2.0) == 1.0
    assert ref[...] == 2.0


@pytest.mark.parametrize(
    "arguments", [{}, {"writes": ("c",)}, {"writes": ("a", "a")}, {"writes": ("a",), "reads": ("a",)}]
)
def test_declarations(arguments: Any, isolated: None) -> None:
    with pytest.raises(ValueError, match=r"primitive 'test\.declared'"):
        RefPrimitive("test.declared", ("a", "b"), **arguments)
    with pytest.raises(ValueError, match="a name twice"):
        RefPrimitive("test.declared", ("a", "a"), writes=("a",))


# -- threads -----------------------------------------------------------------------------------------------------------


def test_threads_that_update_one_reference() -> None:
    """Compiled calls reuse the memory of the value, so that only one of them may take it at a time."""
    total, calls = new_ref(jnp.zeros(100)), 200
    start = threading.Barrier(4)

    def work(k: int) -> None:
        @jit
        def add(x: Any) -> None:
            total[...] += x + k

        compiled = add.lower(1.0).compile() if k % 2 else add
        start.wait(60)
        for _ in range(calls):
            compiled(1.0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(total[...], np.full(100, calls * (4 + 6)))


# -- the kit -----------------------------------------------------------------------------------------------------------

EXAMPLE = Example([ShapedArray((2,), np.float32), ShapedArray((2,), np.float32), ShapedArray((), np.float32)])


def _verified(rule: Any) -> Any:
    primitive = RefPrimitive("test.verified", ("a", "b", "x"), writes=("a", "b"), discharge=rule).primitive
    return run_check(primitive, DISCHARGE, [EXAMPLE], quick=False, examples_required=True)


def test_the_kit_passes_a_right_rule(isolated: None) -> None:
    assert _verified(lambda a, b, x: ((a * x, b + a), x)).status == "passed"
    operand = Example([ShapedArray((2,), np.float32)])
    result = run_check(lax.sin_p, DISCHARGE, [operand], quick=False, examples_required=True)
    assert result.status == "not applicable" and "takes no references" in result.message


@pytest.mark.parametrize("mistake", ["forgets a reference", "shape", "dtype", "no array"])
def test_the_kit_names_the_mistake(mistake: str, isolated: None) -> None:
    rule, problem = WRONG[mistake]
    result = _verified(rule)
    assert (result.status, result.rule) == ("failed", "discharge")
    assert re.search(problem, result.message), result.message


def test_the_kit_finds_rules_that_depend_on_more_than_their_operands(isolated: None) -> None:
    calls: list[None] = []

    def rule(a: Any, b: Any, x: Any) -> Any:
        calls.append(None)
        return (a + len(calls), b), None

    result = _verified(rule)
    assert (result.status, result.rule) == ("failed", "discharge")
    assert "by the rule" in result.message
