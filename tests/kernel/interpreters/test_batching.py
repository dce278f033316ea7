"""The batching interpreter: boxes, rules, helpers for rules, derived rules, higher order."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.errors import MissingRuleError
from corejax.extend import Array, Primitive, ShapedArray, move_batch_axis
from corejax.extend.transforms import BatchTracer, align_batch_axes, batch_flat, mapped_aval, unmapped_aval
from tests.kernel.toys import (
    add,
    bare_p,
    broadcast_p,
    call,
    greater,
    moments_p,
    mul,
    ordered_p,
    print_p,
    printed,
    sin,
    sincos_p,
    sum_,
    swap_p,
)

pytestmark = pytest.mark.usefixtures("toys")
X = np.arange(6, dtype=np.float32).reshape(2, 3)
V = np.array([1.0, -2.0, 0.5], np.float32)


def test_values_that_are_not_mapped_are_not_boxed():
    seen = []

    def f(x, v):
        seen.extend([type(x), type(v), type(sin(v)), type(add(x, v))])
        return [x, v, sin(v)]

    outs, dims = batch_flat(f, 2, [X, V], [0, None])
    assert seen == [BatchTracer, np.ndarray, Array, BatchTracer]
    assert dims == [0, None, None] and outs[1] is V
    assert type(outs[0]) is Array and np.array_equal(outs[0], X)


def test_tracer_shows_one_element():
    seen = []

    def f(x):
        seen.extend([x.shape, x.ndim, x.size, x.dtype, len(x), repr(x)])
        return x

    cj.vmap(f)(X)
    assert seen[:5] == [(3,), 1, 3, np.float32, 3]
    assert seen[5].startswith("BatchTracer(float32[3], batched=Array(") and seen[5].endswith("batch_dim=0)")


def test_weak_types_pass_through():
    seen = []
    weak = cj.vmap(lambda x: 2.0)(V)
    assert weak.aval is ShapedArray((3,), np.float32, True)
    cj.vmap(lambda x: seen.append(x.aval) or add(x, 1.0))(weak)
    assert seen == [ShapedArray((), np.float32, True)]
    assert cj.vmap(sin)(weak).weak_type and not cj.vmap(lambda x, v: mul(x, v))(weak, V).weak_type
    closed = cj.make_jaxpr(cj.vmap(sin))(weak)
    assert closed.in_avals == closed.out_avals == [weak.aval]


def test_avals_of_batches():
    a = ShapedArray((3, 4), np.float32, True)
    assert unmapped_aval(5, 1, a) is ShapedArray((3, 5, 4), np.float32, True)
    assert mapped_aval(unmapped_aval(5, 2, a), 2) is a
    assert unmapped_aval(5, None, a) is a and mapped_aval(a, None) is a


def test_move_batch_axis():
    assert move_batch_axis(2, 0, 0, X) is X
    np.testing.assert_array_equal(move_batch_axis(2, 0, 1, X), X.T)
    np.testing.assert_array_equal(move_batch_axis(2, None, 1, V), np.stack([V, V], 1))


@pytest.mark.parametrize(
    "shapes, dims, shape, dim",
    [
        ([(2, 3), (3,)], [0, None], [(2, 3), (2, 3)], 0),
        ([(3, 2), (3,)], [1, None], [(3, 2), (3, 2)], 1),
        ([(2, 3), (3, 2)], [0, 1], [(2, 3), (2, 3)], 0),
        ([(2,), (3,)], [0, None], [(2, 3), (2, 3)], 0),
        ([(3,), (2,)], [None, 0], [(2, 3), (2, 3)], 0),
        ([(2,), (3, 2)], [0, 1], [(3, 2), (3, 2)], 1),
        ([(2,), ()], [0, None], [(2,), ()], 0),
        ([(2,), (2,)], [0, 0], [(2,), (2,)], 0),
        ([(2, 3), ()], [0, None], [(2, 3), ()], 0),
        ([(3, 2, 4), (2,)], [1, 0], [(3, 2, 4), (3, 2, 4)], 1),
    ],
)
def test_align_batch_axes(shapes, dims, shape, dim):
    vals = [np.random.default_rng(0).normal(size=s).astype(np.float32) for s in shapes]
    out, got = align_batch_axes(2, vals, dims)
    assert ([np.shape(x) for x in out], got) == (shape, dim)
    total = np.asarray(out[0]) + np.asarray(out[1])
    for i in range(2):
        elements = [x if d is None else np.take(x, i, d) for x, d in zip(vals, dims, strict=True)]
        np.testing.assert_array_equal(np.take(total, i, dim), elements[0] + elements[1])


def test_scalars_mix_without_a_broadcast():
    closed = cj.make_jaxpr(cj.vmap(lambda x: add(mul(x, 2.0), 1.0)))(X)
    assert [e.primitive.name for e in closed.eqns] == ["toy.mul", "toy.add"]


def test_multiple_results():
    s, c = cj.vmap(sincos_p.bind, in_axes=1)(X)
    np.testing.assert_allclose([s, c], [np.sin(X.T), np.cos(X.T)], rtol=1e-6)
    a, b = cj.vmap(lambda x: swap_p.bind(x, V))(X)
    np.testing.assert_array_equal(a, [V, V])
    np.testing.assert_array_equal(b, X)


def test_effects():
    cj.vmap(lambda x: (print_p.bind(x), x)[1])(V)
    cj.vmap(lambda x: (print_p.bind(V), x)[1])(V)  # not mapped: once
    assert printed == [[V.tolist()], [V.tolist()]]


def test_rule_derived_from_a_decomposition():
    total, weighted = cj.vmap(lambda x: moments_p.bind(x, V, weight=2.0))(X)
    np.testing.assert_allclose(total, X @ V)
    np.testing.assert_allclose(weighted, 2 * np.sin(X), rtol=1e-6)


def test_higher_order_knows_which_outputs_are_mapped():
    f = call(lambda x, v: (mul(x, v), sin(v), 2.0))
    outs, dims = batch_flat(lambda x, v: f(x, v), 2, [X, V], [0, None])
    assert dims == [0, None, None]
    np.testing.assert_allclose(outs[0], X * V)
    closed = cj.make_jaxpr(cj.vmap(f, (0, None), (0, None, None)))(X, V)
    assert [a.shape for a in closed.out_avals] == [(2, 3), (3,), ()]


def test_a_primitive_that_is_not_mapped_needs_no_rule():
    np.testing.assert_array_equal(cj.vmap(lambda x: add(x, bare_p.bind(V)))(X), X + V)
    with pytest.raises(MissingRuleError, match=r"toy.ordered.*no vmap rule"):
        cj.vmap(ordered_p.bind)(X)


def test_collectives_reach_their_rule_even_if_not_mapped():
    seen = []

    def rule(axis_size, vals, dims, *, axis_name):
        seen.append((axis_size, dims))
        x = vals[0] if dims[0] is not None else broadcast_p.bind(vals[0], shape=(axis_size,), axes=(0,))
        return sum_(x, 0), None

    psum = Primitive("toy.psum", tags=("collective",), abstract_eval=lambda a, *, axis_name: a, vmap=rule)
    f = cj.vmap(lambda x: mul(x, psum.bind(x, axis_name="i")), axis_name="i")
    np.testing.assert_allclose(f(V), V * V.sum(), rtol=1e-6)
    np.testing.assert_allclose(cj.vmap(lambda x: psum.bind(1.0, axis_name="i"), out_axes=None, axis_name="i")(V), 3.0)
    assert seen == [(3, [0]), (3, [None])]


def test_comparison_gives_booleans():
    out = cj.vmap(lambda x: greater(x, V))(X)
    assert out.dtype == np.bool_
    np.testing.assert_array_equal(out, X > V)


def test_iteration_and_unpacking_under_vmap():
    np.testing.assert_array_equal(cj.vmap(lambda x: [a for a in x if True][1])(X), X[:, 1])
    _, b, _ = cj.vmap(lambda x: tuple(x))(X)
    np.testing.assert_array_equal(b, X[:, 1])


def test_names_of_functions_are_kept():
    def f(x):
        """Doc."""
        return x

    for g in (cj.vmap(f), cj.grad(f), cj.value_and_grad(f), cj.make_jaxpr(f)):
        assert g.__name__ == "f" and g.__wrapped__ is f
    assert "Doc." in cj.vmap(f).__doc__ and "Doc." in cj.grad(f).__doc__
