"""Staging: literals, constants, effects, source lines, weak types, `make_jaxpr` and `eval_shape`."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import sys
import weakref

import numpy as np
import pytest

import corejax as cj
from corejax.errors import JaxprTypeError, MissingRuleError
from corejax.extend import Primitive, ShapedArray, Var, stage, stage_closed, tree
from corejax.extend.programs import Literal, check_jaxpr, dce
from corejax.ir.debug_info import DebugInfo
from corejax.messages.source_info import locate_source
from corejax.settings.config import config
from tests.kernel.toys import add, bare_p, call, cos, greater, mul, print_p, printed, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
F32 = ShapedArray((), np.float32)
VEC = ShapedArray((3,), np.float32)


def atoms(closed):
    return [v for e in closed.eqns for v in e.invars] + closed.jaxpr.outvars


def test_text():
    closed = cj.make_jaxpr(lambda x, y: add(mul(sin(x), 2.0), y))(X, 1.0)
    assert str(closed) == (
        "{ lambda ; a:f32[3] b:~f32[]. let\n"
        "    c:f32[3] = toy.sin a\n"
        "    d:f32[3] = toy.mul c 2.0:f32[]\n"
        "    e:f32[3] = toy.add d b\n"
        "  in (e,) }"
    )


@pytest.mark.parametrize(
    "value, aval",
    [
        (2.0, F32.update(weak_type=True)),
        (np.float32(2.0), F32),
        (cj.Array(np.float32(2.0)), F32),
        (cj.Array(np.array(2.0, np.float32), F32.update(weak_type=True)), F32.update(weak_type=True)),
        (True, ShapedArray((), np.bool_)),
        (3, ShapedArray((), np.int32, True)),
        (1j, ShapedArray((), np.complex64, True)),
    ],
)
def test_scalars_are_literals_in_place(value, aval):
    pick = Primitive(f"toy.pick_{id(value)}", abstract_eval=lambda a, b: a)
    closed = cj.make_jaxpr(lambda x: (pick.bind(value, x), value))(X)
    assert closed.consts == []
    literal, out = closed.eqns[0].invars[0], closed.jaxpr.outvars[1]
    for atom in (literal, out):
        assert type(atom) is Literal and atom.aval is aval


def test_arrays_are_constants_each_once():
    array, other = cj.Array(X), np.array(X)

    def f(x):
        y = add(add(x, array), array)
        return add(mul(y, other), add(other, np.array(2.0, np.float32)))

    closed = cj.make_jaxpr(f)(X)
    assert len(closed.consts) == 3 and closed.consts[0] is array  # a NumPy array of rank 0 is an array too
    assert [c.shape for c in closed.consts] == [(3,), (3,), ()]
    assert not any(type(v) is Literal for v in atoms(closed))


def test_numpy_constants_are_copied():
    buffer = np.ones(3, np.float32)
    closed = cj.make_jaxpr(lambda x: add(x, buffer))(X)
    buffer[:] = 7.0
    np.testing.assert_array_equal(closed.consts[0], np.ones(3))

    def f(x):
        y = add(x, buffer)
        buffer[:] = 8.0
        return y

    np.testing.assert_array_equal(cj.make_jaxpr(f)(X).consts[0], [7.0] * 3)  # what it was when it was used


def test_constants_that_die_do_not_share_a_variable():
    """Identity tells constants apart, so none may be freed while its id stands for it."""

    def f(x):
        for i in range(50):
            x = add(x, np.full(3, i, np.float32))
        return x

    closed = cj.make_jaxpr(f)(X)
    assert sorted(int(c[0].item()) for c in map(np.asarray, closed.consts)) == list(range(50))
    np.testing.assert_allclose(cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])[0], X + sum(range(50)), rtol=1e-6)


def test_outputs_may_be_arguments_constants_or_literals():
    array = cj.Array(X)
    closed = cj.make_jaxpr(lambda x, y: [x, array, 1.0, x, None])(X, X)
    x, _y = closed.jaxpr.invars
    assert closed.jaxpr.outvars[0] is closed.jaxpr.outvars[3] is x and closed.consts == [array]
    assert closed.jaxpr.outvars[1] is closed.jaxpr.constvars[0] and len(closed.jaxpr.outvars) == 4


@pytest.mark.parametrize("result, count", [(None, 0), ((), 0), ({}, 0), ([None, ()], 0), ({"a": 1.0}, 1)])
def test_empty_results(result, count):
    closed, shape = cj.make_jaxpr(lambda x: result, return_shape=True)(X)
    assert len(closed.jaxpr.outvars) == count
    assert tree.tree_structure(shape) == tree.tree_structure(result)


def test_weak_types():
    closed = cj.make_jaxpr(lambda x, y: (mul(x, x), mul(x, y), sin(x), greater(x, y)))(2.0, np.float32(1.0))
    assert [a.weak_type for a in closed.in_avals] == [True, False]
    assert [a.weak_type for a in closed.out_avals] == [True, False, True, False]
    with config.override(default_dtype_bits=64):
        assert cj.make_jaxpr(sin)(2.0).in_avals == [ShapedArray((), np.float64, True)]


def test_effects_are_kept():
    def f(x):
        y = sin(x)
        print_p.bind(y)
        cos(x)
        return call(lambda x: (print_p.bind(x), x)[1])(x)

    closed = cj.make_jaxpr(f)(X)
    assert printed == [] and closed.effects == {"print"}
    kept = dce(closed.jaxpr)
    assert [e.primitive.name for e in kept.eqns] == ["toy.sin", "toy.print", "toy.closed_call"]
    unused = cj.make_jaxpr(lambda x: (call(lambda x: (print_p.bind(x), x)[1])(x), cos(x), x)[2])(X)
    assert [e.primitive.name for e in dce(unused.jaxpr).eqns] == ["toy.closed_call"]
    cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])
    assert len(printed) == 2


def test_source_lines():
    def f(x):
        y = sin(x)
        return add(
            y,
            cos(y),
        )

    start = f.__code__.co_firstlineno
    closed = cj.make_jaxpr(cj.grad(lambda x: sum_(f(x))))(X)
    places = [(e.primitive.name, locate_source(e.source_info)) for e in closed.eqns]
    lines = [(name, place.line - start) for name, place in places if place.function == "f"]
    assert ("toy.sin", 1) in lines and ("toy.sin", 4) in lines
    assert [line for name, line in lines if name == "toy.add"] == [2, 4]  # the second one sums y's cotangents
    assert {place.file for _, place in places} == {__file__}
    # The backward pass belongs to lines too: to those of the equations that it transposes, or to the call of grad.
    assert all(place is not None for _, place in places)


def test_lines_are_kept_by_transformations_of_programs():
    def f(x):
        return mul(sin(x), x)

    closed = cj.make_jaxpr(f)(X)
    again = cj.make_jaxpr(cj.vmap(lambda x: cj.eval_jaxpr(closed.jaxpr, closed.consts, [x])))(X[None])
    lines = [locate_source(e.source_info).line for e in closed.eqns]
    assert [locate_source(e.source_info).line for e in again.eqns] == lines


def test_return_shape_and_eval_shape():
    f = lambda x, y: {"a": sin(x), "b": (greater(y, 0.0), 1)}
    _closed, shape = cj.make_jaxpr(f, return_shape=True)(X, 2.0)
    wanted = {
        "a": cj.ShapeDtypeStruct((3,), np.float32),
        "b": (cj.ShapeDtypeStruct((), np.bool_), cj.ShapeDtypeStruct((), np.int32, weak_type=True)),
    }
    assert shape == wanted == cj.eval_shape(f, X, y=2.0)
    assert cj.eval_shape(f, cj.ShapeDtypeStruct((3,), np.float32), 2.0) == wanted
    assert repr(shape["a"]) == "ShapeDtypeStruct(shape=(3,), dtype=float32)"
    assert (shape["a"].ndim, shape["a"].size, len(shape["a"]), hash(shape["a"])) == (1, 3, 3, hash(wanted["a"]))
    bare = Primitive("toy.no_impl", abstract_eval=lambda a: a.update(shape=(1000000, 1000000)))
    assert cj.eval_shape(bare.bind, X).shape == (1000000, 1000000)


def test_eval_shape_of_what_has_no_value():
    struct = cj.ShapeDtypeStruct((2,), np.float32, weak_type=True)
    assert cj.eval_shape(lambda: struct) == struct and cj.typeof(struct).str_short() == "f32[2]"
    f = lambda x: {"a": struct, "b": [sin(x), None], "c": struct}
    out = cj.eval_shape(f, X)
    assert out["a"] == out["c"] == struct and out["b"] == [cj.ShapeDtypeStruct((3,), np.float32), None]
    assert cj.eval_shape(lambda: cj.ShapeDtypeStruct((2,), np.float64)).dtype == np.float64
    with pytest.raises(TypeError, match=r"function <lambda> returns 'text' of type str \(\['b'\]\)"):
        cj.eval_shape(lambda: {"a": struct, "b": "text"})
    with pytest.raises(TypeError, match="function <lambda> returns ShapeDtypeStruct"):
        cj.make_jaxpr(lambda: struct)()


def test_static_arguments():
    f = lambda x, name, y, n=3: {"sin": sin, "cos": cos}[name](mul(x, y)) if n else x
    for static in (1, (1,), -2, [1]):
        closed = cj.make_jaxpr(f, static_argnums=static)(X, "sin", X)
        assert [e.primitive.name for e in closed.eqns] == ["toy.mul", "toy.sin"] and len(closed.in_avals) == 2
    assert len(cj.make_jaxpr(f, static_argnums=(1, 3))(X, "sin", X, 0).eqns) == 0


@dataclasses.dataclass
class Model:
    scale: float

    def __call__(self, x, *rest, k=1.0, **more):
        return mul(x, self.scale)


def names(fun, *args, **kwargs):
    return DebugInfo(fun, "jit", tree.tree_structure((args, kwargs))).arg_names()


def test_names_of_arguments():
    def f(x, y, /, p, *rest, k=None, **more):
        pass

    assert names(f, 1, (2, 3), {"w": 4, "b": [5]}) == ["x", "y[0]", "y[1]", "p['b'][0]", "p['w']"]
    assert names(f, 1, 2, 3, 4, {"a": 5}, k=6, z=[7, 8]) == [
        "x",
        "y",
        "p",
        "rest[0]",
        "rest[1]['a']",
        "k",
        "z[0]",
        "z[1]",
    ]
    assert names(f, None, 1, (), 2) == ["y", "rest[0]"]
    assert names(functools.partial(f, 0), 1, 2) == ["y", "p"]
    assert names(Model(2.0), 1, 2) == ["x", "rest[0]"]
    assert names(Model(2.0).__call__, 1, k=2) == ["x", "k"]
    assert names(cj.vmap(cj.grad(f)), 1, 2) == ["x", "y"]
    assert names(lambda x: x, 1, 2) == ["args[0]", "args[1]"]  # a call that the signature does not take
    assert names(np.add, 1, 2)[:1] in (["x1"], ["args[0]"])
    assert DebugInfo(f, "jit").arg_names() == []
    assert DebugInfo(f, "jit", tree.tree_structure(((1, 2, 3), {})), (0, 2)).arg_names() == ["x", "p"]


def test_names_of_functions():
    model = Model(2.0)
    assert DebugInfo(model, "jit").description() == "tracing the function Model for jit"
    line = inspect.getsourcelines(test_names_of_arguments)[1]
    partial = functools.partial(test_names_of_arguments)
    wanted = f"tracing the function test_names_of_arguments at {__file__}:{line} for grad"
    assert DebugInfo(partial, "grad").description() == wanted
    assert DebugInfo(cj.grad(test_names_of_arguments), "grad").description() == wanted


def test_stage_restores_everything():
    with pytest.raises(ZeroDivisionError):
        stage(lambda x: [1 / 0], [VEC])
    with pytest.raises(TypeError, match="str"):
        stage(lambda x: ["no array"], [VEC])
    jaxpr, consts = stage(lambda x: [sin(x)], [VEC])
    assert check_jaxpr(jaxpr) == ([VEC], [VEC]) and consts == []
    assert stage_closed(lambda: [X], []).out_avals == [VEC]


def test_abstract_eval_is_asked_once_for_each_type():
    asked = []

    def abstract_eval(a, *, k):
        asked.append((a, k))
        return a

    p = Primitive("toy.counted", impl=lambda x, k: x, abstract_eval=abstract_eval)
    for _ in range(3):
        cj.make_jaxpr(lambda x: [p.bind(x, k=i) for i in range(3)])(X)
    assert asked == [(VEC, 0), (VEC, 1), (VEC, 2)]


def test_staging_needs_only_abstract_eval():
    cj.make_jaxpr(bare_p.bind)(X)
    nothing = Primitive("toy.nothing")
    with pytest.raises(MissingRuleError, match=r"toy.nothing.*no abstract-eval rule"):
        cj.make_jaxpr(nothing.bind)(X)


@pytest.mark.parametrize(
    ("several", "given", "told"),
    [
        (False, (3,), r"a tuple of 1, one of them 3 of type int, instead of one ShapedArray"),
        (False, [VEC], r"a list of 1 instead of one ShapedArray"),
        (False, None, r"None instead of one ShapedArray"),
        (True, VEC, r"ShapedArray\(.*\) of type ShapedArray instead of a list of types \(ShapedArray\)"),
        (True, None, r"None instead of a list of types \(ShapedArray\), one for each result"),
        (True, [VEC, "f32"], r"a list of 2, one of them 'f32' of type str, instead of a list of types"),
    ],
)
def test_abstract_eval_that_gives_no_types(several, given, told):
    wrong = Primitive("toy.gives_no_types", multiple_results=several, abstract_eval=lambda a: given)
    whose = r"primitive 'toy.gives_no_types': its abstract-eval rule \(from .*test_staging.py:\d+\)\) returned "
    with pytest.raises(TypeError, match=f"{whose}{told}.*it was needed at .*test_staging.py:"):
        cj.make_jaxpr(wrong.bind)(X)


def test_programs_are_checked_where_asked_for():
    """A rule that is not what it seems: abstract eval that depends on something else than its arguments."""
    answers = iter([VEC, ShapedArray((4,), np.float32)])
    p = Primitive("toy.unsteady", abstract_eval=lambda a: next(answers))

    def f(x):
        y = p.bind(x)
        p._memo.clear()
        return y

    with pytest.raises(JaxprTypeError, match=r"toy\.unsteady"), config.override(check_jaxprs=True):
        cj.make_jaxpr(f)(X)


def test_variables_are_new_in_every_program():
    f = cj.make_jaxpr(sin)
    a, b = f(X), f(X)
    assert isinstance(a.jaxpr.invars[0], Var) and a.jaxpr.invars[0] is not b.jaxpr.invars[0] and str(a) == str(b)


def test_an_array_that_is_written_to_between_two_uses_is_two_constants():
    buffer = np.zeros(3, np.float32)

    def f(x):
        for i in range(3):
            buffer[:] = i
            x = add(add(x, buffer), buffer)
        return x

    closed = cj.make_jaxpr(f)(X)
    assert len(closed.consts) == 3
    np.testing.assert_allclose(cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])[0], X + 6.0)


def test_scopes_of_equations():
    from corejax.core.trace import in_scope
    from corejax.messages.source_info import JVP, TRANSPOSE, VMAP, inside, scope_of, scope_text

    assert scope_text(()) == ""
    assert scope_text((JVP,)) == "jvp()"
    assert scope_text(("outer", TRANSPOSE, JVP, "layer", "dense")) == "outer/transpose(jvp(layer))/dense"
    assert scope_of(None) == () and scope_of(inside(("a",), inside(("b",), None))) == ("a", "b")
    assert locate_source(inside(("a",), None)) is None

    def f(x):
        return in_scope("inner", sin)(x)

    def scopes(g):
        closed = in_scope("outer", cj.make_jaxpr(g))(X)
        return {scope_text(scope_of(e.source_info)) for e in closed.eqns}

    assert scopes(f) == {"inner"}  # a program's scopes begin where it does
    assert scopes(in_scope("a", cj.vmap(f))) == {f"a/{VMAP}(inner)"}
    assert "a/transpose(jvp(inner))" in scopes(in_scope("a", cj.grad(lambda x: sum_(f(x)))))
    closed = cj.make_jaxpr(f)(X)
    replayed = cj.make_jaxpr(in_scope("again", lambda x: cj.eval_jaxpr(closed.jaxpr, [], [x])))(X)
    assert scope_of(replayed.eqns[0].source_info) == ("again", "inner")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there collections never come inside of an allocation")
def test_a_collection_that_is_due_comes_before_tracers_die():
    """The process crashed where weak references to a tracer, in cycles that nobody holds, were collected as it died."""
    happened, kept = [], []

    def f(x):
        kept.append(weakref.ref(x, lambda _: happened.append("tracer died")))
        for _ in range(2):
            cycle = [None]
            cycle[0] = (cycle, weakref.ref(x))
        kept.append([[] for _ in range(10_000)])
        return sin(x)

    def collected(phase, info):
        happened.append(phase)

    gc.callbacks.append(collected)
    try:
        with config.override(check_jaxprs=False):  # which makes containers itself
            stage(lambda x: [f(x)], [ShapedArray((), "float32")])
    finally:
        gc.callbacks.remove(collected)
    assert happened.index("stop") < happened.index("tracer died")
