"""`defvectorized` and `defbroadcasting`: batching rules of elementwise primitives, against one element at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corejax as cj
from corejax.extend import Primitive, ShapedArray, defbroadcasting, defvectorized
from corejax.extend.plugins import isolated_plugins

pytestmark = pytest.mark.usefixtures("toys")
N = 3


@pytest.fixture(autouse=True)
def isolated():
    with isolated_plugins():
        yield


def broadcast(*avals):
    return ShapedArray(np.broadcast_shapes(*(a.shape for a in avals)), avals[0].dtype)


def array(rng, shape):
    return rng.normal(size=shape).astype(np.float32)


SHAPES = [(), (1,), (4,), (2, 1), (1, 4), (2, 4), (3,), (3, 3), (3, 1, 4)]


def fit(shapes):
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("shapes", [s for s in itertools.product(SHAPES, SHAPES) if fit(s)])
def test_operands_that_broadcast(shapes):
    sub = Primitive("acme.sub", impl=np.subtract, abstract_eval=broadcast)
    defbroadcasting(sub)
    rng = np.random.default_rng(0)
    places = [[None, *range(len(s) + 1)] for s in shapes]
    for dims in itertools.product(*places):
        if dims == (None, None):
            continue
        args = [array(rng, s if d is None else (*s[:d], N, *s[d:])) for s, d in zip(shapes, dims, strict=True)]
        rows = [
            np.subtract(*(x if d is None else np.take(x, i, d) for x, d in zip(args, dims, strict=True)))
            for i in range(N)
        ]
        np.testing.assert_array_equal(cj.vmap(sub.bind, in_axes=dims)(*args), np.stack(rows), err_msg=str(dims))


def one_shape(x, y):
    if x.shape != y.shape:
        raise TypeError(f"acme.sub takes operands of one shape, got {x.str_short()} and {y.str_short()}")
    return x.strip_weak_type()


@pytest.mark.parametrize("aval", [one_shape, lambda x, y: x.strip_weak_type()])
@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0)])
def test_scalars_of_a_primitive_that_takes_one_shape(aval, dims):
    sub = Primitive("acme.sub", impl=np.subtract, abstract_eval=aval)
    defbroadcasting(sub)
    args = [np.float32(2) if d is None else np.arange(N, dtype=np.float32) for d in dims]
    for apply in (sub.bind, cj.vmap(sub.bind, in_axes=(None, None), axis_size=2)):
        out = cj.vmap(apply, in_axes=dims)(*args)
        np.testing.assert_array_equal(
            out, np.subtract(*args) if out.ndim == 1 else np.subtract(*args)[:, None] + np.zeros(2)
        )


def test_three_operands_two_results_and_a_nest():
    both = Primitive(
        "acme.both",
        multiple_results=True,
        impl=lambda x, y, z: [x + y * z, np.broadcast_arrays(x, y, z)[0].copy()],
        abstract_eval=lambda *avals: [broadcast(*avals)] * 2,
    )
    defbroadcasting(both)
    rng = np.random.default_rng(0)
    x, y, z = array(rng, (5, N, 4)), array(rng, (2, 1, N)), array(rng, (5,))
    outs = cj.vmap(cj.vmap(both.bind, in_axes=(0, 2, None)), in_axes=(0, None, 0))(x, y, z)
    wanted = np.stack([np.stack([x[i, j] + y[:, :, j] * z[i] for j in range(N)]) for i in range(5)])
    np.testing.assert_allclose(outs[0], wanted, rtol=1e-6)
    np.testing.assert_array_equal(outs[1], np.broadcast_to(x[:, :, None], wanted.shape))


def test_broadcasting_of_another_kind_is_refused():
    def rows(x, y):  # one number for each row
        return ShapedArray(x.shape, x.dtype)

    scale = Primitive("acme.scale", impl=lambda x, y: x * y[:, None], abstract_eval=rows)
    defbroadcasting(scale)
    x, y = np.ones((N, 2, 4), np.float32), np.ones((N, 2), np.float32)
    with pytest.raises((TypeError, ValueError)) as info:
        cj.vmap(scale.bind)(x, y)
    assert "acme.scale" in str(info.value) + str(info.value.__notes__ if hasattr(info.value, "__notes__") else "")


def test_vectorized_with_several_results():
    p = Primitive(
        "acme.frexp", multiple_results=True, impl=np.frexp, abstract_eval=lambda x: [x, x.update(dtype=np.int32)]
    )
    defvectorized(p)
    x = array(np.random.default_rng(0), (2, N, 5))
    for axis in range(3):
        mantissa, exponent = cj.vmap(p.bind, in_axes=axis, out_axes=axis)(x)
        np.testing.assert_array_equal(mantissa, np.frexp(x)[0])
        np.testing.assert_array_equal(exponent, np.frexp(x)[1])
    nest = cj.vmap(cj.vmap(p.bind, in_axes=1), in_axes=1)(x)
    np.testing.assert_array_equal(nest[1], np.moveaxis(np.frexp(x)[1], (1, 2), (0, 1)))
    assert "frexp" in str(cj.make_jaxpr(cj.vmap(p.bind))(x))


def test_vectorized_is_for_one_operand():
    p = Primitive("acme.sub", impl=np.subtract, abstract_eval=broadcast)
    defvectorized(p)
    with pytest.raises(TypeError, match=r"acme.sub.*defbroadcasting"):
        cj.vmap(p.bind, in_axes=(0, 1))(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
