"""The Array API standard, 2024.12: values at zeros, infinities and NaN, run and compiled, and what results are."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp

inf, nan = math.inf, math.nan

# A row is a function with its cases, `operands:result`. An operand is a number, or what it is like: `pos` and `neg` are
# finite, `+` and `-` may be infinite, `fin` is finite, `num` finite and not zero, `odd` and `even` are integers, `frac`
# is none. `~` before a result: up to rounding, `?`: up to its sign.
ONE = """
    abs nan:nan -0:0 -inf:inf
    acos nan:nan >1:nan <-1:nan 1:0
    acosh nan:nan <1:nan 1:0 inf:inf
    asin nan:nan >1:nan <-1:nan 0:0 -0:-0
    asinh nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    atan nan:nan 0:0 -0:-0 inf:~pi/2 -inf:~-pi/2
    atanh nan:nan <-1:nan >1:nan -1:-inf 1:inf 0:0 -0:-0
    ceil inf:inf -inf:-inf 0:0 -0:-0 nan:nan int:x
    cos nan:nan 0:1 -0:1 inf:nan -inf:nan
    cosh nan:nan 0:1 -0:1 inf:inf -inf:inf
    exp nan:nan 0:1 -0:1 inf:inf -inf:0
    expm1 nan:nan 0:0 -0:-0 inf:inf -inf:-1
    floor inf:inf -inf:-inf 0:0 -0:-0 nan:nan int:x
    isfinite inf:0 -inf:0 nan:0 fin:1
    isinf inf:1 -inf:1 nan:0 fin:0
    isnan nan:1 fin:0 inf:0 -inf:0
    log nan:nan -:nan 0:-inf -0:-inf 1:0 inf:inf
    log1p nan:nan <-1:nan -1:-inf 0:0 -0:-0 inf:inf
    log2 nan:nan -:nan 0:-inf -0:-inf 1:0 inf:inf
    log10 nan:nan -:nan 0:-inf -0:-inf 1:0 inf:inf
    reciprocal nan:nan 0:inf -0:-inf inf:0 -inf:-0
    round inf:inf -inf:-inf 0:0 -0:-0 nan:nan int:x 0.5:0 1.5:2 2.5:2 -0.5:-0 -2.5:-2
    sign nan:nan +:1 -:-1 0:0
    signbit 0:0 -0:1 inf:0 -inf:1 pos:0 neg:1
    sin nan:nan 0:0 -0:-0 inf:nan -inf:nan
    sinh nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    sqrt nan:nan -:nan 0:0 -0:-0 inf:inf
    square nan:nan 0:0 -0:0 inf:inf -inf:inf
    tan nan:nan 0:0 -0:-0 inf:nan -inf:nan
    tanh nan:nan 0:0 -0:-0 inf:1 -inf:-1
    trunc inf:inf -inf:-inf 0:0 -0:-0 nan:nan int:x
"""
QUOTIENTS = """
    nan,any:nan any,nan:nan inf,inf:nan inf,-inf:nan -inf,inf:nan -inf,-inf:nan 0,0:nan 0,-0:nan -0,0:nan -0,-0:nan
    0,+:0 -0,+:-0 0,-:-0 -0,-:0 +,0:inf +,-0:-inf -,0:-inf -,-0:inf inf,pos:inf inf,neg:-inf -inf,pos:-inf -inf,neg:inf
    pos,inf:0 pos,-inf:-0 neg,inf:-0 neg,-inf:0 pos,pos:(+) neg,neg:(+) pos,neg:(-) neg,pos:(-)
"""
TWO = f"""
    add nan,any:nan any,nan:nan inf,-inf:nan -inf,inf:nan inf,fin:inf -inf,fin:-inf fin,inf:inf fin,-inf:-inf -0,-0:-0
        -0,0:0 0,-0:0 0,0:0 0,num:y -0,num:y num,0:x num,-0:x
    subtract nan,any:nan any,nan:nan inf,inf:nan -inf,-inf:nan fin,inf:-inf -0,0:-0 -0,-0:0 0,0:0 num,0:x num,-0:x
    multiply nan,any:nan any,nan:nan inf,0:nan -inf,0:nan 0,inf:nan -0,-inf:nan +,+:(+) -,-:(+) +,-:(-) -,+:(-)
    divide {QUOTIENTS}
    floor_divide {QUOTIENTS}
    remainder nan,any:nan any,nan:nan inf,any:nan -inf,any:nan any,0:nan any,-0:nan 0,+:0 -0,+:0 0,-:-0 -0,-:-0
        pos,inf:x pos,-inf:y neg,inf:y neg,-inf:x num,pos:(+) num,neg:(-)
    pow num,nan:nan any,0:1 any,-0:1 1,any:1 nan,num:nan >1,inf:inf >1,-inf:0 <-1,inf:inf <-1,-inf:0 -1,inf:1 -1,-inf:1
        0.5,inf:0 0.5,-inf:inf -0.5,inf:0 -0.5,-inf:inf inf,+:inf inf,-:0 -inf,3:-inf -inf,2.5:inf -inf,2:inf -inf,-3:-0
        -inf,-2.5:0 -inf,-2:0 0,+:0 0,-:inf -0,3:-0 -0,2:0 -0,2.5:0 -0,-3:-inf -0,-2:inf -0,-2.5:inf neg,frac:nan
    atan2 nan,any:nan any,nan:nan +,0:~pi/2 +,-0:~pi/2 0,+:0 0,0:0 0,-0:~pi 0,-:~pi -0,+:-0 -0,0:-0 -0,-0:~-pi -0,-:~-pi
        -,0:~-pi/2 -,-0:~-pi/2 pos,inf:0 pos,-inf:~pi neg,inf:-0 neg,-inf:~-pi inf,fin:~pi/2 -inf,fin:~-pi/2
        inf,inf:~pi/4 inf,-inf:~3*pi/4 -inf,inf:~-pi/4 -inf,-inf:~-3*pi/4
    hypot inf,any:inf -inf,any:inf any,inf:inf any,-inf:inf nan,fin:nan fin,nan:nan nan,nan:nan 0,3:3 -0,-3:3 -3,0:3
    logaddexp nan,any:nan any,nan:nan inf,fin:inf fin,inf:inf inf,-inf:inf -inf,-inf:-inf
    maximum nan,any:nan any,nan:nan inf,fin:inf -inf,fin:y
    minimum nan,any:nan any,nan:nan inf,fin:y -inf,fin:-inf
    nextafter nan,any:nan any,nan:nan -0,0:0 0,-0:-0 fin,fin:(any)
    copysign pos,-0:(-) neg,0:(+) inf,-:-inf -inf,+:inf 0,-:-0 -0,+:0 nan,any:nan
"""
# Of complex numbers: `real,imaginary part:parts of the result`.
COMPLEX = """
    acos 0,0:~pi/2,-0 -0,0:~pi/2,-0 0,nan:~pi/2,nan -0,nan:~pi/2,nan fin,inf:~pi/2,-inf num,nan:nan,nan
        -inf,pos:~pi,-inf inf,pos:0,-inf -inf,inf:~3*pi/4,-inf inf,inf:~pi/4,-inf inf,nan:nan,?inf -inf,nan:nan,?inf
        nan,fin:nan,nan nan,inf:nan,-inf nan,nan:nan,nan
    acosh 0,0:0,~pi/2 -0,0:0,~pi/2 fin,inf:inf,~pi/2 num,nan:nan,nan 0,nan:nan,?pi/2 -inf,pos:inf,~pi inf,pos:inf,0
        -inf,inf:inf,~3*pi/4 inf,inf:inf,~pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,fin:nan,nan nan,inf:inf,nan
        nan,nan:nan,nan
    asinh 0,0:0,0 pos,inf:inf,~pi/2 fin,nan:nan,nan inf,pos:inf,0 inf,inf:inf,~pi/4 nan,0:nan,0 nan,num:nan,nan
        nan,inf:?inf,nan nan,nan:nan,nan
    atanh 0,0:0,0 0,nan:0,nan 1,0:inf,0 pos,inf:0,~pi/2 num,nan:nan,nan inf,pos:0,~pi/2 inf,inf:0,~pi/2 inf,nan:0,nan
        nan,fin:nan,nan nan,inf:?0,~pi/2 nan,nan:nan,nan
    cosh 0,0:1,0 0,inf:nan,?0 0,nan:nan,?0 num,inf:nan,nan num,nan:nan,nan inf,0:inf,0 inf,inf:?inf,nan inf,nan:inf,nan
        nan,0:nan,?0 nan,-0:nan,?0 nan,num:nan,nan nan,nan:nan,nan inf,1:inf,inf inf,2:-inf,inf
    exp 0,0:1,0 -0,0:1,0 fin,inf:nan,nan fin,nan:nan,nan inf,0:inf,0 inf,1:inf,inf inf,2:-inf,inf -inf,fin:?0,?0
        -inf,inf:?0,?0 inf,inf:?inf,nan -inf,nan:?0,?0 inf,nan:?inf,nan nan,0:nan,0 nan,num:nan,nan nan,nan:nan,nan
    expm1 0,0:0,0 -0,0:0,0 fin,inf:nan,nan fin,nan:nan,nan inf,0:inf,0 inf,1:inf,inf inf,2:-inf,inf -inf,fin:-1,?0
        -inf,inf:-1,?0 inf,inf:?inf,nan -inf,nan:-1,?0 inf,nan:?inf,nan nan,0:nan,0 nan,num:nan,nan nan,nan:nan,nan
    log -0,0:-inf,~pi 0,0:-inf,0 fin,inf:inf,~pi/2 fin,nan:nan,nan -inf,pos:inf,~pi inf,pos:inf,0 -inf,inf:inf,~3*pi/4
        inf,inf:inf,~pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,fin:nan,nan nan,inf:inf,nan nan,nan:nan,nan
    log1p -1,0:-inf,0 fin,inf:inf,~pi/2 fin,nan:nan,nan -inf,pos:inf,~pi inf,pos:inf,0 -inf,inf:inf,~3*pi/4
        inf,inf:inf,~pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,fin:nan,nan nan,inf:inf,nan nan,nan:nan,nan
    sign 0,0:0,0 -0,0:0,0 0,-0:0,0 -0,-0:0,0 nan,any:nan,nan any,nan:nan,nan
    sinh 0,0:0,0 0,inf:?0,nan 0,nan:?0,nan pos,inf:nan,nan pos,nan:nan,nan inf,0:inf,0 inf,1:inf,inf inf,2:-inf,inf
        inf,inf:?inf,nan inf,nan:?inf,nan nan,0:nan,0 nan,num:nan,nan nan,nan:nan,nan
    sqrt 0,0:0,0 -0,0:0,0 any,inf:inf,inf fin,nan:nan,nan -inf,pos:0,inf inf,pos:inf,0 -inf,nan:nan,?inf inf,nan:inf,nan
        nan,fin:nan,nan nan,nan:nan,nan
    tanh 0,0:0,0 num,inf:nan,nan 0,inf:0,nan num,nan:nan,nan 0,nan:0,nan inf,pos:1,0 inf,inf:1,?0 inf,nan:1,?0
        nan,0:nan,0 nan,num:nan,nan nan,nan:nan,nan
"""
# By their relation to those above, as the standard has none for them: `f(z) = -i g(iz)`, `cos(z) = cosh(iz)`.
TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh", "cos": "cosh"}
OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow,
}  # fmt: skip
NUMBERS = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.0, -3.0, 7.0, 1e5, -1e5, 2**-10, 123456.5]
KINDS: dict[str, Callable[[float], bool]] = {
    "any": lambda x: True,
    "fin": math.isfinite,
    "num": lambda x: math.isfinite(x) and x not in (0, 1),
    "int": lambda x: math.isfinite(x) and x == round(x),
    "frac": lambda x: math.isfinite(x) and x != round(x),
    "pos": lambda x: 0 < x < inf,
    "neg": lambda x: -inf < x < 0,
    "+": lambda x: x > 0,
    "-": lambda x: x < 0,
}


def rows(text: str) -> list[tuple[str, list[str]]]:
    """Functions with their cases."""
    found: list[tuple[str, list[str]]] = []
    for word in text.split():
        if ":" in word:
            found[-1][1].append(word)
        else:
            found.append((word, []))
    return found


def alike(a: float, b: float) -> bool:
    """The same number; zeros of the same sign."""
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def number(text: str) -> float:
    return float(eval(text, {"nan": nan, "inf": inf, "pi": math.pi})) if text != "-0" else -0.0


def numbers_like(text: str) -> list[float]:
    if text in KINDS:
        return [x for x in NUMBERS if KINDS[text](x)]
    if text[0] in "<>":
        bound = float(text[1:])
        return [x for x in NUMBERS if (x > bound if text[0] == ">" else x < bound)]
    return [number(text)]


def expected(result: str, operands: tuple[float, ...]) -> Callable[[float], bool]:
    """Whether a value is the one that a case says."""
    if result in ("x", "y"):
        return lambda out: alike(out, operands["xy".index(result)])
    if result == "(any)":
        return lambda out: True
    if result[0] == "(":
        return lambda out: math.copysign(1, out) == (1 if result == "(+)" else -1)
    if result[0] == "~":
        return lambda out: math.isclose(out, number(result[1:]), rel_tol=1e-5)
    if result[0] == "?":
        return lambda out: math.isclose(abs(out), number(result[1:]), rel_tol=1e-5)
    return lambda out: alike(out, number(result))


def assert_cases(name: str, function: Callable[..., Any], cases: list[str], dtype: str) -> None:
    wanted = []
    for case in cases:
        parts = [numbers_like(part) for part in case.split(":")[0].split(",")]
        for x in parts[0]:
            wanted += [(case, (x, y)) for y in parts[1]] if len(parts) == 2 else [(case, (x,))]
    columns = [jnp.asarray(column, dtype) for column in zip(*(operands for _, operands in wanted), strict=True)]
    for how in (function, corejax.jit(function)):
        out = np.asarray(how(*columns)).astype(float)
        wrong = [
            (case, operands, value)
            for (case, operands), value in zip(wanted, out.tolist(), strict=True)
            if not expected(case.split(":")[1], operands)(value)
        ]
        assert not wrong, f"{name}: {wrong[:5]}"


@pytest.mark.parametrize(("name", "cases"), rows(ONE))
def test_functions_of_one_operand(name: str, cases: list[str]) -> None:
    for dtype in ("float32", "float64"):
        assert_cases(name, getattr(jnp, name), cases, dtype)


@pytest.mark.parametrize(("name", "cases"), rows(TWO))
def test_functions_of_two_operands(name: str, cases: list[str]) -> None:
    for dtype in ("float32", "float64"):
        assert_cases(name, getattr(jnp, name), cases, dtype)
        if name in OPERATORS:
            assert_cases(name, OPERATORS[name], cases, dtype)


@pytest.mark.parametrize(("name", "cases"), rows(COMPLEX))
def test_functions_of_a_complex_operand(name: str, cases: list[str]) -> None:
    wanted = []
    for case in cases:
        operand, result = case.split(":")
        parts = [numbers_like(part) for part in operand.split(",")]
        wanted += [(complex(*z), [expected(part, z) for part in result.split(",")]) for z in itertools.product(*parts)]
    turned = [other for other, known in TURNED.items() if known == name]
    for function, turn in [(getattr(jnp, name), 1), *((getattr(jnp, other), -1j) for other in turned)]:
        for dtype, how in itertools.product(("complex64", "complex128"), (function, corejax.jit(function))):
            given = np.array([complex(z.imag, -z.real) if turn != 1 else z for z, _ in wanted], dtype)
            out = np.asarray(how(jnp.asarray(given)))
            if turn != 1 and function is not jnp.cos:
                out = [complex(-w.imag, w.real) for w in out.tolist()]
            for (z, checks), w in zip(wanted, np.asarray(out).tolist(), strict=True):
                for check, part in zip(checks, (w.real, w.imag), strict=True):
                    assert check(part) or (turn != 1 and part == 0 and check(-part)), (function, z, w)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_division_with_remainder_is_numpys_for_finite_numbers(dtype: str) -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=500), rng.choice([0.1, 0.2, -0.3, 7.0, -1.1], 500)]).astype(dtype)
    x = np.concatenate([rng.normal(size=500) * 1e4, rng.integers(-999, 999, 500) * y[500:]]).astype(dtype)
    for how in (jnp.divmod, corejax.jit(jnp.divmod)):
        for out, wanted in zip(how(x, y), np.divmod(x, y), strict=True):
            np.testing.assert_array_equal(out, wanted)
            np.testing.assert_array_equal(np.signbit(out), np.signbit(wanted))


def test_a_remainder_has_derivatives_where_it_is_zero() -> None:
    for x, y in ((6.0, 3.0), (-6.0, 3.0), (6.0, -3.0), (-7.0, 3.0)):
        by_x, by_y = corejax.grad(operator.mod, argnums=(0, 1))(x, y)
        assert (by_x, by_y) == (1.0, -math.floor(x / y))


def test_an_axis_that_is_not_there_is_an_index_error() -> None:
    x = jnp.ones((2, 3))
    for call in (lambda: jnp.expand_dims(x, 3), lambda: jnp.flip(x, axis=-3), lambda: jnp.fft.fft(x + 0j, axis=2)):
        with pytest.raises(IndexError, match="out of bounds for array of dimension"):
            call()
        with pytest.raises(ValueError, match="out of bounds for array of dimension"):
            call()


def test_diagonals_far_outside() -> None:
    x = jnp.ones((2, 3))
    for k in (2**31 - 1, 2**31, 10**20):
        assert not jnp.eye(2, 3, k=k).any() and not jnp.eye(2, 3, k=-k).any()
        assert not jnp.triu(x, k=k).any() and jnp.triu(x, k=-k).all()
        assert jnp.tril(x, k=k).all() and not jnp.tril(x, k=-k).any()
        assert jnp.tri(2, 3, k).all() and not jnp.tri(2, 3, -k).any()


def test_masks_without_elements() -> None:
    x = jnp.ones((2, 3))
    assert x[jnp.zeros((0,), bool)].shape == (0, 3)
    assert x[jnp.zeros((2, 0), bool)].shape == x[jnp.zeros((0, 0), bool)].shape == (0,)
    assert (x.at[jnp.zeros((0, 3), bool)].set(5.0) == x).all()
    with pytest.raises(IndexError, match="did not match"):
        x[jnp.zeros((0, 2), bool)]


def test_norms_and_equations_without_numbers() -> None:
    for order, wanted in {1: 0, -1: inf, 2: 0, -2: inf, inf: 0, -inf: 0, "fro": 0, "nuc": 0}.items():
        assert jnp.linalg.matrix_norm(jnp.ones((3, 0)), ord=order) == wanted
    assert jnp.linalg.vector_norm(jnp.ones(0), ord=-inf) == inf
    assert jnp.linalg.solve(jnp.zeros((0, 0)), jnp.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert jnp.linalg.solve(jnp.eye(1), jnp.zeros((0, 1, 0))).shape == (0, 1, 0)


@pytest.mark.parametrize("bits", [32, 64])
def test_indices_are_of_the_dtype_that_the_namespace_says(bits: int) -> None:
    x, at = jnp.arange(4.0), jnp.asarray([0.5, 2.5])
    with corejax.config.override(default_dtype_bits=bits):
        indexing = jnp.__array_namespace_info__().default_dtypes()["indexing"]
        assert indexing == f"int{bits}"
        for out in (
            jnp.searchsorted(x, at), corejax.jit(jnp.searchsorted)(x, at), jnp.digitize(at, x), jnp.argmax(x),
            jnp.argsort(x), jnp.nonzero(x)[0], jnp.count_nonzero(x), *jnp.unique_all(x)[1:],
        ):  # fmt: skip
            assert out.dtype == indexing
