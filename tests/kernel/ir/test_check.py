"""The jaxpr type checker: each invariant broken once, and what the message shows."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.errors import JaxprTypeError
from corejax.extend import Array, ClosedJaxpr, Jaxpr, JaxprEqn, ShapedArray, Var
from corejax.extend.programs import Literal, check_jaxpr
from corejax.ir.check import check_partial_eval
from corejax.messages.source_info import capture_source
from tests.kernel.toys import add_p, call, closed_call_p, mul, sin, sin_p, sincos_p, sum_p

F32 = ShapedArray((), np.float32)
VEC = ShapedArray((3,), np.float32)
INT = ShapedArray((3,), np.int32)
X = np.ones(3, np.float32)


def eqn(primitive, ins, outs, **params):
    return JaxprEqn(primitive, ins, outs, params, capture_source())


def refused(program, *words):
    with pytest.raises(JaxprTypeError) as info:
        check_jaxpr(program)
    for word in words:
        assert word in str(info.value)
    return str(info.value)


def test_well_typed():
    x, y = Var(VEC), Var(VEC)
    jaxpr = Jaxpr([], [x], [eqn(sin_p, [x], [y])], [y, x, Literal(1.0)])
    assert check_jaxpr(jaxpr) == ([VEC], [VEC, VEC, F32.update(weak_type=True)])
    assert check_jaxpr(Jaxpr([], [], [], [])) == ([], [])


def test_unbound_variable():
    x, y, z = Var(VEC), Var(VEC), Var(VEC)
    text = refused(
        Jaxpr([], [x], [eqn(sin_p, [y], [z])], [z]), "unbound variable Var(f32[3]) is used by primitive 'toy.sin'"
    )
    assert f"in equation 0, from {__file__}" in text and "toy.sin" in text.splitlines()[-1]
    refused(Jaxpr([], [x], [], [y]), "unbound variable", "as an output")
    # Bound, but only later.
    refused(Jaxpr([], [x], [eqn(sin_p, [y], [z]), eqn(sin_p, [x], [y])], [z]), "unbound variable", "in equation 0")


def test_double_binding():
    x, y = Var(VEC), Var(VEC)
    refused(Jaxpr([], [x, x], [], [x]), "binder Var(f32[3]) is bound twice")
    refused(Jaxpr([x], [x], [], [x]), "is bound twice")
    refused(Jaxpr([], [x], [eqn(sin_p, [x], [x])], [x]), "bound twice, the second time by primitive 'toy.sin'")
    refused(Jaxpr([], [x], [eqn(sin_p, [x], [y]), eqn(sin_p, [x], [y])], [y]), "bound twice", "in equation 1")
    refused(Jaxpr([], [x], [eqn(sincos_p, [x], [y, y])], [y]), "bound twice")


def test_types_of_outputs():
    x = Var(VEC)
    for wrong in (F32, INT, VEC.update(weak_type=True)):
        refused(
            Jaxpr([], [x], [eqn(sin_p, [x], [y := Var(wrong)])], [y]),
            f"primitive 'toy.sin' returns {VEC}, but the equation binds a variable of type {wrong}",
        )


def test_number_of_outputs():
    x = Var(VEC)
    refused(Jaxpr([], [x], [eqn(sin_p, [x], [])], []), "has 1 results, but the equation binds 0")
    refused(Jaxpr([], [x], [eqn(sincos_p, [x], [Var(VEC)])], []), "has 2 results, but the equation binds 1")


def test_operands_that_the_primitive_does_not_take():
    x, y = Var(VEC), Var(INT)
    text = refused(
        Jaxpr([], [x, y], [eqn(add_p, [x, y], [z := Var(VEC)])], [z]),
        "primitive 'toy.add' does not take its operands: toy.add: operands of different dtypes: f32[3], i32[3]",
    )
    assert "line" not in text.splitlines()[0]
    with pytest.raises(JaxprTypeError) as info:
        check_jaxpr(Jaxpr([], [x], [eqn(sum_p, [x], [Var(F32)], wrong=1)], []))
    assert isinstance(info.value.__cause__, TypeError)


def test_atoms():
    x = Var(VEC)
    refused(Jaxpr([], [x], [eqn(add_p, [x, 2.0], [Var(VEC)])], []), "2.0, used by primitive 'toy.add', is neither")
    refused(Jaxpr([], [], [], [None]), "None, used as an output, is neither a variable nor a literal")


def test_constants():
    c = Var(VEC)
    good = ClosedJaxpr(Jaxpr([c], [], [], [c]), [Array(X)])
    assert check_jaxpr(good) == ([], [VEC])
    refused(
        ClosedJaxpr(Jaxpr([c], [], [], [c]), [Array(np.ones(4, np.float32))]), "float32[4]", "float32[3]", "constvar"
    )
    refused(ClosedJaxpr(Jaxpr([c], [], [], [c]), [np.ones(3, np.int32)]), "int32[3]")


def test_programs_in_parameters():
    x, y = Var(VEC), Var(VEC)
    broken = ClosedJaxpr(Jaxpr([], [Var(VEC)], [], [Var(VEC)]))
    refused(
        Jaxpr([], [x], [eqn(closed_call_p, [x], [y], jaxpr=broken)], [y]),
        "in a program of primitive 'toy.closed_call'",
        "unbound",
    )
    fine = ClosedJaxpr(Jaxpr([], [v := Var(INT)], [], [v]))
    refused(Jaxpr([], [x], [eqn(closed_call_p, [x], [y], jaxpr=fine)], [y]), "the program takes")


def test_context_shows_the_equation_among_its_neighbours():
    x = Var(VEC)
    eqns, last = [], x
    for i in range(20):
        out = Var(VEC if i != 12 else INT)
        eqns.append(eqn(sin_p, [last], [out]))
        last = out
    text = refused(Jaxpr([], [x], eqns, [last]), "in equation 12")
    assert text.count("toy.sin ") == 11 and f"{__file__}:" in text


def halves():
    x, y, r, out = (Var(VEC) for _ in range(4))
    whole = Jaxpr([], [x, y], [eqn(sin_p, [x], [r]), eqn(add_p, [r, y], [out])], [out, x])
    a, b = Var(VEC), Var(VEC)
    known = Jaxpr([], [a], [eqn(sin_p, [a], [b])], [a, b])
    c, d, e = Var(VEC), Var(VEC), Var(VEC)
    unknown = Jaxpr([], [c, d], [eqn(add_p, [c, d], [e])], [e])
    return whole, known, unknown


def test_partial_eval_consistency():
    whole, known, unknown = halves()
    check_partial_eval(whole, known, unknown, [False, True], [True, False])
    f, i = Var(F32), Var(INT)

    def broken(k, u, words):
        with pytest.raises(JaxprTypeError, match=words):
            check_partial_eval(whole, k, u, [False, True], [True, False])

    broken(Jaxpr([], [f], [], [f, f]), unknown, "arguments of the known half have types")
    broken(Jaxpr([], known.invars, known.eqns, [known.eqns[0].outvars[0]] * 0), unknown, "outputs of the known half")
    broken(Jaxpr([], known.invars, [], [known.invars[0], Literal(np.float32(1))]), unknown, "residuals have types")
    broken(known, Jaxpr([], [unknown.invars[0], i], [], [unknown.invars[0]]), "arguments of the unknown half")
    broken(known, Jaxpr([], unknown.invars, [], [Literal(1.0)]), "outputs of the unknown half")
    broken(known, Jaxpr([], unknown.invars, [], [Var(VEC)]), "unbound")


@pytest.mark.usefixtures("toys")
def test_checked_programs_of_a_user():
    closed = cj.make_jaxpr(cj.vmap(cj.grad(call(lambda x: mul(sin(x), x)))))(X)
    assert check_jaxpr(closed) == ([VEC], [VEC])
