"""Autodidax, part 1: transformations as interpreters: standard evaluation, jvp, and vmap.

The tests give the numbers that the tutorial prints, on `corejax.lax` and on the tutorial's own primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from corejax import jvp, vmap
from corejax.extend import jvp_flat, vmap_rules
from corejax.extend.transforms import trace_stack
from corejax.interpreters.evaluation import EvalTrace
from corejax.interpreters.jvp import JVPTrace
from tests.seeds import autodidax_primitives as own
from tests.seeds.printed import printed


def the_function(ops: Any) -> Callable[[Any], Any]:
    """`f`, which the tutorial differentiates throughout."""

    def f(x: Any) -> Any:
        y = ops.mul(ops.sin(x), 2.0)
        z = ops.add(ops.neg(y), x)
        return z

    return f


def jvp_v1(f: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The tutorial's first `jvp`: arrays in, one array out."""
    (out,), (tangent_out,) = jvp_flat(lambda *args: [f(*args)], primals, tangents)
    return out, 0.0 if tangent_out is None else tangent_out


def deriv(f: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: jvp_v1(f, (x,), (1.0,))[1]


# -- evaluation ------------------------------------------------------------------------------------


def test_evaluation(ops: Any) -> None:
    assert printed(the_function(ops)(3.0)) == "2.7177599838802657"


def test_evaluation_is_at_the_bottom_of_the_stack(ops: Any) -> None:
    stacks = []

    def f(x: Any) -> Any:
        stacks.append([type(trace) for trace in trace_stack()])
        return ops.sin(x)

    f(3.0)
    jvp_v1(f, (3.0,), (1.0,))
    jvp_v1(lambda x: jvp_v1(f, (x,), (1.0,))[1], (3.0,), (1.0,))
    assert stacks == [[EvalTrace], [EvalTrace, JVPTrace], [EvalTrace, JVPTrace, JVPTrace]]


# -- jvp -------------------------------------------------------------------------------------------


def test_jvp_of_sin(ops: Any) -> None:
    x = 3.0
    _, sin_deriv_at_3 = jvp_v1(ops.sin, (x,), (1.0,))
    assert printed(sin_deriv_at_3) == printed(ops.cos(3.0)) == "-0.9899924966004454"


def test_jvp_of_f(ops: Any) -> None:
    x, xdot = 3.0, 1.0
    y, ydot = jvp_v1(the_function(ops), (x,), (xdot,))
    assert printed(y) == "2.7177599838802657"
    assert printed(ydot) == "2.979984993200891"


def test_nested_derivatives(ops: Any) -> None:
    sin = ops.sin
    assert printed(deriv(sin)(3.0)) == "-0.9899924966004454"
    assert printed(deriv(deriv(sin))(3.0)) == "-0.1411200080598672"
    assert printed(deriv(deriv(deriv(sin)))(3.0)) == "0.9899924966004454"
    assert printed(deriv(deriv(deriv(deriv(sin))))(3.0)) == "0.1411200080598672"


def test_python_control_flow_in_differentiated_functions(ops: Any) -> None:
    def f(x: Any) -> Any:
        if ops.greater(x, 0.0):  # Python control flow
            return ops.mul(2.0, x)
        else:
            return x

    assert printed(deriv(f)(3.0)) == "2.0"
    assert printed(deriv(f)(-3.0)) == "1.0"


def test_python_control_flow_with_operators(wide: None) -> None:
    def f(x: Any) -> Any:
        if x > 0.0:
            return 2.0 * x
        else:
            return x

    assert [printed(deriv(f)(3.0)), printed(deriv(f)(-3.0))] == ["2.0", "1.0"]


def test_pytree_outputs(ops: Any) -> None:
    def f(x: Any) -> Any:
        y = ops.mul(ops.sin(x), 2.0)
        z = ops.add(ops.neg(y), x)
        return {"hi": z, "there": [x, y]}

    x, xdot = 3.0, 1.0
    y, ydot = jvp(f, (x,), (xdot,))
    assert numbers(y) == "{'hi': 2.7177599838802657, 'there': [3.0, 0.2822400161197344]}"
    assert numbers(ydot) == "{'hi': 2.979984993200891, 'there': [1.0, -1.9799849932008908]}"


def numbers(tree: dict[str, Any]) -> str:
    """A tree as the tutorial prints it: there the leaves are NumPy's scalars."""
    return str({"hi": float(tree["hi"]), "there": [float(x) for x in tree["there"]]})


# -- vmap ------------------------------------------------------------------------------------------


def test_vmap_of_add_one_to_a_scalar(ops: Any) -> None:
    def add_one_to_a_scalar(scalar: Any) -> Any:
        assert np.ndim(scalar) == 0
        return ops.add(1.0, scalar)

    vector_in = np.arange(3.0)
    vector_out = vmap(add_one_to_a_scalar, (0,))(vector_in)
    assert printed(vector_in) == "[0. 1. 2.]"
    assert printed(vector_out) == "[1. 2. 3.]"


def jacfwd(f: Callable[..., Any], x: Any) -> Any:
    """The tutorial's `jacfwd`."""
    pushfwd = lambda v: jvp(f, (x,), (v,))[1]
    vecs_in = np.eye(np.size(x)).reshape(np.shape(x) * 2)
    return vmap(pushfwd, (0,))(vecs_in)


JACOBIAN = [[1.0, 0.0, -0.0], [0.0, 0.54030231, -0.0], [0.0, 0.0, -0.41614684]]


def test_jacfwd(ops: Any) -> None:
    jacobian = jacfwd(lambda x: ops.sin(x), np.arange(3.0))
    np.testing.assert_allclose(jacobian, JACOBIAN, atol=5e-9)
    np.testing.assert_array_equal(np.signbit(jacobian), np.signbit(JACOBIAN))


@pytest.fixture
def rules_of_the_tutorial(wide: None) -> Iterator[None]:
    """The tutorial's own batching rule of `add` and `mul`, which forgets that it moved an axis."""
    rules = {p: vmap_rules.table[p] for p in (own.add_p, own.mul_p)}
    try:
        for primitive, op in ((own.add_p, own.add), (own.mul_p, own.mul)):
            vmap_rules.table[primitive] = partial(own.as_the_tutorial_prints, op)
        yield
    finally:
        vmap_rules.table.update(rules)


def test_what_the_tutorial_prints_with_its_own_batching_rule(rules_of_the_tutorial: None) -> None:
    """An output that counts as not mapped is broadcast there: that is why the tutorial shows one axis too many.

    Here the rule is told that what it gives is no result for one element.
    """
    with pytest.raises(TypeError, match=r"vmap rule .* returned Array f64\[3\], the same for every .* f64\[\]"):
        vmap(lambda scalar: own.add(1.0, scalar), (0,))(np.arange(3.0))
    with pytest.raises(TypeError, match=r"'autodidax.(mul|add)': its vmap rule"):
        jacfwd(own.sin, np.arange(3.0))


def test_vmap_of_a_reduction(ops: Any) -> None:
    """Not shown in the tutorial, which gives the rule: each axis and each batching dimension."""
    x = np.arange(24.0).reshape(2, 3, 4)
    for dim in range(3):
        for axis in range(2):
            out = vmap(lambda row, axis=axis: ops.reduce_sum(row, axis), (dim,))(x)
            np.testing.assert_array_equal(out, np.moveaxis(x, dim, 0).sum(axis + 1))


def test_the_other_primitives(ops: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(ops.transpose(x, [1, 0]), x.T)
    np.testing.assert_array_equal(ops.broadcast(np.arange(3.0), (2, 3), [0]), [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(ops.broadcast(np.arange(2.0), (2, 3), [1]), [[0] * 3, [1] * 3])
    np.testing.assert_array_equal(ops.reduce_sum(x, 0), [3, 5, 7])
    np.testing.assert_array_equal(ops.greater(x, 2.0), x > 2)
