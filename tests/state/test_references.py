"""What a reference does: indexing, dtypes, pytrees, compiled calls, errors."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

import corejax
import corejax.numpy as jnp
from corejax import lax
from tests.value_types import dense, symmetric


@given(st.data())
def test_indexing_is_numpys(data: Any) -> None:
    array = data.draw(hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=st.just(1)))
    array = np.arange(array.size, dtype=np.float32).reshape(array.shape)
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=False))
    ref = corejax.new_ref(array)
    np.testing.assert_array_equal(ref[index], array[index])
    array[index] = array[index] * 2 + 1
    ref[index] = ref[index] * 2 + 1
    np.testing.assert_array_equal(ref[...], array)
    ref[index] = -1.0
    array[index] = -1.0
    np.testing.assert_array_equal(ref[...], array)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "float16", "float64", "complex64"])
def test_dtypes(dtype: str) -> None:
    ref = corejax.new_ref(jnp.zeros((2, 0, 3), dtype))
    assert (ref.dtype, ref.shape, ref.ndim, ref.size) == (jnp.dtype(dtype), (2, 0, 3), 3, 0)
    ref = corejax.new_ref(jnp.zeros(2, dtype))
    ref[0] = jnp.ones((), dtype)
    ref[1] = True if dtype == "bool" else 1
    np.testing.assert_array_equal(np.asarray(ref[...]), np.ones(2, jnp.dtype(dtype)))


def test_the_functions_of_the_namespace() -> None:
    ref = corejax.new_ref(jnp.arange(4.0))
    assert corejax.ref.get(ref, 1) == 1
    corejax.ref.set(ref, slice(2, 4), 7.0)
    np.testing.assert_array_equal(corejax.ref.swap(ref, slice(0, 2), jnp.ones(2)), [0, 1])
    corejax.ref.addupdate(ref, jnp.array([3, 3]), 1.0)
    np.testing.assert_array_equal(corejax.ref.get(ref), [1, 1, 7, 9])
    corejax.ref.addupdate(ref, None, 1.0)
    ref.addupdate(1.0)
    ref.at[2:].addupdate(2.0, jnp.array([0, 0]))
    np.testing.assert_array_equal(corejax.ref.freeze(ref), [3, 3, 13, 11])


def test_views_read_and_write_the_reference() -> None:
    ref = corejax.new_ref(jnp.zeros((3, 4)))
    row = ref.at[1]
    part = row.at[1:3]
    part[...] = 2.0
    part[0] += 1.0
    assert (row.shape, part.shape, part.dtype) == ((4,), (2,), jnp.float32)
    np.testing.assert_array_equal(ref[1], [0, 3, 2, 0])
    np.testing.assert_array_equal(corejax.jit(lambda: part[...] + row[1:3])(), [6, 4])


def test_key_arrays() -> None:
    ref = corejax.new_ref(corejax.random.key(0))

    @corejax.jit
    def draw() -> Any:
        ref[...], key = corejax.random.split(ref[...])
        return corejax.random.uniform(key)

    assert draw() != draw()


def test_run_state() -> None:
    def fun(refs: Any) -> None:
        refs["total"][...] = refs["x"][...].sum()

    out = corejax.ref.run_state(fun)({"x": jnp.arange(3.0), "total": 0.0})
    assert out["total"] == 3.0


# -- compiled calls ----------------------------------------------------------------------------------------------------


def test_one_trace_for_references_of_one_type() -> None:
    traces = []

    @corejax.jit
    def step(ref: corejax.Ref, x: Any) -> Any:
        traces.append(None)
        ref[0] += x
        return ref[...].sum()

    refs = [corejax.new_ref(jnp.zeros(2)) for _ in range(3)]
    for i, ref in enumerate(refs):
        assert step(ref, float(i)) == i
        step(ref, 1.0)
    assert [float(ref[0]) for ref in refs] == [1, 2, 3]
    assert len(traces) == 1
    step(corejax.new_ref(jnp.zeros(3)), 1.0)
    assert len(traces) == 2


def test_calls_do_not_keep_references() -> None:
    step = corejax.jit(lambda ref: ref[...])
    ref = corejax.new_ref(jnp.zeros(2))
    step(ref)
    alive = weakref.ref(ref)
    del ref
    gc.collect()
    assert alive() is None
    np.testing.assert_array_equal(step(corejax.new_ref(jnp.ones(2))), [1, 1])


def test_closed_over_references_are_read_at_each_call() -> None:
    ref = corejax.new_ref(1.0)
    f = corejax.jit(lambda x: x * ref[...])
    assert f(2.0) == 2.0
    ref[...] = 3.0
    assert f(2.0) == 6.0


def test_loops_update_the_memory_in_place() -> None:
    ref = corejax.new_ref(jnp.zeros(1000))

    @corejax.jit
    def fill(n: Any) -> None:
        def body(i: Any, _: Any) -> None:
            ref[i] = ref[i + 1] + 1.0

        lax.fori_loop(0, n, body, None)

    compiled = fill.lower(10).compile()
    text = compiled.as_text()
    assert "input_output_alias" in text
    assert not [line for line in text.splitlines() if " copy(" in line and "f32[1000]" in line.split("copy(")[0]]
    assert compiled.memory_analysis()["temp"] < 1000
    compiled(10)
    assert ref[0] == 1.0


def _write(ref: corejax.Ref, i: Any) -> None:
    ref[i] = ref[i + 1] + 1.0


LOOPS = {
    "scan": lambda ref: lax.scan(lambda _, i: (None, _write(ref, i)), None, jnp.arange(10)),
    "while_loop": lambda ref: lax.while_loop(lambda i: i < 10, lambda i: (_write(ref, i), i + 1)[1], 0),
    "cond in scan": lambda ref: lax.scan(
        lambda _, i: (None, lax.cond(i % 2 == 0, lambda: _write(ref, i), lambda: None)), None, jnp.arange(10)
    ),
    "jit in loop": lambda ref: lax.fori_loop(0, 10, lambda i, _: corejax.jit(_write)(ref, i), None),
    "nested": lambda ref: lax.fori_loop(
        0, 10, lambda i, _: lax.fori_loop(0, 10, lambda j, _: _write(ref, i + j), None), None
    ),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_no_loop_copies_a_reference(loop: str) -> None:
    ref = corejax.new_ref(jnp.zeros(1000))
    compiled = corejax.jit(lambda: (LOOPS[loop](ref), None)[1]).lower().compile()
    text = compiled.as_text()
    assert "input_output_alias" in text
    assert not [line for line in text.splitlines() if " copy(" in line and "f32[1000]" in line.split("copy(")[0]]
    assert compiled.memory_analysis()["temp"] < 1000


def test_values_that_were_read_stay_as_they_were() -> None:
    ref = corejax.new_ref(jnp.zeros(2))

    @corejax.jit
    def step() -> None:
        ref[0] += 1.0

    step()
    before = ref[...]
    step()
    step()
    np.testing.assert_array_equal(before, [1, 0])
    initial = jnp.ones(3)
    other = corejax.new_ref(initial)
    corejax.jit(lambda: other.__setitem__(0, 5.0))()
    np.testing.assert_array_equal(initial, [1, 1, 1])


def test_two_references_with_one_value_and_arrays_beside_them() -> None:
    first, second = corejax.new_ref(jnp.zeros(3)), corejax.new_ref(jnp.zeros(3))

    @corejax.jit
    def assign(x: Any) -> Any:
        first[...] = x
        second[...] = x
        return first[...]

    @corejax.jit
    def change() -> None:
        first[...] += 1
        second[...] += 2

    @corejax.jit
    def exchange() -> None:
        first[...], second[...] = second[...], first[...]

    x = jnp.arange(3.0)
    result = assign(x)
    change()
    exchange()
    change()
    np.testing.assert_array_equal(first[...], [3, 4, 5])
    np.testing.assert_array_equal(second[...], [3, 4, 5])
    for unchanged in (x, result):
        np.testing.assert_array_equal(unchanged, [0, 1, 2])


def test_threads_trace_functions_that_use_one_reference() -> None:
    ref, count = corejax.new_ref(0.0), 8
    together = threading.Barrier(count)

    def work(k: int) -> Any:
        @corejax.jit
        def f(x: Any) -> Any:
            before = ref[...] + x
            together.wait(30)  # all threads are inside of the traced function
            return before + ref[...] + k

        return f(float(k))

    with ThreadPoolExecutor(count) as pool:
        assert [float(x) for x in pool.map(work, range(count))] == [2.0 * k for k in range(count)]
    ref[...] = 5.0
    assert ref[...] == 5.0


def test_a_callback_does_not_use_what_its_program_reuses() -> None:
    """The memory is the program's until it returns; waiting for it would never end."""
    ref, calls = corejax.new_ref(jnp.zeros(3)), corejax.new_ref(0)
    read = corejax.jit(lambda: ref[0])
    count = corejax.jit(lambda: calls.__setitem__(..., calls[...] + 1))

    def callback(use: Any) -> None:
        count()
        if use:
            with pytest.raises(ValueError, match=r"reuses the memory of f32\[3\]"):
                ref[...]
            with pytest.raises(ValueError, match=r"reuses the memory of f32\[3\]"):
                read()
            read()

    @corejax.jit
    def step(use: Any) -> None:
        corejax.debug.callback(callback, use)
        ref[...] += 1.0

    step(False)
    with pytest.raises(
        ValueError, match=r"a compiled call that has not returned reuses the memory of f32\[3\], made at"
    ):
        step(True)
    assert calls[...] == 2


def test_make_jaxpr_and_eval_shape_show_the_value_as_argument_and_result() -> None:
    ref = corejax.new_ref(jnp.zeros(3))

    def f(x: Any) -> Any:
        ref[...] = ref[...] * x
        return x

    assert str(corejax.make_jaxpr(f)(1.0)).splitlines()[0].startswith("{ lambda ; a:~f32[] b:f32[3].")
    assert corejax.eval_shape(f, 1.0).shape == ()
    np.testing.assert_array_equal(ref[...], np.zeros(3))


def test_several_references_in_several_operators() -> None:
    refs = [corejax.new_ref(float(i)) for i in range(4)]

    @corejax.jit
    def f(n: Any) -> Any:
        def cond(i: Any) -> Any:
            return i < n + refs[3][...].astype(int)

        def body(i: Any) -> Any:
            lax.cond(i % 2 == 0, lambda: refs[0].__setitem__(..., refs[1][...]), lambda: refs[2].__setitem__(..., 9.0))
            return i + 1

        return lax.while_loop(cond, body, 0)

    assert f(0) == 3
    assert [float(ref[...]) for ref in refs] == [1, 1, 9, 3]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_dtypes_and_shapes_that_do_not_fit() -> None:
    ref = corejax.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"dtype int32 to Ref.*holds float32: write value.astype\('float32'\)"):
        ref[0] = jnp.arange(3)[0]
    with pytest.raises(ValueError, match=r"shape \(2,\) to Ref.*shape \(3,\)"):
        ref[...] = jnp.zeros(2)
    whole = corejax.new_ref(jnp.arange(3))
    with pytest.raises(ValueError, match=r"write value.astype\('int32'\)"):
        whole[...] += 1.5


def test_values_of_another_value_type() -> None:
    x = jnp.eye(2)
    ref, array = corejax.new_ref(symmetric(x)), corejax.new_ref(x)
    with pytest.raises(ValueError, match=r"a value of type f32\[2,2\] to Ref.*, which holds Symmetric\[f32\[2,2\]\]"):
        ref[...] = x
    with pytest.raises(ValueError, match=r"(?s)a value of type Symmetric.* which holds f32.*write a value of that"):
        array[...] = symmetric(x)
    ref[...] = symmetric(2 * x)
    np.testing.assert_array_equal(dense(ref[...]), 2 * x)


def test_values_of_inner_transformations_are_refused() -> None:
    ref = corejax.new_ref(jnp.zeros(3))

    def write(x: Any) -> Any:
        ref[...] = x
        return x.sum()

    for transform in (corejax.grad, corejax.vmap, lambda f: corejax.jit(corejax.grad(f))):
        with pytest.raises(ValueError, match=r"cannot write to Ref.*(grad|vmap), inside the function that made"):
            transform(write)(jnp.ones((3, 3)) if transform is corejax.vmap else jnp.ones(3))
    corejax.grad(lambda x: write(lax.stop_gradient(x)) * x.sum())(jnp.ones(3))
    np.testing.assert_array_equal(ref[...], np.ones(3))


def test_values_of_enclosing_functions_are_constants() -> None:
    x = jnp.asarray(2.0)  # no weak type: writing it binds no primitive, so that the tracer itself is stored

    @corejax.jit
    def in_branch_of_loop(x: Any) -> Any:
        ref = corejax.new_ref(jnp.zeros(()))

        def body(i: Any, y: Any) -> Any:
            z = y * x
            lax.cond(y > 0, lambda: ref.__setitem__(..., z), lambda: None)
            return z

        lax.fori_loop(0, 3, body, x)
        return ref[...]

    def square(y: Any) -> Any:
        ref = corejax.new_ref(y)
        ref[...] = x_outer[0]
        return ref[...] * y

    x_outer: list[Any] = []

    @corejax.jit
    def in_derivative_in_loop(x: Any) -> Any:
        x_outer[:] = [x]
        return lax.fori_loop(0, 2, lambda i, y: y + corejax.jvp(square, (y,), (y,))[1], x)

    @corejax.jit
    def in_batch_in_loop(x: Any) -> Any:
        x_outer[:] = [x]
        return lax.fori_loop(0, 2, lambda i, y: y + corejax.vmap(square)(jnp.stack([y, y])).sum(), x)

    assert in_branch_of_loop(x) == 16.0
    assert in_derivative_in_loop(x) == 18.0
    assert in_batch_in_loop(x) == 50.0
    assert corejax.grad(in_branch_of_loop)(x) == 32.0


def test_references_are_not_differentiated() -> None:
    ref = corejax.new_ref(2.0)
    calls = (
        lambda: corejax.grad(lambda r: r[...] ** 2)(ref),
        lambda: corejax.value_and_grad(lambda x, r: x * r["a"][...], (0, 1))(1.0, {"a": ref}),
        lambda: corejax.vjp(lambda r: r[...] ** 2, ref),
        lambda: corejax.jvp(lambda r: r[...] ** 2, (ref,), (ref,)),
        lambda: corejax.jacrev(lambda r: r[...] ** 2)(ref),
    )
    for call in calls:
        with pytest.raises(TypeError, match=r"the argument Ref\(2.* is a reference, which has no derivative"):
            call()
    assert corejax.grad(lambda r, x: r[...] * x, argnums=1)(ref, 3.0) == 2.0


def test_references_that_escape() -> None:
    kept: list[Any] = []
    corejax.jit(lambda x: kept.append(corejax.new_ref(x)) or x)(1.0)
    with pytest.raises(ValueError, match="has escaped from the function that made it"):
        kept[0][...]
    outer = corejax.new_ref(1.0)
    for f in (corejax.new_ref, lambda x: outer):
        with pytest.raises(ValueError, match="returned Ref"):
            corejax.jit(f)(1.0)


def test_frozen_and_freed_references() -> None:
    ref, other = corejax.new_ref(1.0), corejax.empty_ref(corejax.ShapeDtypeStruct((2,), np.float32))
    assert corejax.freeze(ref) == 1.0
    corejax.free_ref(other)
    with pytest.raises(ValueError, match=r"is frozen, by freeze at .*test_references.py"):
        ref[...] = 2.0
    with pytest.raises(ValueError, match="is freed, by free_ref at"):
        other[...]
    outer = corejax.new_ref(1.0)
    with pytest.raises(ValueError, match="belongs to an enclosing function"):
        corejax.jit(lambda: corejax.freeze(outer))()
    assert outer[...] == 1.0


def test_references_passed_twice() -> None:
    ref = corejax.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"is passed twice, as argument 0 and as argument 1\['b'\]:"):
        corejax.jit(lambda x, y: None)(ref, {"b": ref})
    with pytest.raises(ValueError, match="is passed twice, as argument 0 and as argument 'y':"):
        corejax.vmap(lambda x, y: None)(ref, y=ref)
    with pytest.raises(ValueError, match="as an argument and used by it from outside"):
        corejax.jit(lambda x: x[...] + ref[...])(ref)


def test_the_condition_of_a_loop_does_not_write() -> None:
    ref = corejax.new_ref(0)

    def cond(x: Any) -> Any:
        ref[...] += 1
        return x < 3

    with pytest.raises(ValueError, match=r"cond at .* may read Ref.*, but not write it: write it in body_fun"):
        lax.while_loop(cond, lambda x: x + 1, 0)


def test_what_a_reference_is_not() -> None:
    ref = corejax.new_ref(jnp.zeros(2))
    for use in (lambda: bool(ref), lambda: list(ref), lambda: pickle.dumps(ref), lambda: corejax.new_ref(ref)):
        with pytest.raises(TypeError, match="Ref"):
            use()
    with pytest.raises(TypeError, match="expected a reference"):
        corejax.freeze(jnp.zeros(2))
    with pytest.raises(ValueError, match="kind"):
        corejax.new_ref(1.0, kind="fast")
    assert repr(ref) == "Ref([0., 0.], dtype=float32)"
    kind = corejax.typeof(ref)
    assert kind == corejax.ref.AbstractRef(ref.aval)
    mapped = []
    corejax.vmap(lambda ref: mapped.append(corejax.typeof(ref)))(ref)
    assert str(mapped[0]) == "Ref{float32[]}"
    assert (str(kind), kind.str_short(short_dtypes=True)) == ("Ref{float32[2]}", "Ref{f32[2]}")
    assert (kind.shape, kind.dtype, kind.ndim, kind.size) == ((2,), jnp.float32, 1, 2)
    assert len(ref) == 2
    assert corejax.tree.leaves((ref, 1)) == [1]


def test_after_an_error_the_reference_is_as_before() -> None:
    ref = corejax.new_ref(1.0)

    def fails(x: Any) -> Any:
        ref[...] = x
        raise RuntimeError("on purpose")

    for f in (corejax.jit(fails), lambda x: lax.scan(lambda c, x: fails(x), 0.0, jnp.ones(2)), corejax.vmap(fails)):
        with pytest.raises((RuntimeError, ValueError)):
            f(jnp.asarray(2.0) if f is not corejax.vmap else jnp.ones(2))
    assert ref[...] == 1.0


@pytest.mark.parametrize("use", [jnp.sin, np.asarray, jnp.asarray, np.sin, lax.neg, lambda ref: jnp.ones(2) + ref])
def test_a_reference_is_not_an_array(use: Any) -> None:
    """JAX refuses it as well: operations take the value, which an index reads."""
    ref = corejax.new_ref(jnp.ones(2))
    for fun in (use, corejax.jit(use), lambda ref: corejax.jit(lambda: use(ref))()):
        with pytest.raises(TypeError, match=r"is a reference, not an array: pass its value, ref\[...\]"):
            fun(ref)
