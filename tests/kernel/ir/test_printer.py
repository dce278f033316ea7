from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings

from corejax.core.avals import ShapedArray
from corejax.errors import JaxprTypeError
from corejax.ir import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, check_jaxpr, jaxpr_text
from corejax.ir.printer import Scope, eqn_in_context, eqn_text
from corejax.ir.values import const_text, value_text
from corejax.messages import source_info
from tests.kernel.toy_programs import add_p, cases, chain, cond_p, make_p, print_p, programs, sin_p, sum_p

F32 = ShapedArray((), np.float32)
VEC = ShapedArray((3,), np.float32)


def test_styles_of_types():
    aval = ShapedArray((2,), np.float32, weak_type=True)
    program = Jaxpr([], [v := Var(aval)], [], [v, Literal(np.int8(3))])
    assert jaxpr_text(program) == "{ lambda ; a:~f32[2]. let  in (a, 3:i8[]) }"
    assert jaxpr_text(program, types="long") == "{ lambda ; a:~float32[2]. let  in (a, 3:int8[]) }"
    with pytest.raises(ValueError, match="'short' or 'long', got 'typed'"):
        jaxpr_text(program, types="typed")


def test_str_and_repr_are_the_text():
    closed = chain(2)
    assert str(closed) == repr(closed) == str(closed.jaxpr) == jaxpr_text(closed)


def test_names_count_up_in_letters_and_leave_out_words_of_the_language():
    names, variables = Scope(None).names, [Var(F32) for _ in range(20_000)]
    found = [names[v] for v in variables]
    assert found[:3] == ["a", "b", "c"] and found[25:28] == ["z", "aa", "ab"] and found[701:703] == ["aaa", "aab"]
    assert len(set(found)) == len(found)
    assert not {"in", "let", "inf", "nan", "lambda"} & set(found)
    assert [names[v] for v in variables[:3]] == ["a", "b", "c"]


def test_one_equation_names_its_outputs_first():
    eqn = JaxprEqn(sum_p, [Var(ShapedArray((3,), np.int32))], [Var(ShapedArray((), np.int32))], {"axes": (0,)})
    assert eqn_text(eqn) == repr(eqn) == "a:i32[] = toy.reduce_sum[axes=(0,)] b"
    assert repr(JaxprEqn(print_p, [Literal(1.5)], [], {})) == "toy.print 1.5:~f32[]"


def test_some_equations_are_named_as_in_the_whole():
    closed = chain(6)
    lines = str(closed).splitlines()
    assert eqn_in_context(closed.jaxpr, 5, 1).splitlines() == [lines[5], "--> " + lines[6].strip()]
    assert eqn_in_context(closed.jaxpr, 2, 1).splitlines() == [lines[2], "--> " + lines[3].strip(), lines[4]]
    assert eqn_in_context(closed.jaxpr, 1).splitlines() == [lines[1], "--> " + lines[2].strip(), *lines[3:-1]]


def test_the_mark_is_on_the_first_line_of_its_equation():
    parse_jaxpr = pytest.importorskip("corejax_explain.program_text").parse_jaxpr
    closed = parse_jaxpr(next(p.values[0] for p in cases("canonical.jaxpr") if p.id.startswith("a-program")))
    assert eqn_in_context(closed.jaxpr, 1, 0).splitlines() == [
        "--> c:f32[3] = toy.call[",
        "      jaxpr={ lambda ; a:f32[3]. let",
        "          b:f32[3] = toy.add a 1.0:f32[]",
        "        in (b,) }",
        "    ] b",
    ]


def test_ill_typed_programs_print_too():
    unbound, x, y = Var(VEC), Var(VEC), Var(VEC)
    eqns = [JaxprEqn(sin_p, [x], [y], {}), JaxprEqn(add_p, [y, unbound], [y], {})]
    program = Jaxpr([], [x], eqns, [y, "no atom"])
    assert str(program).splitlines()[2:] == ["    b:f32[3] = toy.add b c", "  in (b, 'no atom') }"]
    with pytest.raises(JaxprTypeError, match=r"(?s)unbound variable.*\n--> b:f32\[3\] = toy.add b c"):
        check_jaxpr(program)


def test_source_info_is_a_comment_on_each_equation():
    x, y = Var(F32), Var(F32)
    eqns = [JaxprEqn(sin_p, [x], [y], {}, source_info.capture_source()), JaxprEqn(sin_p, [y], [z := Var(F32)], {})]
    lines = Jaxpr([], [x], eqns, [z]).pretty(source_info=True).splitlines()
    assert lines[1].startswith("    b:f32[] = toy.sin a  # ") and "test_printer.py:" in lines[1]
    assert lines[1].endswith("(test_source_info_is_a_comment_on_each_equation)")
    assert lines[2] == "    c:f32[] = toy.sin b"


def test_values_of_constants_are_shown_on_request():
    closed = ClosedJaxpr(Jaxpr([c := Var(VEC)], [], [], [c]), [np.array([1, 2.5, -0.0], np.float32)])
    assert str(closed) == "{ lambda a:f32[3]; . let  in (a,) }"
    assert closed.pretty(consts=True) == "{ lambda a:f32[3]=[1.0, 2.5, -0.0]; . let  in (a,) }"
    assert closed.jaxpr.pretty(consts=True) == str(closed)


def test_large_constants_are_short_where_they_can_be():
    assert const_text(np.zeros((1000, 1000))) == "full(0.0)"
    assert const_text(np.arange(300, dtype=np.uint8)).startswith("base64('AAECAwQ")
    assert const_text(np.array([[True], [False]])) == "[[True], [False]]"


def test_opaque_values_print_without_addresses():
    def relu(x):
        return x

    class Thing:
        pass

    assert value_text(relu) == "<opaque relu>"
    assert value_text((lambda x: x, 1)) == "(<opaque <lambda>>, 1)"
    assert value_text(Thing()) == "<opaque Thing>"
    assert value_text(np.str_("x")) == "<opaque str_>"
    eqn = JaxprEqn(make_p, [], [], {"fun": relu, "outs": ()})
    assert repr(eqn) == "toy.make[\n  fun=<opaque relu>\n  outs=()\n]"


def test_slices_and_scalar_types_print():
    assert value_text(slice(0, None, 2)) == "slice(0, None, 2)"
    assert value_text(np.float32) == value_text(np.dtype(np.float32)) == "float32"


def test_programs_deep_in_tuples_print():
    branch = Jaxpr([], [], [], [])
    eqn = JaxprEqn(cond_p, [], [], {"branches": (branch, (branch,))})
    assert repr(eqn).splitlines() == [
        "toy.cond[",
        "  branches=(",
        "    { lambda ; . let  in () },",
        "    (",
        "      { lambda ; . let  in () }",
        "    ),",
        "  )",
        "]",
    ]


def test_twenty_thousand_equations_print_within_a_second():
    closed = chain(20_000)
    start = time.process_time()
    text = closed.pretty()
    assert time.process_time() - start < 1
    assert text.count("\n") == 20_001


@settings(max_examples=50)
@given(programs())
def test_every_program_prints_in_every_style(program):
    assert program.pretty(consts=True).count("{ lambda") == program.pretty(types="long").count("{ lambda")
    assert len(program.pretty().splitlines()) == len(program.pretty(types="long", source_info=True).splitlines())
