"""The parser refuses whatever is no program with its own errors, and says where."""

from __future__ import annotations

import random
import re
import warnings

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import JaxprSyntaxError, JaxprTypeError
from corejax.ir import parse_jaxpr

X = np.ones(3, np.float32)
PLACE = re.compile(r"line \d+, column \d+: ")
PIECES = [
    *(
        "99999999999999999999",
        "(",
        "[",
        "{",
        "}",
        ")",
        "]",
        "'",
        "\\",
        "\x00",
        "é",
        "\u202e",
        "٣",
        "²",
        "f32[",
        "i64[]",
    ),
    *(
        "nan(0x",
        "1e999",
        "None",
        "slice(",
        "frozenset([[1]])",
        ":",
        "~",
        "b'\\xff'",
        "<opaque x>",
        "lambda",
        "let",
        "in",
    ),
    *(
        ";",
        ".",
        ",",
        "=",
        "-1",
        "True",
        "(1+2j)",
        "float8_e4m3fn",
        "sin",
        "_",
        "base64('",
        "full(",
        "slice(1,2,3)",
        "S",
    ),
    *("a", " ", "\n", "#", "f32[99999999999999999999,99999999999]", "\ud800", "1" * 5000),
]


def programs() -> list[str]:
    return [
        str(cj.make_jaxpr(cj.grad(lambda x: jnp.sum(jnp.sin(x) * 2)))(X)),
        cj.make_jaxpr(lambda x: x + np.arange(3.0))(X).pretty(consts=True),
        str(cj.make_jaxpr(lambda x: lax.scan(lambda c, y: (c * y, c + 1), 1.0, x))(X)),
        str(cj.make_jaxpr(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x[0:2]))(X)),
        "{ lambda a:f32[2,2]=base64('AAAAAAAAAAAAAAAAAAAAAA==') b:f32[300]=full(0.0) ; . let in (a, b) }",
    ]


def mutated(text: str, others: list[str], rng: random.Random) -> str:
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(12))
        other = rng.choice(others)
        begin = rng.randrange(len(other))
        middle = rng.choice(
            [
                "",
                rng.choice(PIECES),
                text[start:end] * 50,
                chr(rng.randrange(0x3000)),
                other[begin : begin + rng.randrange(40)],
            ]
        )
        text = text[:start] + middle + text[rng.choice([start, end]) :]
    return text


def assert_refused(text: str) -> str:
    with pytest.raises((JaxprSyntaxError, JaxprTypeError)) as refused:
        parse_jaxpr(text)
    assert PLACE.match(str(refused.value)), str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_programs(seed: int) -> None:
    rng, valid, refused = random.Random(seed), programs(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(700):
            text = mutated(rng.choice(valid), valid, rng)
            try:
                parse_jaxpr(text)
            except (JaxprSyntaxError, JaxprTypeError) as error:
                refused += 1
                assert PLACE.match(str(error)), (text, str(error))
    assert refused > 300


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "\ufeff{ lambda ; . let in () }",
        "{ lambda ; . let in () }\x00",
        "{ lambda ; . let in (q,) }",
        "{ lambda ; a:nope[3]. let in (a,) }",
        "{ lambda ; a:f32[-1]. let in (a,) }",
        "{ lambda ; a:S[3]. let in (a,) }",
        f"{{ lambda ; a:f32[{'9' * 5000}]. let in (a,) }}",
        "{ lambda a:f32[99999999999999999999999999]=full(0.0) ; . let in (a,) }",
        "{ lambda a:f32[99999999999,99999999999]=full(0.0) ; . let in (a,) }",
        f"{{ lambda a:f32[{'1,' * 80}1]=full(0.0) ; . let in (a,) }}",
        "{ lambda ; . let\n a:f32[] = sin[x=" + "(" * 50_000 + "\n in (a,) }",
        "{ lambda ; . let\n a:f32[] = xla_call[call_jaxpr=" * 5000,
        f"{{ lambda ; . let\n a:f32[] = sin[x={'1' * 5000}] 1.0:f32[]\n in (a,) }}",
        "{ lambda ; . let\n a:f32[] = sin[x=1e999] 1.0:f32[]\n in (a,) }",
        "{ lambda ; . let\n a:f32[] = sin[x=slice([1], 2, 3)] 1.0:f32[]\n in (a,) }",
        f"{{ lambda ; . let\n a:i32[] = add {'1' * 5000}:i32[] 1:i32[]\n in (a,) }}",
    ],
)
def test_what_is_no_program(text: str) -> None:
    assert_refused(text)


def test_an_ill_typed_program_names_the_place_of_its_equation() -> None:
    text = "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n    c:f32[4] = cos b\n  in (c,) }"
    assert assert_refused(text).startswith("line 3, column 5: primitive 'cos' returns")


def test_a_parameter_that_a_rule_trips_over_is_a_type_error() -> None:
    text = str(cj.make_jaxpr(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(X))
    assert "AttributeError" in assert_refused(
        re.sub(r"branches=\(.*?\n {6}\)", "branches=(1, 2)", text, flags=re.DOTALL)
    )


@pytest.mark.parametrize("text", [None, 3, b"{ lambda ; . let in () }", ["{"], X])
def test_no_text(text: object) -> None:
    with pytest.raises(TypeError, match="parse_jaxpr: text must be a string, got "):
        parse_jaxpr(text)  # type: ignore[arg-type]
