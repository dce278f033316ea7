"""Every example of the page on tracing: what it prints, its jaxpr to the letter, and its errors.

Each example is a file of its own, so that errors can name the user's lines.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corejax import Array, Tracer, config, grad, jit, jvp, make_jaxpr, vmap
from corejax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

pytest.importorskip("corejax_xla_backend")
jnp = pytest.importorskip("corejax.numpy")

HEADER = """\
from functools import partial
from corejax import grad, jit, make_jaxpr
import corejax.numpy as jnp
import numpy as np
"""
FIRST_LINE = HEADER.count("\n") + 1  # of an example, in its file

Example = Callable[[str], dict[str, Any]]


@pytest.fixture
def example(tmp_path: Path) -> Example:
    """Run source text as a file `example.py`; gives its names."""

    def run(source: str) -> dict[str, Any]:
        path = tmp_path / "example.py"
        path.write_text(HEADER + source)
        linecache.checkcache(str(path))
        names: dict[str, Any] = {"__name__": "example", "path": str(path)}
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names

    return run


def test_what_tracers_print(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    with config.override(x64_compat=True):
        names = example(
            """\
@jit
def f(x, y):
  print("Running f():")
  print(f"  x = {x}")
  print(f"  y = {y}")
  result = jnp.dot(x + 1, y + 1)
  print(f"  result = {result}")
  return result

x = jnp.array(np.random.randn(3, 4))
y = jnp.array(np.random.randn(4))
out = f(x, y)
"""
        )
        f, x, y, out = (names[name] for name in ("f", "x", "y", "out"))
        assert capsys.readouterr().out == (
            "Running f():\n"
            "  x = JitTracer(float32[3,4])\n"
            "  y = JitTracer(float32[4])\n"
            "  result = JitTracer(float32[3])\n"
        )
        assert type(out) is Array and re.fullmatch(r"Array\(\[.*\], dtype=float32\)", repr(out))
        np.testing.assert_allclose(out, (np.asarray(x) + 1) @ (np.asarray(y) + 1), rtol=1e-5)
        x2, y2 = jnp.array(np.random.randn(3, 4)), jnp.array(np.random.randn(4))
        np.testing.assert_allclose(f(x2, y2), (np.asarray(x2) + 1) @ (np.asarray(y2) + 1), rtol=1e-5)
        assert capsys.readouterr().out == "", "matching inputs: computed by XLA, not by Python"


def test_jaxpr_of_dot() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.dot(x + 1, y + 1)

    x, y = np.zeros((3, 4), np.float32), np.zeros(4, np.float32)
    assert str(make_jaxpr(f)(x, y)) == (
        """\
{ lambda ; a:f32[3,4] b:f32[4]. let
    c:f32[3,4] = add a 1.0:f32[]
    d:f32[4] = add b 1.0:f32[]
    e:f32[3] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] c d
  in (e,) }"""
    )


# -- control flow on traced values -----------------------------------------------------------------

CONDITIONAL = """\
@jit
def f(x, neg):
  return -x if neg else x
"""


def test_boolean_conversion_of_a_traced_value(example: Example) -> None:
    names = example(CONDITIONAL)
    with pytest.raises(TracerBoolConversionError) as caught:
        names["f"](1, True)
    first, second, advice = str(caught.value).splitlines()
    assert first == "Attempted boolean conversion of traced array with shape bool[]."
    assert second == (
        f"The error occurred while tracing the function f at {names['path']}:{FIRST_LINE} for jit. "
        "This concrete value was not available in Python because it depends on the value of the argument neg."
    )
    assert "static_argnums" in advice and "cond" in advice
    lines = {entry.lineno + 1 for entry in caught.traceback if str(entry.path) == names["path"]}
    assert FIRST_LINE + 2 in lines, "the user's line is in the traceback"
    assert int(jit(lambda x: x + 1)(1)) == 2


def test_static_arguments(example: Example) -> None:
    names = example(
        """\
traced = []

@partial(jit, static_argnums=(1,))
def f(x, neg):
  traced.append(neg)
  return -x if neg else x
"""
    )
    f = names["f"]
    assert repr(f(1, True)) == "Array(-1, dtype=int32, weak_type=True)"
    assert repr(f(1, False)) == "Array(1, dtype=int32, weak_type=True)"
    assert repr(f(2, True)) == "Array(-2, dtype=int32, weak_type=True)"
    assert repr(f(1, neg=False)) == "Array(1, dtype=int32, weak_type=True)"
    assert names["traced"] == [True, False, False], "one trace for each value, and for a keyword its own"


@pytest.mark.parametrize(
    ("convert", "error", "what"),
    [
        (bool, TracerBoolConversionError, "boolean conversion"),
        (int, ConcretizationTypeError, r"int\(\)"),
        (float, ConcretizationTypeError, r"float\(\)"),
        (complex, ConcretizationTypeError, r"complex\(\)"),
        (range, TracerIntegerConversionError, "__index__"),
        (np.asarray, TracerArrayConversionError, "NumPy array"),
        (lambda x: x.item(), ConcretizationTypeError, r"item\(\)"),
        (lambda x: x.tolist(), ConcretizationTypeError, r"tolist\(\)"),
    ],
    ids=["bool", "int", "float", "complex", "range", "numpy", "item", "tolist"],
)
@pytest.mark.parametrize("transform", [jit, make_jaxpr], ids=["jit", "make_jaxpr"])
def test_every_conversion_names_function_line_transform_argument_and_way_out(
    transform: Any, convert: Any, error: type[Exception], what: str
) -> None:
    def of_two(first: Any, second: Any) -> Any:
        return convert(second) and first

    line = of_two.__code__.co_firstlineno
    with pytest.raises(error, match=what) as caught:
        transform(of_two)(1, 2)
    text = str(caught.value)
    name = "jit" if transform is jit else "make_jaxpr"
    assert f"while tracing the function of_two at {__file__}:{line} for {name}." in text
    assert "because it depends on the value of the argument second." in text
    assert "static" in text or "corejax.numpy" in text


def test_the_arguments_that_a_value_depends_on_are_named() -> None:
    def f(tree: Any, *rest: Any, scale: Any) -> Any:
        return 1 if tree["w"][0] + rest[1] * scale > 0 else 0

    with pytest.raises(
        TracerBoolConversionError,
        match=r"the values of the arguments tree\['w'\]\[0\], rest\[1\] and scale\.",
    ) as caught:
        jit(f)({"v": 1.0, "w": [2.0, 3.0]}, 4.0, 5.0, scale=2.0)
    assert "'v'" not in str(caught.value)


def test_static_arguments_do_not_shift_the_names() -> None:
    @jit
    def inner(x: Any) -> Any:
        return x

    def f(n: int, x: Any, mode: str, y: Any, *, flag: bool, z: Any) -> Any:
        return 1 if inner(y) * z > 0 else 0

    jitted = jit(f, static_argnums=(0,), static_argnames=("mode", "flag"))
    with pytest.raises(TracerBoolConversionError, match=r"the values of the arguments y and z\."):
        jitted(3, 1.0, "mean", 2.0, flag=True, z=3.0)


def test_vmap_is_named_too() -> None:
    def f(x: Any) -> Any:
        return 1 if x > 0 else 0

    with pytest.raises(
        TracerBoolConversionError, match=r"tracing the function f at .*test_tracing.py:\d+ for vmap"
    ) as caught:
        vmap(f)(np.arange(3.0))
    assert "mapped axis" in str(caught.value)


# -- static and traced operations ------------------------------------------------------------------

RESHAPE = """\
@jit
def f(x):
  return x.reshape(jnp.array(x.shape).prod())

x = jnp.ones((2, 3))
"""


def test_shapes_have_to_be_static(example: Example) -> None:
    names = example(RESHAPE)
    with pytest.raises(TypeError) as caught:
        names["f"](names["x"])
    path, line = names["path"], FIRST_LINE
    assert str(caught.value) == (
        "Shapes must be 1D sequences of concrete values of integer type, got [JitTracer(int32[])].\n"
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.\n"
        f"The error occurred while tracing the function f at {path}:{line} for jit. "
        "This value became a tracer due to corejax operations on these lines:\n"
        "\n"
        "  operation a:i32[] = reduce_prod[axes=(0,)] b\n"
        f"    from line {path}:{line + 2}:19 (f)"
    )


def test_what_is_static_and_what_is_traced(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    names = example(
        """\
@jit
def f(x):
  print(f"x = {x}")
  print(f"x.shape = {x.shape}")
  print(f"jnp.array(x.shape).prod() = {jnp.array(x.shape).prod()}")
  # comment this out to avoid the error:
  # return x.reshape(jnp.array(x.shape).prod())

x = jnp.ones((2, 3))
"""
    )
    assert names["f"](names["x"]) is None
    assert capsys.readouterr().out == (
        "x = JitTracer(float32[2,3])\nx.shape = (2, 3)\njnp.array(x.shape).prod() = JitTracer(int32[])\n"
    )


def test_numpy_for_static_operations(example: Example) -> None:
    names = example(
        """\
@jit
def f(x):
  return x.reshape((np.prod(x.shape),))

x = jnp.ones((2, 3))
"""
    )
    assert repr(names["f"](names["x"])) == "Array([1., 1., 1., 1., 1., 1.], dtype=float32)"


def test_shapes_from_an_argument() -> None:
    """The other cause of a shape that is not static: the argument is named."""
    for make in (lambda n: jnp.zeros(n), lambda n: jnp.ones((2, n)), lambda n: jnp.arange(6).reshape(n, 2)):
        with pytest.raises(TypeError, match=r"depends on the value of the argument n") as caught:
            jit(make)(3)
        assert "static_argnums" in str(caught.value)
        assert jit(make, static_argnums=0)(3).size


# -- kinds of values -------------------------------------------------------------------------------


def divide(x: Any, y: Any) -> Any:
    return x / y if y >= 1.0 else 0.0


def test_concrete_tracers_resolve_conditionals() -> None:
    assert float(grad(divide)(3.0, 2.0)) == 0.5
    assert float(grad(divide)(3.0, 0.5)) == 0.0
    assert [float(x) for x in jvp(divide, (3.0, 2.0), (1.0, 0.0))] == [1.5, 0.5]


def test_jit_of_divide_needs_a_static_argument() -> None:
    with pytest.raises(TracerBoolConversionError, match="the argument y"):
        jit(divide)(3.0, 2.0)
    assert float(jit(divide, static_argnums=1)(3.0, 2.0)) == 1.5
    assert float(jit(grad(divide), static_argnums=1)(3.0, 2.0)) == 0.5


def test_grad_inside_jit_has_abstract_tracers() -> None:
    """Within an outer transformation whose tracers are abstract, those of grad are abstract too."""
    with pytest.raises(TracerBoolConversionError, match=r"for jit.*the argument y"):
        jit(lambda x, y: grad(divide)(x, y))(3.0, 2.0)


@pytest.mark.parametrize(
    ("transform", "kind"),
    [
        (lambda f: jit(f)(1.0), "JitTracer(float32[])"),
        (lambda f: make_jaxpr(f)(1.0), "JitTracer(float32[])"),
        (lambda f: vmap(f)(np.ones(3, np.float32)), "BatchTracer(float32[]"),
        (lambda f: grad(f)(1.0), "JVPTracer(primal="),
        (lambda f: jvp(f, (1.0,), (1.0,)), "JVPTracer(primal="),
    ],
    ids=["jit", "make_jaxpr", "vmap", "grad", "jvp"],
)
def test_tracers_that_transformations_introduce(transform: Any, kind: str) -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(repr(x))
        assert isinstance(x, Tracer)
        if kind.startswith("JVP"):
            assert (int(x), bool(x > 0)) == (1, True)
        assert x.shape == () and x.dtype == np.float32
        return x

    transform(f)
    assert len(seen) == 1 and seen[0].startswith(kind)
