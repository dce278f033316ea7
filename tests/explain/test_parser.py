from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings

from corejax import plugins
from corejax.arrays.array import Array
from corejax.core.avals import ShapedArray, get_aval
from corejax.core.primitive import Primitive, primitives
from corejax.errors import DuplicateRegistrationError, JaxprSyntaxError, JaxprTypeError
from corejax.ir import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    check_jaxpr,
    parse_jaxpr,
    register_param_type,
    same_jaxpr,
)
from corejax.ir.values import scalar_text, value_text
from corejax_explain.program_text.reader import ValueReader
from corejax_explain.program_text.scalars import scalar_from_text
from tests.kernel.toy_programs import ToyNumbers, cases, chain, make_p, params, programs

# -- fixtures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, wanted", cases("canonical.jaxpr"))
def test_canonical_text_is_kept(text, wanted):
    assert parse_jaxpr(text).pretty(consts=True) == text
    long = parse_jaxpr(text).pretty(consts=True, types="long")
    assert parse_jaxpr(long).pretty(consts=True) == text


@pytest.mark.parametrize("text, wanted", cases("spellings.jaxpr"))
def test_other_spellings_are_read(text, wanted):
    assert parse_jaxpr(text).pretty(consts=True) == wanted


@pytest.mark.parametrize("text, wanted", cases("errors.jaxpr"))
@pytest.mark.engine
def test_errors_show_the_place(text, wanted):
    with pytest.raises(JaxprSyntaxError) as excinfo:
        parse_jaxpr(text)
    assert str(excinfo.value) == wanted


def test_untyped_text_is_refused():
    with pytest.raises(JaxprSyntaxError, match="programs without types do not parse"):
        parse_jaxpr("{ lambda ; a:f32[]. let b = toy.sin a in (b,) }")


# -- round trip ----------------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(programs())
def test_round_trip(program):
    check_jaxpr(program)
    text = program.pretty(consts=True)
    parsed = parse_jaxpr(text)
    assert parsed.pretty(consts=True) == text
    assert same_jaxpr(parsed, program) and same_jaxpr(program, parsed)
    for options in ({"types": "long"}, {"source_info": True}):
        assert same_jaxpr(parse_jaxpr(program.pretty(consts=True, **options)), program)


@settings(max_examples=50)
@given(programs())
def test_round_trip_without_the_values_of_constants(program):
    parsed = parse_jaxpr(str(program))
    assert str(parsed) == str(program)
    assert isinstance(parsed, Jaxpr if program.consts else ClosedJaxpr)
    assert same_jaxpr(getattr(parsed, "jaxpr", parsed), program.jaxpr)
    assert same_jaxpr(parse_jaxpr(str(program), consts=program.consts), program)


@settings(max_examples=200)
@given(params)
def test_parameters_round_trip(value):
    text = value_text(value)
    eqn = parse_jaxpr(f"{{ lambda ; . let toy.make[outs=() x={text}] in () }}").eqns[0]
    original = JaxprEqn(make_p, [], [], {"outs": (), "x": value})
    assert same_jaxpr(ClosedJaxpr(Jaxpr([], [], [eqn], [])), ClosedJaxpr(Jaxpr([], [], [original], [])))


def test_slices_are_read():
    assert ValueReader("slice(0, None, 2)").value() == slice(0, None, 2)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_every_float_of_few_bits_round_trips(name):
    dtype = np.dtype(name)
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
    for scalar in bits.view(dtype)[:: 1 if dtype.itemsize == 1 else 61]:
        assert scalar_from_text(scalar_text(scalar), dtype).tobytes() == scalar.tobytes()


# -- what the parser gives -----------------------------------------------------------------------------------


def test_constvars_without_values_make_an_open_program():
    text = "{ lambda a:f32[2]; b:f32[2]. let c:f32[2] = toy.add a b in (c,) }"
    assert isinstance(parse_jaxpr(text), Jaxpr)
    closed = parse_jaxpr(text, consts=[np.ones(2, np.float32)])
    assert isinstance(closed, ClosedJaxpr) and closed.consts[0].tolist() == [1, 1]
    with pytest.raises(ValueError, match="1 constvars was given 2 constants"):
        parse_jaxpr(text, consts=[1, 2])
    with pytest.raises(JaxprTypeError, match="a constant of type"):
        parse_jaxpr(text, consts=[np.ones(3, np.float32)])
    with pytest.raises(ValueError, match="takes no consts"):
        parse_jaxpr("{ lambda a:f32[]=1.0; . let  in (a,) }", consts=[1])


def test_constants_are_arrays_of_their_constvars_type():
    closed = parse_jaxpr("{ lambda a:~f32[]=2.0 b:bf16[1,2]=[[1.0, 2.0]]; . let  in (a, b) }")
    assert [type(c) for c in closed.consts] == [Array, Array]
    assert [get_aval(c) for c in closed.consts] == [v.aval for v in closed.jaxpr.constvars]


def test_tuples_and_dtypes_come_back_as_such():
    eqn = parse_jaxpr("{ lambda ; . let toy.make[a=(([1], [0]), ([], [])) b=float32 outs=()] in () }").eqns[0]
    assert eqn.params == {"a": (((1,), (0,)), ((), ())), "b": np.dtype(np.float32), "outs": ()}
    assert isinstance(eqn.params["b"], np.dtype)


def test_the_program_is_type_checked():
    with pytest.raises(JaxprTypeError, match=r"(?s)primitive 'toy.sin' returns .*\n--> b:f32\[3\] = toy.sin a"):
        parse_jaxpr("{ lambda ; a:f32[2]. let b:f32[3] = toy.sin a in (b,) }")


def test_primitives_are_loaded_when_they_are_first_named(monkeypatch):
    loaded = []

    def load():
        loaded.append(1)
        Primitive("toy.late", abstract_eval=lambda a: a)
        return True

    monkeypatch.setattr(plugins.manager(), "load_primitives", load)
    try:
        closed = parse_jaxpr("{ lambda ; a:f32[]. let b:f32[] = toy.late a in (b,) }")
    finally:
        late = primitives.pop("toy.late")
    assert closed.eqns[0].primitive is late and loaded


def test_two_classes_of_one_name_are_refused():
    assert register_param_type(ToyNumbers) is ToyNumbers
    with pytest.raises(DuplicateRegistrationError, match=r"'ToyNumbers' is .*toy_programs\.ToyNumbers"):
        register_param_type(type("ToyNumbers", (), {}))


def test_a_long_program_is_read_in_linear_time():
    text = str(chain(20_000))
    start = time.process_time()
    parse_jaxpr(text)
    assert time.process_time() - start < 5


# -- same_jaxpr ----------------------------------------------------------------------------------------------

ONE = "{ lambda ; a:f32[2] b:f32[2]. let c:f32[2] = toy.add a b; d:f32[2] = toy.mul c 1.0:f32[] in (d, a) }"


@pytest.mark.parametrize(
    "old, new",
    [
        ("toy.add a b", "toy.add b a"),
        ("toy.add", "toy.mul"),
        ("1.0", "1.0000001"),
        ("1.0", "-1.0"),
        ("1.0:f32[]", "c"),
        ("(d, a)", "(d, b)"),
        ("(d, a)", "(d, a, a)"),
        ("(d, a)", "(1.0:f32[], a)"),
        ("b:f32[2].", "b:f32[2] x:f32[2]."),
        ("let ", "let _:f32[2] = toy.sin a; "),
    ],
)
def test_different_programs_are_not_the_same(old, new):
    assert old in ONE
    assert not same_jaxpr(parse_jaxpr(ONE), parse_jaxpr(ONE.replace(old, new)))
    assert not same_jaxpr(parse_jaxpr(ONE.replace(old, new)), parse_jaxpr(ONE))


@pytest.mark.parametrize(
    "x, y",
    [
        ("1", "1.0"),
        ("1", "True"),
        ("0.0", "-0.0"),
        ("1:i32[]", "1:i64[]"),
        ("(1,)", "(1, 2)"),
        ("f32[2]", "~f32[2]"),
        ("{ lambda ; . let  in () }", "{ lambda ; a:f32[]. let  in () }"),
        ("{ lambda a:f32[]=0.0; . let  in () }", "{ lambda a:f32[]=-0.0; . let  in () }"),
        ("{ lambda a:f32[]=0.0; . let  in (a,) }", "{ lambda ; . let  in (0.0:f32[],) }"),
        ("(0.0, {lambda ; . let in ()})", "(-0.0, {lambda ; . let in ()})"),
        ("nan", "-nan"),
        ("(1+0j)", "(1-0j)"),
        ("'float32'", "float32"),
    ],
)
def test_different_parameters_are_not_the_same(x, y):
    programs = [parse_jaxpr(f"{{ lambda ; . let toy.make[outs=() x={v}] in () }}") for v in (x, x, y)]
    assert same_jaxpr(programs[0], programs[1])
    assert not same_jaxpr(programs[0], programs[2])


def test_types_of_literals_and_constants_count():
    texts = ["1.0:f32[]", "1.0:~f32[]", "1.0:f64[]", "1:i32[]", "nan:f32[]", "nan(0x7fc00001):f32[]"]
    literals = [parse_jaxpr(f"{{ lambda ; . let in ({t},) }}") for t in texts]
    consts = [
        parse_jaxpr(f"{{ lambda a:{t.rpartition(':')[2]}={t.rpartition(':')[0]}; . let in (a,) }}") for t in texts
    ]
    for group in (literals, consts):
        for i, a in enumerate(group):
            assert [same_jaxpr(a, b) for b in group] == [i == j for j in range(len(group))]


def test_python_and_numpy_literals_of_one_type_are_the_same():
    weak = ShapedArray((), np.float32, True)
    texts = [ClosedJaxpr(Jaxpr([], [], [], [Literal(v, weak)])) for v in (0.1, np.float32(0.1), np.float64(0.1))]
    assert len({str(t) for t in texts}) == 1
    assert same_jaxpr(texts[0], texts[1]) and same_jaxpr(texts[0], texts[2])


def test_ill_typed_programs_compare_by_identity_of_what_is_unbound():
    x, y = Var(ShapedArray((), np.float32)), Var(ShapedArray((), np.float32))
    assert same_jaxpr(Jaxpr([], [], [], [x]), Jaxpr([], [], [], [x]))
    assert not same_jaxpr(Jaxpr([], [], [], [x]), Jaxpr([], [], [], [y]))
    assert not same_jaxpr(Jaxpr([], [x, y], [], [x, y]), Jaxpr([], [x, x], [], [x, x]))
