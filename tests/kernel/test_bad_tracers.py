"""Tracers used where they cannot be: after their transformation, or where a concrete value is needed."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from collections.abc import Hashable

import numpy as np
import pytest

import corejax as cj
from corejax.errors import (
    ConcretizationTypeError,
    MissingRuleError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from corejax.extend import Primitive
from corejax.extend.transforms import trace_stack
from tests.kernel.toys import add, bare_p, call, jacrev, mul, ordered_p, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
saved = []


def leak(x):
    saved.append(mul(sin(x), x))
    return sum_(x)


LINE = f"{__file__}:{inspect.getsourcelines(leak)[1]}"
LEAKS = {
    "jvp": lambda: cj.jvp(leak, (X,), (X,)),
    "vjp": lambda: cj.vjp(leak, X),
    "grad": lambda: cj.grad(leak)(X),
    "value_and_grad": lambda: cj.value_and_grad(leak)(X),
    "linearize": lambda: cj.linearize(leak, X),
    "vmap": lambda: cj.vmap(leak)(X[None]),
    "make_jaxpr": lambda: cj.make_jaxpr(leak)(X),
    "eval_shape": lambda: cj.eval_shape(leak, X),
    "linear_transpose": lambda: cj.linear_transpose(leak, X),
    "jacrev": lambda: jacrev(leak)(X),
    "vmap of grad": lambda: cj.vmap(cj.grad(leak))(X[None]),
    "make_jaxpr of grad": lambda: cj.make_jaxpr(cj.grad(leak))(X),
}
USES = {
    "eager": lambda t: sin(t),
    "other operand": lambda t: add(X, t),
    "staging": lambda t: cj.make_jaxpr(lambda x: add(x, t))(X),
    "grad": lambda t: cj.grad(lambda x: sum_(mul(x, t)))(X),
    "vmap": lambda t: cj.vmap(lambda x: mul(x, t))(X[None]),
    "argument": lambda t: cj.grad(lambda x: sum_(sin(x)))(t),
    "call": lambda t: call(lambda x: mul(x, t))(X),
}


@pytest.mark.sampled
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", LEAKS)
def test_leaked_tracer(name, use):
    saved.clear()
    LEAKS[name]()
    with pytest.raises(UnexpectedTracerError) as info:
        USES[use](saved[0])
    text = str(info.value)
    assert f"tracing the function leak at {LINE} for" in text and "that transformation has ended" in text
    assert "Return the value from the transformed function" in text
    if name in ("make_jaxpr", "eval_shape", "linear_transpose"):
        line = int(LINE.rpartition(":")[2]) + 1
        assert f"was made at {__file__}:{line}" in text and name in text
    assert len(trace_stack()) == 1


RETURNS = {
    "jvp": lambda f: cj.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: cj.vjp(f, 1.0),
    "grad": lambda f: cj.grad(f)(1.0),
    "linearize": lambda f: cj.linearize(f, 1.0),
    "vmap": lambda f: cj.vmap(f, out_axes=None)(X),
    "make_jaxpr": lambda f: cj.make_jaxpr(f)(1.0),
    "jvp with aux": lambda f: cj.jvp(lambda x: (f(x), 1), (1.0,), (1.0,), has_aux=True),
    "grad with aux": lambda f: cj.grad(lambda x: (f(x), 1), has_aux=True)(1.0),
}


@pytest.mark.parametrize("name", RETURNS)
@pytest.mark.parametrize("made_by", ["grad", "make_jaxpr", "vmap"])
def test_a_function_that_returns_a_leaked_tracer(name, made_by):
    """Not a zero gradient, not a tracer as result: an error."""
    saved.clear()
    {
        "grad": lambda: cj.grad(lambda x: saved.append(sin(x)) or x)(1.0),
        "make_jaxpr": lambda: cj.make_jaxpr(lambda x: saved.append(sin(x)) or x)(1.0),
        "vmap": lambda: cj.vmap(lambda x: saved.append(sin(x)) or x)(X),
    }[made_by]()
    with pytest.raises(UnexpectedTracerError, match=f"for {made_by}, and that transformation has ended"):
        RETURNS[name](lambda x: saved[0])


def test_a_tracer_of_a_transformation_around_is_a_value():
    assert float(cj.grad(lambda x: cj.grad(lambda y: mul(x, y))(3.0))(2.0)) == 1.0
    np.testing.assert_allclose(cj.vmap(lambda x: cj.jvp(lambda y: mul(x, y), (1.0,), (1.0,))[1])(X), X)


def test_errors_about_leaks_load_nothing():
    """Even a tracer that knows no line is asked for it without asking plugins for a method of that name."""
    saved.clear()
    cj.vmap(leak)(X[None])
    assert saved[0].made_at() is None


# -- conversions ----------------------------------------------------------------------------------------------

ABSTRACT = {
    "make_jaxpr": lambda f: cj.make_jaxpr(f)(np.float32(2.0)),
    "vmap": lambda f: cj.vmap(f)(X),
    "grad of vmap": lambda f: cj.grad(lambda x: sum_(cj.vmap(f)(x)))(X),
    "vmap of grad": lambda f: cj.vmap(cj.grad(f))(X),
    "make_jaxpr of grad": lambda f: cj.make_jaxpr(cj.grad(f))(np.float32(2.0)),
    "call": lambda f: call(f)(np.float32(2.0)),
}
CONVERSIONS = {
    "bool": (bool, TracerBoolConversionError, "boolean conversion", "cond, select"),
    "not": (operator.not_, TracerBoolConversionError, "boolean conversion", "static_argnums"),
    "int": (int, ConcretizationTypeError, "int()", "concrete Python number"),
    "float": (float, ConcretizationTypeError, "float()", "static_argnums"),
    "complex": (complex, ConcretizationTypeError, "complex()", "static_argnums"),
    "index": (operator.index, TracerIntegerConversionError, "__index__", "static_argnums"),
    "list index": (lambda x: [1, 2, 3][x], TracerIntegerConversionError, "__index__", "static_argnums"),
    "range": (range, TracerIntegerConversionError, "__index__", "static_argnums"),
    "item": (lambda x: x.item(), ConcretizationTypeError, "item()", "static_argnums"),
    "tolist": (lambda x: x.tolist(), ConcretizationTypeError, "tolist()", "static_argnums"),
    "asarray": (np.asarray, TracerArrayConversionError, "NumPy array", "corejax.numpy"),
    "array": (np.array, TracerArrayConversionError, "NumPy array", "corejax.numpy"),
    "numpy function": (np.sin, TracerArrayConversionError, "NumPy array", "corejax.numpy"),
}


@pytest.mark.parametrize("where", ABSTRACT)
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_of_an_abstract_tracer(name, where):
    convert, error, what, advice = CONVERSIONS[name]

    def function(argument):
        convert(argument)
        return argument

    with pytest.raises(error) as info:
        ABSTRACT[where](function)
    text = str(info.value)
    assert what in text and advice in text and "float32[]" in text
    assert isinstance(info.value, TypeError) and len(trace_stack()) == 1
    if where in ("make_jaxpr", "vmap", "make_jaxpr of grad", "vmap of grad"):
        line = inspect.getsourcelines(function)[1]
        transform = "vmap" if where.startswith("vmap") else "make_jaxpr"
        assert f"tracing the function function at {__file__}:{line} for {transform}" in text
    if "make_jaxpr" in where:
        assert "depends on the value of the argument argument" in text
    elif where != "call":
        assert "differs along the mapped axis" in text


def test_the_message_lists_the_operations_that_made_a_tracer():
    def f(x):
        y = sin(X)
        for _ in range(8):
            y = add(y, 1.0)
        return mul(x, 2.0) if sum_(y) else x

    with pytest.raises(TracerBoolConversionError) as info:
        cj.make_jaxpr(f)(1.0)
    text = str(info.value)
    start = f.__code__.co_firstlineno
    assert "This value became a tracer due to corejax operations on these lines" in text
    assert "operation " in text and "toy.reduce_sum" in text
    assert f"from line {__file__}:{start + 4}" in text and "and 5 more operations" in text


def test_the_message_names_all_arguments():
    def f(a, b, *rest, c):
        return a if add(mul(b["k"], rest[0]), c) else c

    with pytest.raises(TracerBoolConversionError, match=r"the values of the arguments b\['k'\], rest\[0\] and c\."):
        cj.make_jaxpr(f)(1.0, {"k": 1.0}, 2.0, c=3.0)

    def static(a, flag, b):
        return a if b else flag

    with pytest.raises(TracerBoolConversionError, match=r"the value of the argument b\."):
        cj.make_jaxpr(static, static_argnums=1)(1.0, "flag", 2.0)


def test_length_and_iteration():
    seen = []

    def f(v, s):
        seen.append((len(v), [p.shape for p in v], v.shape, v.size))
        for action in (len, iter, lambda s: [*s]):
            with pytest.raises(TypeError, match="0-d array"):
                action(s)
        return v

    cj.make_jaxpr(f)(X, 1.0)
    cj.vmap(f)(X[None], X[:1])
    cj.jvp(f, (X, 1.0), (X, 1.0))
    assert seen == [(3, [(), (), ()], (3,), 3)] * 3


def test_tracers_are_not_hashable_but_can_be_copied():
    def f(x):
        assert copy.copy(x) is x and copy.deepcopy([x])[0] is x
        assert not isinstance(x, Hashable)  # what libraries ask before they make a key of it
        with pytest.raises(TypeError, match=r"unhashable type: .*Tracer"):
            hash(x)
        return x

    cj.make_jaxpr(f)(X)
    cj.vmap(f)(X)
    cj.grad(lambda x: sum_(f(x)))(X)


def test_arrays_convert():
    x = cj.Array(np.float32(2.5))  # a NumPy scalar
    assert type(np.asarray(x)) is np.ndarray and x.shape == () and x.aval is cj.Array(np.array(2.5, np.float32)).aval
    assert (float(x), int(x), bool(x), x.item(), x.tolist()) == (2.5, 2, True, 2.5, 2.5)
    assert [10, 20, 30][cj.Array(np.int32(1))] == 20 and f"{x:.2f}" == "2.50" and repr(x) == "Array(2.5, dtype=float32)"
    assert pickle.loads(pickle.dumps(x)).aval is x.aval and copy.deepcopy(x).aval is x.aval
    v = cj.Array(X)
    for action, error in ((bool, ValueError), (float, TypeError), (operator.index, TypeError), (hash, TypeError)):
        with pytest.raises(error):
            action(v)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(v)[0] = 1.0
    np.array(v)[0] = 1.0
    with pytest.raises(TypeError, match="0-d"):
        len(x)
    assert type(sin(np.float32(1.0))) is type(sin(1.0)) is cj.Array
    assert type(cj.Array(np.ma.masked_array(X))._host) is np.ndarray
    weak = cj.ShapedArray((), np.float32, weak_type=True)
    assert float(cj.Array(np.float32(2.5), weak)) == 2.5 and len(cj.Array(np.float32(2.5), weak).devices()) == 1


# -- missing rules --------------------------------------------------------------------------------------------

nothing_p = Primitive("toy.rules_missing")
MISSING = {
    "abstract_eval": ("abstract-eval rule", lambda: nothing_p.bind(X), nothing_p),
    "abstract_eval of staging": ("abstract-eval rule", lambda: cj.make_jaxpr(nothing_p.bind)(X), nothing_p),
    "jvp": ("JVP rule", lambda: cj.jvp(bare_p.bind, (X,), (X,)), bare_p),
    "jvp of grad": ("JVP rule", lambda: cj.grad(lambda x: sum_(bare_p.bind(x)))(X), bare_p),
    "vmap": ("vmap rule", lambda: cj.vmap(ordered_p.bind)(X), ordered_p),
    "transpose": ("transpose rule", lambda: cj.linear_transpose(bare_p.bind, X)(X), bare_p),
    "in a call": ("vmap rule", lambda: cj.vmap(call(ordered_p.bind))(X), ordered_p),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_rule(name):
    title, use, primitive = MISSING[name]
    kind = name.partition(" ")[0]
    with pytest.raises(MissingRuleError) as info:
        use()
    text = str(info.value)
    assert info.value.primitive is primitive and info.value.kind in (kind, "vmap", "impl")
    owner = f"module {primitive.provenance.module}"
    assert f"primitive {primitive.name!r} (from {owner}) has no" in text
    assert __file__ in text.partition("It was needed at ")[2].splitlines()[0]
    if info.value.kind == kind:
        assert (
            title in text and f"@{kind}_rules.register({primitive.name.replace('.', '_')}_p)" in text and "def " in text
        )
    assert isinstance(info.value, NotImplementedError) and len(trace_stack()) == 1


def test_missing_impl():
    p = Primitive("toy.no_impl_at_all", abstract_eval=lambda a: a)
    with pytest.raises(MissingRuleError, match=r"'toy.no_impl_at_all'.*has no impl rule") as info:
        p.bind(X)
    assert "def toy_no_impl_at_all_impl(*arrays, **params)" in str(info.value)
    with pytest.raises(MissingRuleError, match="impl rule"):
        cj.eval_jaxpr(*(lambda c: (c.jaxpr, c.consts, [X]))(cj.make_jaxpr(p.bind)(X)))


def test_the_line_of_a_missing_transpose_rule_is_the_one_of_the_operation():
    p = Primitive(
        "toy.linear_without_transpose",
        impl=lambda x: x,
        abstract_eval=lambda a: a,
        jvp=lambda primals, tangents: (p.bind(*primals), p.bind(*tangents)),
    )

    def f(x):
        return sum_(p.bind(x))

    with pytest.raises(MissingRuleError, match="transpose rule"):
        cj.grad(f)(X)
    assert len(trace_stack()) == 1
