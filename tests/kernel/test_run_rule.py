"""Rules that give something else than they have to: the error names the primitive, the rule, what came, what has to."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import corejax as cj
from corejax.extend import Primitive, ShapedArray
from corejax.extend.messages import DerivedRuleWarning
from corejax.extend.plugins import isolated_plugins
from corejax.extend.transforms import trace_stack
from tests.kernel.toys import mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
M = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def isolated():
    with isolated_plugins(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DerivedRuleWarning)
        yield


def double(**rules):
    """A primitive of one operand with some rules."""
    given = {"impl": lambda x: 2 * x, "abstract_eval": lambda x: x.strip_weak_type(), **rules}
    return Primitive("acme.double", **given)


def refused(call, *words, error=TypeError):
    with pytest.raises(error) as info:
        call()
    text = "\n".join([str(info.value), *getattr(info.value, "__notes__", ())])
    for word in ("acme.double", *words):
        assert word in text, f"{word!r} is not in:\n{text}"
    assert len(trace_stack()) == 1
    np.testing.assert_allclose(cj.vmap(cj.grad(sin))(X), np.cos(X), rtol=1e-6)


JVP = {
    "one value": (lambda p, t: p[0], "a pair (out, tangent_out)", "f32[3] instead of"),
    "nothing": (lambda p, t: None, "a pair (out, tangent_out)", "None"),
    "a list for one tangent": (lambda p, t: (p[0], t), "tangent", "list"),
    "another shape": (lambda p, t: (p[0], sum_(t[0])), "f32[]", "f32[3]"),
    "another dtype": (lambda p, t: (p[0], np.ones(3, np.int32)), "i32[3]", "f32[3]"),
    "a text": (lambda p, t: (p[0], "zero"), "'zero'"),
}


@pytest.mark.parametrize("way", [lambda f: cj.jvp(f, (X,), (X,)), lambda f: cj.linearize(f, X), cj.make_jaxpr])
@pytest.mark.parametrize("name", JVP)
def test_jvp(name, way):
    rule, *words = JVP[name]
    p = double(jvp=rule)
    if way is cj.make_jaxpr:
        refused(lambda: cj.make_jaxpr(cj.grad(lambda x: sum_(p.bind(x))))(X), "JVP rule", "module tests", *words)
    else:
        refused(lambda: way(p.bind), "JVP rule", "module tests", *words)


VMAP = {
    "one value": (lambda n, v, d: v[0], "a pair (out, dim_out)", "f32[2,3] instead of"),
    "a list": (lambda n, v, d: ([v[0]], [0]), "list"),
    "no such axis": (lambda n, v, d: (v[0], 5), "f32[2,3]", "axis 5"),
    "an axis from the end": (lambda n, v, d: (v[0], -2), "f32[2,3]", "axis -2"),
    "an axis of another length": (lambda n, v, d: (v[0], 1), "f32[2,3]", "axis 1", "length 2"),
    "no number": (lambda n, v, d: (v[0], "0"), "axis '0'"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, cj.make_jaxpr])
@pytest.mark.parametrize("name", VMAP)
def test_vmap(name, wrap):
    rule, *words = VMAP[name]
    p = double(vmap=rule)
    refused(lambda: wrap(cj.vmap(p.bind))(M), "vmap rule", "module tests", *words)


TRANSPOSE = {
    "one value": (lambda ct, x, y: ct, "[ct or None for each of 2 operands]", "f32[3] instead of"),
    "too few": (lambda ct, x, y: [ct], "[ct or None for each of 2 operands]", "1"),
    "nothing": (lambda ct, x, y: None, "[ct or None for each of 2 operands]", "None"),
    "another shape": (lambda ct, x, y: [sum_(ct), None], "operand 0", "f32[]", "f32[3]"),
    "another dtype": (lambda ct, x, y: [np.ones(3, np.float64), None], "operand 0", "f64[3]", "f32[3]"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, cj.make_jaxpr])
@pytest.mark.parametrize("name", TRANSPOSE)
def test_transpose(name, wrap):
    rule, *words = TRANSPOSE[name]
    p = Primitive(
        "acme.double",
        impl=lambda x, y: x * y,
        abstract_eval=lambda x, y: x.strip_weak_type(),
        linear_in=(0,),
        transpose=rule,
        jvp=lambda primals, tangents: (p.bind(*primals), p.bind(tangents[0], primals[1])),
    )
    refused(lambda: wrap(cj.grad(lambda x: sum_(p.bind(x, X))))(X), "transpose rule", "module tests", *words)


def test_several_results():
    p = double(
        multiple_results=True,
        impl=lambda x: [x, x],
        abstract_eval=lambda x: [x, x],
        jvp=lambda primals, tangents: (primals * 2, tangents),
        vmap=lambda n, vals, dims: (vals * 2, dims),
        transpose=lambda cts, x: cts,
    )
    refused(lambda: cj.jvp(lambda x: p.bind(x), (X,), (X,)), "JVP rule", "2 results and 1 tangents")
    refused(lambda: cj.vmap(p.bind)(M), "vmap rule", "2 results and 1 batching")


def test_a_rule_of_other_arguments():
    def typed(x, n):
        return x

    p = Primitive("acme.double", impl=lambda x, n: 2 * x, abstract_eval=typed, jvp=lambda p, t: (p[0], t[0]))
    for call in (lambda: p.bind(X, m=1), lambda: p.bind(X), lambda: p.bind(X, X, X), lambda: cj.make_jaxpr(p.bind)(X)):
        refused(call, "abstract-eval rule", "typed", "module tests")
    refused(lambda: cj.jvp(lambda x: p.bind(x, n=1), (X,), (X,)), "the call of the JVP rule", "argument 'n'")


def test_errors_in_a_decomposition_name_the_primitive():
    broken = double(impl=None, abstract_eval=None, decomposition=lambda x: sin(x) if 1 / 0 else x)
    for call in (lambda: broken.bind(X), lambda: cj.make_jaxpr(broken.bind)(X), lambda: cj.vmap(broken.bind)(M)):
        refused(call, "decomposition of primitive 'acme.double'", "module tests", error=ZeroDivisionError)
    forgot = double(impl=None, abstract_eval=None, decomposition=lambda x: None)
    refused(lambda: forgot.bind(X), "decomposition", "None")
    several = double(impl=None, abstract_eval=None, decomposition=lambda x: (x, x))
    refused(lambda: several.bind(X), "decomposition", "multiple_results=True")
    single = double(impl=None, abstract_eval=None, multiple_results=True, decomposition=sin)
    refused(lambda: single.bind(X), "decomposition", "sequence of results")


def test_python_numbers_from_an_impl():
    def give(value, dtype):
        return Primitive("acme.double", impl=lambda x: value, abstract_eval=lambda x: ShapedArray((), dtype)).bind(X)

    for value, dtype in [(3, np.int32), (True, np.bool_), (2.5, np.float32), (3, np.float32), (1j, np.complex64)]:
        assert give(value, dtype).dtype == dtype and np.asarray(give(value, dtype)) == value
    for value, dtype in [(2.5, np.int32), (3, np.bool_), (1j, np.float32), (300, np.int8), (True, np.float32)]:
        refused(lambda value=value, dtype=dtype: give(value, dtype), "impl rule", str(value))


def test_an_impl_that_gives_nothing():
    refused(lambda: double(impl=lambda x: None).bind(X), "impl rule returned None")
    refused(lambda: double(impl=lambda x: SimpleNamespace()).bind(X), "impl rule returned", "SimpleNamespace")


def test_declarations_are_checked():
    for given, word in [
        ({"linear_in": 0}, "linear_in"),
        ({"linear_in": ("x",)}, "linear_in"),
        ({"linear_in": (-1,)}, "linear_in"),
        ({"effects": (3,)}, "effects"),
        ({"tags": (3,)}, "tags"),
    ]:
        refused(lambda given=given: double(**given), word)
    assert double(linear_in=[0]).linear_in == (0,)


def test_a_rule_may_give_numpy_arrays():
    p = double(
        jvp=lambda p, t: (2 * p[0], np.full(3, 2.0, np.float32)), vmap=lambda n, v, d: (np.asarray(v[0]) * 2, d[0])
    )
    np.testing.assert_array_equal(cj.jvp(p.bind, (X,), (X,))[1], np.full(3, 2))
    np.testing.assert_array_equal(cj.vmap(p.bind)(M), 2 * M)
    assert mul is not None


def test_what_is_missing_of_a_linear_primitive():
    p = double(linear_in=(0,))
    refused(
        lambda: cj.jvp(p.bind, (X,), (X,)), "JVP rule", "deflinear(primitive, transpose)", error=NotImplementedError
    )
    with pytest.raises(NotImplementedError) as info:
        cj.jvp(Primitive("acme.other", impl=lambda x: x, abstract_eval=lambda x: x).bind, (X,), (X,))
    assert "deflinear" not in str(info.value)
