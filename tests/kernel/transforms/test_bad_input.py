"""Bad input to transformations: a clear error that says what, where and what to do, and a clean trace stack."""

from __future__ import annotations

import re

import numpy as np
import pytest

import corejax as cj
from corejax import jacfwd, jacrev  # of lax_basic, which is off in the tests
from corejax.extend import Array, Primitive
from corejax.extend.transforms import trace_stack
from tests.kernel.toys import add, mul, sin, sum_

pytestmark = pytest.mark.usefixtures("toys")
X = np.array([0.5, 1.0, -2.0], np.float32)
N = np.array([1, 2, 3], np.int32)
M = np.arange(6, dtype=np.float32).reshape(2, 3)


def refused(error, call, *words):
    """Run `call`, which has to raise; the message holds the words; then everything works as before."""
    with pytest.raises(error) as info:
        call()
    text = str(info.value)
    for word in words:
        assert word in text, f"{word!r} is not in:\n{text}"
    assert len(trace_stack()) == 1
    np.testing.assert_allclose(cj.vmap(cj.grad(sin))(X), np.cos(X), rtol=1e-6)
    return text


# -- arguments and results that are not arrays ----------------------------------------------------------------


def model(params, x):
    return sum_(mul(params["w"], x))


BAD_ARGUMENT = {
    "jvp": lambda p: cj.jvp(model, (p, X), (p, X)),
    "vjp": lambda p: cj.vjp(model, p, X),
    "grad": lambda p: cj.grad(model)(p, X),
    "value_and_grad": lambda p: cj.value_and_grad(model)(p, X),
    "linearize": lambda p: cj.linearize(model, p, X),
    "linear_transpose": lambda p: cj.linear_transpose(model, p, X),
    "vmap": lambda p: cj.vmap(model)(p, X),
    "make_jaxpr": lambda p: cj.make_jaxpr(model)(p, X),
    "eval_shape": lambda p: cj.eval_shape(model, p, X),
    "jacfwd": lambda p: jacfwd(model)(p, X),
    "jacrev": lambda p: jacrev(model)(p, X),
}


@pytest.mark.parametrize("name", BAD_ARGUMENT)
@pytest.mark.parametrize(
    "value, words", [("text", "'text' of type str"), (object, "type"), ({1, 2}, "set"), (np.array(["a"]), "<U1")]
)
def test_an_argument_that_is_not_an_array_is_named(name, value, words):
    refused(TypeError, lambda: BAD_ARGUMENT[name]({"w": X, "b": [value]}), "params['b'][0]", words, name, "model")


def test_an_integer_that_does_not_fit():
    for name in ("vmap", "make_jaxpr"):
        refused(
            OverflowError,
            lambda name=name: BAD_ARGUMENT[name]({"w": 2**40}),
            "params['w']",
            "1099511627776",
            "default_dtype_bits",
        )


def test_keyword_arguments_are_named():
    f = lambda x, *, scale: mul(x, scale)
    refused(TypeError, lambda: cj.vmap(f)(X, scale="s"), "argument scale is 's'")
    refused(TypeError, lambda: cj.make_jaxpr(f)(X, scale={"k": "s"}), "argument scale['k']")
    refused(TypeError, lambda: cj.grad(lambda x, *rest: x, argnums=2)(1.0, 2.0, "s"), "rest[1]")


RETURNING = {
    "jvp": lambda f: cj.jvp(f, (X,), (X,)),
    "vjp": lambda f: cj.vjp(f, X),
    "linearize": lambda f: cj.linearize(f, X),
    "vmap": lambda f: cj.vmap(f)(X),
    "make_jaxpr": lambda f: cj.make_jaxpr(f)(X),
    "eval_shape": lambda f: cj.eval_shape(f, X),
    "linear_transpose": lambda f: cj.linear_transpose(f, X),
    "jacfwd": lambda f: jacfwd(f)(X),
}


@pytest.mark.parametrize("name", RETURNING)
def test_a_result_that_is_not_an_array_is_named(name):
    def answer(x):
        return {"a": x, "b": (x, "text")}

    refused(TypeError, lambda: RETURNING[name](answer), "answer", "'text' of type str", "['b'][1]")


@pytest.mark.parametrize("name", ["jvp", "vjp", "linearize"])
def test_a_result_beside_aux_that_is_not_an_array(name):
    transform = {"jvp": lambda f, **k: cj.jvp(f, (X,), (X,), **k), "vjp": lambda f, **k: cj.vjp(f, X, **k)}.get(
        name, lambda f, **k: cj.linearize(f, X, **k)
    )
    refused(TypeError, lambda: transform(lambda x: ("text", x), has_aux=True), "'text'")
    refused(TypeError, lambda: transform(lambda x: x, has_aux=True), "must return a two-element tuple (out, aux)")
    out = transform(lambda x: (x, "any aux"), has_aux=True)
    assert out[-1] == "any aux"


@pytest.mark.parametrize(
    "transform",
    [
        cj.vmap,
        cj.grad,
        cj.value_and_grad,
        jacfwd,
        jacrev,
        cj.make_jaxpr,
        cj.linearize,
        cj.vjp,
        cj.linear_transpose,
    ],
)
def test_what_is_transformed_is_a_function(transform):
    refused(
        TypeError,
        lambda: transform(X, X) if transform in (cj.linearize, cj.vjp) else transform(X),
        "function",
        "ndarray",
    )
    refused(TypeError, lambda: cj.jvp(3, (X,), (X,)), "jvp transforms a function, got 3")
    refused(TypeError, lambda: cj.eval_shape(3, X), "function")


# -- grad -----------------------------------------------------------------------------------------------------


def test_grad_of_an_output_that_is_not_a_scalar():
    def loss(x):
        return sin(x)

    refused(TypeError, lambda: cj.grad(loss)(X), "scalar-output", "loss", "(3,)", "jacrev or jacfwd")
    refused(TypeError, lambda: cj.grad(lambda x: (x, x))(1.0), "one scalar output", "has_aux=True")
    refused(TypeError, lambda: cj.grad(lambda x: {"a": x})(1.0), "one scalar output", "'a'")
    refused(TypeError, lambda: cj.grad(lambda x: None)(1.0), "returns None")
    refused(TypeError, lambda: cj.grad(lambda x: "text")(1.0), "returns 'text'")
    refused(TypeError, lambda: cj.grad(lambda x: [x])(1.0), "one scalar output")
    refused(TypeError, lambda: cj.grad(sin, has_aux=True)(1.0), "two-element tuple (out, aux)")
    refused(TypeError, lambda: cj.grad(lambda x: (sin(x), 1), has_aux=True)(X), "shape (3,)")


def test_grad_of_an_integer_input():
    f = lambda params, k: sum_(mul(params["x"], 1))
    refused(TypeError, lambda: cj.grad(f)({"x": N}, 1), "params['x']", "int32", "floating-point", "allow_int=True")
    refused(TypeError, lambda: cj.grad(f, argnums=1)({"x": N}, 1), "argument k", "int32")
    refused(TypeError, lambda: cj.grad(lambda b: b)(True), "argument b", "bool")
    refused(TypeError, lambda: jacfwd(f)({"x": N}, 1), "jacfwd", "params['x']", "int32")
    refused(TypeError, lambda: jacrev(f)({"x": N}, 1), "jacrev", "params['x']", "int32")


def test_grad_of_an_output_that_is_not_floating_point():
    refused(TypeError, lambda: cj.grad(lambda x: N[0])(1.0), "real floating-point output", "int32", "zero everywhere")
    refused(TypeError, lambda: cj.grad(lambda x: True)(1.0), "bool")
    refused(TypeError, lambda: cj.grad(lambda z: mul(z, z))(np.complex64(1j)), "complex64", "holomorphic=True")
    refused(TypeError, lambda: jacrev(lambda x: N)(X), "jacrev", "int32")


def test_holomorphic():
    refused(TypeError, lambda: cj.grad(sin, holomorphic=True)(1.0), "requires inputs with complex dtype", "argument")
    f = lambda z: 2.0
    refused(
        TypeError, lambda: cj.grad(f, holomorphic=True)(np.complex64(1j)), "holomorphic=True needs a complex output"
    )
    refused(
        TypeError, lambda: jacfwd(sin)(np.complex64(1j)), "jacfwd takes real inputs", "complex64", "holomorphic=True"
    )
    refused(TypeError, lambda: jacrev(f, holomorphic=True)(np.complex64(1j)), "complex outputs")


def test_argnums():
    f = lambda x, y: mul(x, y)
    for argnums in (2, -3, (0, 2)):
        refused(
            TypeError,
            lambda a=argnums: cj.grad(f, argnums=a)(1.0, 2.0),
            "positional argument",
            "2 positional arguments",
        )
        refused(TypeError, lambda a=argnums: jacfwd(f, argnums=a)(1.0, 2.0), "jacfwd", "positional argument")
    refused(
        TypeError, lambda: cj.grad(f, argnums=1)(1.0, y=2.0), "needs positional argument 1", "1 positional argument"
    )
    refused(ValueError, lambda: cj.grad(f, argnums=(0, -2))(1.0, 2.0), "twice")
    refused(TypeError, lambda: cj.grad(f, argnums="x")(1.0, 2.0), "argnums", "'x'")
    refused(TypeError, lambda: cj.grad(f, argnums=(0, 1.5))(1.0, 2.0), "argnums")


# -- vmap -----------------------------------------------------------------------------------------------------


def test_vmap_of_unequal_sizes():
    text = refused(
        ValueError,
        lambda: cj.vmap(lambda batch, k: k, in_axes=(0, None))({"x": M, "y": [X]}, 1.0),
        "vmap got inconsistent sizes for array axes to be mapped, of",
        "batch['x']: axis 0 of float32[2,3] has size 2",
        "batch['y'][0]: axis 0 of float32[3] has size 3",
    )
    assert "k:" not in text
    refused(ValueError, lambda: cj.vmap(sin, axis_size=4)(X), "inconsistent sizes", "size 3", "axis_size: 4")
    refused(ValueError, lambda: cj.vmap(lambda x, *, k: x)(M, k=X), "k: axis 0 of float32[3] has size 3")


def test_vmap_hands_what_is_not_mapped_on_as_it_is():
    """Functions, strings and Python's numbers, also within an argument, and through a second vmap and grad."""
    M2 = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(cj.vmap(lambda f, x: f(x), (None, 0))(sin, X), np.sin(X), rtol=1e-6)
    twice = cj.vmap(cj.vmap(lambda d, x: x if d["sign"] == "+" else mul(x, d["k"]), (None, 0)), (None, 0))
    np.testing.assert_array_equal(twice({"sign": "-", "k": -1}, M2), -M2)
    part = cj.vmap(lambda d: mul(d["x"], float(len(d["name"]))), in_axes=({"x": 0, "name": None},))
    np.testing.assert_array_equal(part({"x": X, "name": "abc"}), 3 * X)
    power = cj.grad(lambda x: cj.vmap(lambda x, n: [mul(x, x), x][n % 2], (0, None))(x, 2)[1])
    np.testing.assert_allclose(power(X), [0, 2 * X[1], 0], rtol=1e-6)
    refused(TypeError, lambda: cj.vmap(lambda f, x: f(x))(sin, X), "vmap", "argument f", "not an array")
    refused(TypeError, lambda: cj.vmap(lambda x, k: k, (0, None))(X, "s"), "returns 's' of type str")


def test_vmap_without_a_mapped_argument():
    refused(ValueError, lambda: cj.vmap(sin, in_axes=None)(X), "no argument is mapped", "in_axes", "axis_size")
    refused(ValueError, lambda: cj.vmap(add, in_axes=(None, None))(X, X), "no argument is mapped")
    refused(ValueError, lambda: cj.vmap(lambda: X)(), "no argument is mapped")
    refused(ValueError, lambda: cj.vmap(lambda d: 1.0)({}), "no argument is mapped")


def test_vmap_axes_that_do_not_exist():
    refused(ValueError, lambda: cj.vmap(lambda x: x)(1.0), "argument x", "float32[]", "axis 0")
    refused(ValueError, lambda: cj.vmap(lambda x: x, in_axes=2)(M), "argument x", "float32[2,3]", "axis 2")
    refused(ValueError, lambda: cj.vmap(lambda x: x, in_axes=-3)(M), "axis -3")
    refused(ValueError, lambda: cj.vmap(lambda x: {"o": x}, out_axes=3)(M), "output ['o'] has 2 axes", "out_axes 3")


def test_in_axes():
    refused(TypeError, lambda: cj.vmap(sin, in_axes={"x": 0}), "in_axes", "tuple", "{'x': 0}")
    refused(TypeError, lambda: cj.vmap(sin, in_axes="0"), "in_axes", "'0'")
    refused(TypeError, lambda: cj.vmap(sin, in_axes=(0.5,)), "in_axes", "0.5")
    refused(TypeError, lambda: cj.vmap(sin, in_axes=(True,)), "in_axes", "True")
    refused(TypeError, lambda: cj.vmap(sin, out_axes="0"), "out_axes", "'0'")
    refused(ValueError, lambda: cj.vmap(sin, in_axes=(0, 0))(X), "2 entries", "1 positional argument")
    refused(
        ValueError, lambda: cj.vmap(lambda d: d, in_axes=({"a": 0},))({"a": X, "b": X}), "in_axes", "'b'", "tree prefix"
    )
    refused(ValueError, lambda: cj.vmap(lambda d: d, in_axes=((0, 1),))([M, M]), "in_axes")
    refused(
        ValueError,
        lambda: cj.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X),
        "out_axes",
        "tuple of 3 against tuple of 2",
    )


def test_out_axes_none_of_a_mapped_output():
    f = lambda x: {"a": X, "b": sin(x)}
    refused(
        ValueError, lambda: cj.vmap(f, out_axes=None)(X), "output ['b'] differs along the mapped axis", "cannot be None"
    )
    refused(ValueError, lambda: cj.vmap(sin, out_axes=None)(X), "output of the function differs")


# -- tangents and cotangents ----------------------------------------------------------------------------------


def test_structures_of_primals_and_tangents():
    f = lambda d: d["a"]
    text = refused(
        TypeError, lambda: cj.jvp(f, ({"a": X, "b": X},), ({"a": X},)), "primals and tangents differ", "'a': *, 'b': *"
    )
    assert re.search(r"primals: .*'b'.*\n.*tangents: (?!.*'b')", text)
    refused(TypeError, lambda: cj.jvp(sin, (X,), (X, X)), "(*,)", "(*, *)")
    refused(TypeError, lambda: cj.jvp(sin, (X,), ((X,),)), "differ in structure")
    refused(TypeError, lambda: cj.jvp(sin, X, X), "primals must be a tuple or list")
    refused(TypeError, lambda: cj.jvp(sin, (X,), X), "tangents must be a tuple or list")
    refused(TypeError, lambda: cj.linearize(f, {"a": X})[1](X), "takes tangents of structure", "'a': *")
    refused(TypeError, lambda: cj.linearize(f, {"a": X})[1](), "takes tangents of structure")
    refused(TypeError, lambda: cj.vjp(lambda x: (x, x), X)[1](X), "pullback", "structure", "(*, *)")
    refused(TypeError, lambda: cj.vjp(lambda x: x, X)[1]((X,)), "pullback", "structure", "(*,)")
    refused(TypeError, lambda: cj.linear_transpose(lambda x: {"o": x}, X)(X), "transpose", "structure", "'o'")


@pytest.mark.parametrize(
    "wrong, shown", [(M, "float32[2,3]"), (X.astype(np.float64), "float64[3]"), (N, "int32[3]"), (1.0, "float32[]")]
)
def test_types_of_tangents_and_cotangents(wrong, shown):
    f = lambda d: mul(d["a"], 2.0)
    d = {"a": X}
    refused(TypeError, lambda: cj.jvp(f, (d,), ({"a": wrong},)), "tangent of d['a']", shown, "float32[3]")
    refused(TypeError, lambda: cj.linearize(f, d)[1]({"a": wrong}), "tangent of d['a']", shown, "float32[3]")
    refused(TypeError, lambda: cj.vjp(f, d)[1](wrong), "cotangent of output", shown, "float32[3]")
    refused(TypeError, lambda: cj.linear_transpose(f, d)(wrong), "cotangent of output", shown, "float32[3]")


def test_tangents_that_are_no_arrays():
    refused(TypeError, lambda: cj.jvp(sin, (X,), ("t",)), "'t'", "not an array")
    refused(TypeError, lambda: cj.vjp(lambda x: {"o": x}, X)[1]({"o": "t"}), "output['o']", "'t'")


def test_complex_numbers_do_not_become_real_ones():
    refused(TypeError, lambda: cj.jvp(lambda x: x, (1.0,), (1j,)), "complex64[]", "float32[]")
    assert cj.jvp(lambda x: x, (1j,), (1.0,))[1].dtype == np.complex64


def test_tangents_of_integers():
    f = lambda x, i: mul(x, 2.0)
    refused(TypeError, lambda: cj.jvp(f, (X, N), (X, N)), "tangent of i", "float0", "int32")
    refused(TypeError, lambda: cj.vjp(lambda x: N, X)[1](N), "cotangent of output", "float0")
    refused(TypeError, lambda: cj.linear_transpose(lambda i: (i, 1.0), N), "argument i", "int32", "no cotangents")


# -- primitives -----------------------------------------------------------------------------------------------

for_bad = {"impl": lambda x, **params: x, "abstract_eval": lambda a, **params: a}
params_p = Primitive("toy.with_params", **for_bad)


@pytest.mark.parametrize("value, shown", [([1, 2], "[1, 2] of type list"), ({"a": 1}, "dict"), (np.ones(2), "ndarray")])
def test_params_that_are_not_hashable(value, shown):
    for use in (lambda x: params_p.bind(x, k=value), cj.make_jaxpr(lambda x: params_p.bind(x, k=value))):
        refused(
            TypeError,
            lambda use=use: use(X),
            "parameter 'k'",
            "'toy.with_params'",
            shown,
            "hashable",
            __file__,
            "operand",
        )
    refused(TypeError, lambda: params_p.bind(X, k=Array(X)), "parameter 'k'", "Array", "operand")


@pytest.mark.parametrize("transform", [cj.make_jaxpr, cj.vmap, jacfwd])
def test_a_param_that_is_a_tracer(transform):
    refused(
        TypeError,
        lambda: transform(lambda x: params_p.bind(X, k=x))(X),
        "parameter 'k'",
        "a traced value",
        __file__,
        "operand",
    )


def test_operands_that_are_no_arrays():
    for use in (lambda: params_p.bind("text"), lambda: cj.make_jaxpr(lambda x: params_p.bind("text"))(X)):
        refused(TypeError, use, "operand of primitive 'toy.with_params'", "'text' of type str", "not an array")
    refused(TypeError, lambda: cj.vmap(lambda x: add(x, "text"))(X), "'text'")
    refused(TypeError, lambda: params_p.bind(None), "None of type NoneType")
    refused(TypeError, lambda: params_p.bind([1.0]), "[1.0] of type list")
    refused(TypeError, lambda: params_p.bind(np.array(["a"])), "<U1", "not supported")
    refused(OverflowError, lambda: params_p.bind(2**40), "1099511627776", "int32")


def test_operands_that_do_not_fit():
    refused(TypeError, lambda: add(X, N), "toy.add", "f32[3], i32[3]")
    refused(TypeError, lambda: cj.make_jaxpr(add)(X, N), "toy.add", "f32[3], i32[3]")


@pytest.mark.parametrize(
    "result, shown",
    [
        (lambda x: x.astype(np.float64), "float64[3]"),
        (lambda x: x[:2], "float32[2]"),
        (lambda x: x.tolist(), "float64[3]"),
        (lambda x: [x], "float32[1,3]"),
    ],
)
def test_impl_that_disagrees_with_abstract_eval(result, shown):
    p = Primitive(f"toy.disagrees_{shown}_{id(result)}", impl=result, abstract_eval=lambda a: a)
    for use in (lambda: p.bind(X), lambda: cj.grad(lambda x: sum_(mul(x, p.bind(X))))(X)):
        refused(TypeError, use, repr(p.name), "impl rule returned", shown, "eval rule promises float32[3]", "module")


@pytest.mark.parametrize("result, shown", [(lambda x: [x], "1 results"), (lambda x: x, "one value of type ndarray")])
def test_impl_that_gives_another_number_of_results(result, shown):
    for device in (False, True):
        p = Primitive(f"toy.counts_{shown}_{device}", multiple_results=True, abstract_eval=lambda a: [a, a, a])
        cj.extend.impl_rules.register(p, (lambda x: [x]) if device and shown == "1 results" else result, device=device)
        wanted = shown.replace("ndarray", "Array") if device else shown
        refused(TypeError, lambda p=p: p.bind(X), repr(p.name), wanted, "a list of 3")


def test_arrays_of_other_libraries():
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return X

    refused(TypeError, lambda: params_p.bind(Foreign()), "of type Foreign is not an array", "numpy.asarray")
    refused(TypeError, lambda: cj.vmap(sin)(Foreign()), "of type Foreign", "numpy.asarray")

    class Ours:
        def __corejax_array__(self):
            return X

    np.testing.assert_allclose(cj.grad(lambda x: sum_(sin(x)))(Ours()), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(sin(Ours()), np.sin(X), rtol=1e-6)


def test_float0():
    f = cj.grad(lambda i: sum_(X), allow_int=True)
    assert f(N).dtype == cj.float0 and f(N).shape == (3,)
    refused(TypeError, lambda: cj.make_jaxpr(f)(N), "float0 arrays stand for the tangents of integers")
    refused(TypeError, lambda: sin(f(N)), "float0")


def test_mapped_axes_of_any_layout():
    flipped = np.asfortranarray(M)[:, ::-1]
    np.testing.assert_allclose(cj.vmap(sum_, in_axes=1)(flipped), flipped.sum(0), rtol=1e-6)


def test_masked_arrays():
    masked = np.ma.array(X, mask=[True, False, False])
    for call in (
        lambda: sin(masked),
        lambda: cj.grad(lambda x: sum_(sin(x)))(masked),
        lambda: cj.make_jaxpr(sin)(masked),
        lambda: cj.vmap(sin)(masked),
    ):
        refused(ValueError, call, "masked arrays are not supported", "x.filled(value)")
    refused(ValueError, lambda: cj.vmap(sin)(masked), "argument args[0]: masked arrays are not supported")


def test_a_shape_without_a_dtype():
    refused(ValueError, lambda: cj.ShapeDtypeStruct((2,), None), "dtype is None")


def _generator(x):
    yield x


async def _coroutine(x):
    return x


@pytest.mark.parametrize("fun", [_generator, _coroutine])
@pytest.mark.parametrize("transform", [cj.jit, cj.grad, cj.vmap, cj.make_jaxpr, jacfwd, jacrev, cj.value_and_grad])
def test_functions_that_do_not_run_when_called(transform, fun):
    with pytest.raises(TypeError, match="generator or coroutine function <function _"):
        transform(fun)


@pytest.mark.parametrize(
    "result, text",
    [
        (lambda x: (x, mul(x, x)), "returns (ShapedArray(float32[]), ShapedArray(float32[])) (for a pair"),
        (lambda x: {"a": x, "b": None}, "returns {'a': ShapedArray(float32[]), 'b': None}"),
        (lambda x: [x, "b"], "returns [ShapedArray(float32[]), 'b']"),
    ],
)
def test_an_output_that_is_no_scalar_is_told_with_its_types(result, text):
    for transform in (cj.grad, cj.value_and_grad):
        with pytest.raises(TypeError, match=re.escape(text)):
            transform(result)(X[0])
