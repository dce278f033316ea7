"""Values of value types against the arrays that they stand for, under compositions of transformations."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.experimental.jet import jet
from corejax.extend import Primitive, ShapedArray, deflinear, jvp_rules, primitives, transpose_rules
from corejax.extend.programs import parse_jaxpr
from corejax.extend.types import Packed, ValueType
from tests.value_types import Columns, Stacked, Symmetric, dense, matrix, numbers_in, rounded, symmetric


@pytest.fixture(scope="module")
def straight() -> Any:
    """Two primitives, to `Columns` and back, with identities as derivatives."""
    made = {"round": Primitive("test.round", decomposition=rounded),
            "numbers": Primitive("test.numbers", decomposition=numbers_in)}  # fmt: skip
    for p in made.values():
        jvp_rules.register(p, lambda primals, tangents, p=p: (p.bind(*primals), tangents[0]))
    yield made["round"].bind, made["numbers"].bind
    for p in made.values():
        del primitives[p.name]


X = matrix(3, 3)
S = (X + X.T) / 2


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


# -- a type that is its own tangent type -------------------------------------------------------------------------------

V = jnp.arange(3.0)
QUADRATIC = lambda m: jnp.sin(V @ m @ V) + jnp.sum(m**3)


PROGRAMS: dict[str, Callable[[Any, Callable[[Any], Any], Callable[[Any], Any]], Any]] = {
    "energy": lambda s, to, of: QUADRATIC(of(s)),
    "scan": lambda s, to, of: QUADRATIC(of(lax.scan(lambda c, _: (to(jnp.sin(of(c))), None), s, None, length=3)[0])),
    "cond": lambda s, to, of: lax.cond(of(s)[0, 0] > 0, lambda s: QUADRATIC(of(s)), lambda s: of(s).sum(), s),
    "checkpoint": lambda s, to, of: corejax.checkpoint(lambda s: QUADRATIC(of(to(of(s) ** 2))))(s),
    "jit": lambda s, to, of: QUADRATIC(of(corejax.jit(lambda s: to(jnp.cos(of(s))))(s))),
    "stacked": lambda s, to, of: lax.scan(
        lambda c, r: (c + QUADRATIC(of(r)), None), 0.0, lax.scan(lambda c, _: (c, c), s, None, length=2)[1]
    )[0],
}
WRAPPERS = {"plain": lambda f: f, "jit": corejax.jit}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_dense_matrices(name: str, wrap: Callable[..., Any]) -> None:
    program = PROGRAMS[name]

    def on_values(x: Any) -> Any:
        return program(symmetric(x), symmetric, dense)

    def on_arrays(x: Any) -> Any:
        sym = lambda x: jnp.triu(x) + jnp.triu(x, 1).T
        return program(sym(x), sym, lambda x: x)

    close(wrap(on_values)(S), on_arrays(S))
    close(wrap(corejax.grad(on_values))(S), corejax.grad(on_arrays)(S))
    pushed = wrap(lambda s, x: corejax.jvp(on_values, (s,), (x,))[1])
    close(pushed(S, X), corejax.jvp(on_arrays, (S,), (X,))[1])
    batch = jnp.stack([S, 2 * S, -S])
    close(wrap(corejax.vmap(corejax.grad(on_values)))(batch), corejax.vmap(corejax.grad(on_arrays))(batch))


def test_gradients_are_values_of_the_type() -> None:
    gradient = corejax.jit(corejax.grad(lambda s: QUADRATIC(dense(s)) + dense(s).sum()))(symmetric(S))
    assert type(gradient) is Packed and gradient.aval is Symmetric((3, 3), "float32")


def test_hessian_vector_products() -> None:
    s, t = symmetric(S), symmetric(X + X.T)
    out = corejax.jvp(corejax.grad(lambda s: QUADRATIC(dense(s))), (s,), (t,))[1]
    f = lambda u: QUADRATIC(dense(lax.pack(s.aval, u)))
    close(out.parts[0], corejax.hessian(f)(s.parts[0]) @ t.parts[0])


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_branches_and_loops_of_batches(wrap: Callable[..., Any]) -> None:
    batch, counts = jnp.stack([S, 2 * S, -S]), jnp.array([0, 2, 1])
    looped = lambda n, s: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, symmetric(2 * dense(c[1]))), (0, s))
    out = wrap(corejax.vmap(looped))(counts, corejax.vmap(symmetric)(batch))[1]
    close(corejax.vmap(dense)(out), batch * 2.0 ** counts[:, None, None])
    branch = lambda p, s: lax.cond(p, lambda s: symmetric(3 * dense(s)), lambda s: s, s)
    taken = jnp.array([True, False, True])
    loss = lambda s: corejax.vmap(lambda p, s: dense(branch(p, s)).sum())(taken, s).sum()
    gradient = wrap(corejax.grad(loss))(corejax.vmap(symmetric)(batch))
    close(gradient.parts[0][:, 1], [6, 2, 6])


class Turned(ValueType):
    """Matrices stored in transposed form: parts whose axes stand elsewhere."""

    def parts(self) -> tuple[ShapedArray, ...]:
        return (ShapedArray(self.shape[::-1], self.dtype),)

    def part_axes(self, axis: int) -> tuple[int, ...]:
        return (len(self.shape) - 1 - axis,)


def turned(x: Any) -> Any:
    return lax.pack(Turned(x.shape, x.dtype), x.T)


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
@pytest.mark.parametrize("length", [0, 3])
def test_parts_with_axes_elsewhere(wrap: Callable[..., Any], length: int) -> None:
    xs = matrix(length, 2, 4)
    of = lambda t: lax.unpack(t)[0].T
    total = lambda ts: lax.scan(lambda c, t: (c + jnp.sin(of(t)).sum(), turned(2 * of(t))), 0.0, ts)
    total_of_arrays = lambda xs: lax.scan(lambda c, x: (c + jnp.sin(x).sum(), 2 * x), 0.0, xs)
    (end, doubled), (expected, twice) = wrap(total)(turned(xs)), total_of_arrays(xs)
    close(end, expected)
    close(of(doubled), twice)
    close(of(wrap(corejax.grad(lambda ts: total(ts)[0]))(turned(xs))), jnp.cos(xs))
    if length:
        moved = wrap(corejax.vmap(lambda t: turned(3 * of(t)), in_axes=1, out_axes=2))(turned(xs))
        close(of(moved), jnp.moveaxis(3 * xs, 1, 2))


# -- tangents of another type ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_straight_through(straight: Any, wrap: Callable[..., Any]) -> None:
    to, of = straight
    w, x = matrix(4, 3), matrix(2, 4, seed=1)
    q = to(w)
    assert q.aval is Columns((4, 3), "float32") and q.parts[0].dtype == np.int8
    assert float(jnp.abs(of(q) - w).max()) <= float(jnp.abs(w).max()) / 250
    loss = lambda q, x: jnp.sum(jnp.tanh(x @ of(q)))
    close(wrap(corejax.grad(loss))(q, x), corejax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(of(q)))
    close(wrap(corejax.grad(lambda w: loss(to(w), x)))(w), wrap(corejax.grad(loss))(q, x))
    layers = wrap(corejax.vmap(to))(matrix(5, 3, 3))
    deep = lambda qs: lax.scan(lambda c, q: (jnp.tanh(c @ of(q)), None), x[:, :3], qs)[0].sum()
    plain = lambda ws: lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x[:, :3], ws)[0].sum()
    close(wrap(corejax.grad(deep))(layers), corejax.grad(plain)(corejax.vmap(of)(layers)))
    carried = lambda w: lax.scan(lambda c, _: (to(0.5 * of(c)), of(c).sum()), to(w), None, length=3)[1].sum()
    close(wrap(corejax.grad(carried))(w), np.full((4, 3), 1.75))


def test_the_rule_of_a_primitive_survives_a_batch(straight: Any) -> None:
    to, of = straight
    taken, w = jnp.array([True, False]), jnp.stack([matrix(3, 2), matrix(3, 2, seed=1)])
    branch = lambda p, q: lax.cond(p, lambda q: to(2 * of(q)), lambda q: q, q)
    loss = lambda q: corejax.vmap(lambda p, q: of(branch(p, q)).sum())(taken, q).sum()
    close(corejax.grad(loss)(corejax.vmap(to)(w)), np.broadcast_to([[[2.0]], [[1.0]]], (2, 3, 2)))


def test_unpack_has_no_derivative_then(straight: Any) -> None:
    to, _ = straight
    with pytest.raises(TypeError, match=r"unpack: values of type Columns\[float32\[3,3\]\] have tangents of type f32"):
        corejax.grad(lambda q: lax.unpack(q)[1].sum())(to(X))


# -- programs, values and errors ---------------------------------------------------------------------------------------


def test_programs_are_printed_and_parsed() -> None:
    constant = symmetric(S)
    program = corejax.make_jaxpr(lambda s: (dense(s) + dense(constant), s))(constant)
    text = str(program)
    assert "; f:Symmetric[f32[3,3]]. let" in text
    assert str(parse_jaxpr(text)) == text
    unit = type("Quantity", (Symmetric,), {"__module__": __name__})((2, 2), "float32", unit="m")
    assert repr(unit) == "Quantity[float32[2,2], unit='m']" and unit.fields == {"unit": "m"}
    assert unit.update(shape=(3, 3)).fields == {"unit": "m"} and unit is not Symmetric((2, 2), "float32")
    text = str(corejax.make_jaxpr(lambda s: s)(Packed(unit, (jnp.ones(3),))))
    assert str(parse_jaxpr(text)) == text and "a:Quantity[f32[2,2], unit='m']" in text


def test_values_are_copied_and_pickled() -> None:
    s = symmetric(S)
    for other in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s)), corejax.device_put(s)):
        assert other.aval is s.aval
        close(other.parts[0], s.parts[0])
    assert (s.shape, s.ndim, s.dtype) == ((3, 3), 2, np.float32)


def test_shapes_without_values() -> None:
    struct = corejax.eval_shape(symmetric, S)
    assert corejax.typeof(struct) is Symmetric((3, 3), "float32")
    close(corejax.jit(dense).lower(struct).compile()(symmetric(S)), S)


def test_donated_and_cached_calls() -> None:
    f = corejax.jit(lambda s: symmetric(2 * dense(s)), donate_argnums=0)
    s = symmetric(S)
    for _ in range(4):
        s = f(s)
    close(dense(s), 16 * S)
    assert f._cache_size() == 1


def test_references_hold_values() -> None:
    cell = corejax.new_ref(symmetric(S))

    @corejax.jit
    def double() -> None:
        cell[...] = symmetric(2 * dense(cell[...]))

    double()
    double()
    close(dense(cell[...]), 4 * S)


def test_operations_on_arrays_refuse_values() -> None:
    s = symmetric(S)
    with pytest.raises(TypeError, match=r"primitive 'sin' takes arrays, and operand 0 is of type Symmetric\[f32"):
        jnp.sin(s)
    with pytest.raises(TypeError, match="primitive 'add' takes arrays"):
        corejax.jit(lambda s: s + 1.0)(s)
    with pytest.raises(TypeError, match="is not an array: use an operation of this type"):
        np.asarray(s)
    with pytest.raises(TypeError, match=r"pack: Symmetric\[float32\[3,3\]\] is stored in \(float32\[6\]\), got"):
        lax.pack(s.aval, S)
    with pytest.raises(TypeError, match="unpack: expected a value of a value type, got float32"):
        lax.unpack(S)


def test_debug_nans_looks_into_values() -> None:
    triangle = jnp.array([1.0, 2.0, np.nan])  # made before, so that only the packed result can be at fault
    with corejax.debug_nans(True), pytest.raises(FloatingPointError, match="pack"):
        lax.pack(Symmetric((2, 2), "float32"), triangle)


class Measured(ValueType):
    """Numbers with a unit, which is a field of the type."""

    def parts(self) -> tuple[ShapedArray, ...]:
        return (ShapedArray(self.shape, self.dtype),)


def _measured(x: Any, unit: str) -> Any:
    return lax.pack(Measured(x.shape, x.dtype, unit=unit), x)


def _squared(x: Any) -> Any:
    return _measured(lax.unpack(x)[0] ** 2, corejax.typeof(x).fields["unit"] * 2)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit, corejax.make_jaxpr])
@pytest.mark.parametrize(
    ("name", "fun"),
    [
        ("scan", lambda x: lax.scan(lambda c, _: (_squared(c), None), x, None, length=2)[0]),
        ("fori_loop", lambda x: lax.fori_loop(0, 2, lambda _, c: _squared(c), x)),
        ("while_loop", lambda x: lax.while_loop(lambda c: lax.unpack(c)[0][0] < 9, _squared, x)),
        ("cond", lambda x: lax.cond(lax.unpack(x)[0][0] > 0, _squared, lambda c: c, x)),
        ("switch", lambda x: lax.switch(lax.unpack(x)[0][0].astype(int), [_squared, lambda c: c], x)),
    ],
)
def test_fields_stay_the_same_in_loops_and_branches(name: str, fun: Any, wrap: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\b(?s:.)*unit='mm?'\](?s:.)*unit='mm?'\]"):
        wrap(fun)(_measured(jnp.array([2.0, 3.0]), "m"))


def test_tangents_have_the_fields_of_their_type() -> None:
    x, other = _measured(jnp.ones(2), "m"), _measured(jnp.ones(2), "s")
    with pytest.raises(TypeError, match=r"tangent of x has type .*unit='s'\], but the value has type .*unit='m'\]"):
        corejax.jvp(lambda x: _squared(x), (x,), (other,))
    with pytest.raises(TypeError, match=r"unit='m'\], but the value has type .*unit='mm'\]"):
        corejax.vjp(_squared, x)[1](x)
    forward = corejax.custom_jvp(_squared)
    forward.defjvp(lambda primals, tangents: (_squared(*primals), tangents[0]))
    with pytest.raises(TypeError, match=r"has type .*unit='m'\].*: it must be .*unit='mm'\]$"):
        corejax.jvp(forward, (x,), (x,))
    backward = corejax.custom_vjp(_squared)
    backward.defvjp(lambda x: (_squared(x), None), lambda _, ct: (other,))
    with pytest.raises(TypeError, match=r"has type .*unit='s'\].*: it must be .*unit='m'\]$"):
        corejax.grad(lambda x: lax.unpack(backward(x))[0].sum())(x)


@pytest.mark.parametrize("wrap", [lambda f: f, corejax.jit])
def test_a_batch_keeps_its_axis_for_collectives(wrap: Callable[..., Any]) -> None:
    share_p = Primitive("tests.share", decomposition=lambda x: x / lax.psum(x, "i"))
    jvp_rules.register(share_p, lambda primals, tangents: (share_p.bind(*primals), 4 * tangents[0]))
    x = jnp.arange(1.0, 7.0).reshape(2, 3)
    rows = corejax.vmap(corejax.vmap(share_p.bind, axis_name="i"), axis_name="k")
    np.testing.assert_allclose(wrap(rows)(x), x / x.sum(1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(wrap(corejax.vmap(share_p.bind, axis_name="i"))(x), x / x.sum(0), rtol=1e-6)
    np.testing.assert_array_equal(wrap(corejax.grad(lambda x: rows(x).sum()))(x), np.full((2, 3), 4.0))


def test_two_primitives_of_one_name_keep_their_rules() -> None:
    def scaled(factor: float) -> Primitive:
        primitive = Primitive("tests.scaled", decomposition=lambda x: factor * x)
        jvp_rules.register(primitive, lambda primals, tangents: (primitive.bind(*primals), 10 * factor * tangents[0]))
        return primitive

    x = jnp.ones(3)
    for primitive, factor in [(first := scaled(2.0), 2), (scaled(3.0), 3), (first, 2)]:
        batch = corejax.vmap(primitive.bind)
        np.testing.assert_array_equal(corejax.jit(batch)(x), factor * x)
        np.testing.assert_array_equal(corejax.grad(lambda x, f=batch: f(x).sum())(x), 10 * factor * x)


# -- jacobians ---------------------------------------------------------------------------------------------------------


def images(s: Any, w: Any) -> Any:
    return {"y": jnp.sin(dense(s) @ w), "trace": jnp.trace(dense(s)) * w.sum()}


@pytest.mark.parametrize("wrap", [lambda g: g, corejax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("jacobian", [corejax.jacfwd, corejax.jacrev])
def test_jacobians_with_respect_to_a_value_are_batches_of_gradients(
    jacobian: Callable[..., Any], wrap: Callable[..., Any]
) -> None:
    s, w = symmetric(S), matrix(3, 2, seed=1)
    got = wrap(jacobian(images, argnums=(0, 1)))(s, w)
    of_arrays = lambda triangle, w: images(lax.pack(s.aval, triangle), w)
    want = corejax.jacfwd(of_arrays, argnums=(0, 1))(s.parts[0], w)
    for name, ndim in (("y", 2), ("trace", 0)):
        assert got[name][0].aval is s.aval.update(shape=(*(3, 2)[:ndim], 3, 3))
        close(got[name][0].parts[0], want[name][0])
        close(got[name][1], want[name][1])


@pytest.mark.parametrize("jacobian", [corejax.jacfwd, corejax.jacrev])
def test_jacobians_of_parts_with_axes_elsewhere(jacobian: Callable[..., Any]) -> None:
    x = matrix(2, 3)
    value = lax.pack(Stacked(x.shape, x.dtype), x, jnp.stack([x, 2 * x]))

    def outputs(value: Any) -> Any:
        one, two = lax.unpack(value)
        return jnp.sin(one) @ jnp.cos(two[0] + two[1]).T

    found = jacobian(outputs)(value)
    assert found.aval is value.aval.update(shape=(2, 2, 2, 3))
    one, two = corejax.jacfwd(lambda *parts: outputs(lax.pack(value.aval, *parts)), argnums=(0, 1))(*value.parts)
    close(found.parts[0], one)
    close(found.parts[1], jnp.moveaxis(two, 2, 0))


def test_jacobians_have_the_shape_of_the_tangents(straight: Any) -> None:
    to, of = straight
    q, x = to(matrix(4, 3)), matrix(2, 4, seed=1)
    f = lambda q: jnp.tanh(x @ of(q))
    want = corejax.jacfwd(lambda w: jnp.tanh(x @ w))(of(q))
    close(corejax.jacfwd(f)(q), want)
    close(corejax.jacrev(f)(q), want)
    close(corejax.jacrev(to)(matrix(4, 3)), jnp.eye(12).reshape(4, 3, 4, 3))  # of an output of the type
    close(corejax.hessian(lambda q: f(q).sum())(q), corejax.hessian(lambda w: jnp.tanh(x @ w).sum())(of(q)))


def test_jacobians_whose_type_cannot_hold_them_are_refused() -> None:
    for jacobian in (corejax.jacfwd, corejax.jacrev):
        with pytest.raises(TypeError, match=rf"{jacobian.__name__} of symmetric: .* type Symmetric.*lax.unpack"):
            jacobian(symmetric)(S)
    with pytest.raises(TypeError, match=r"derivatives of the output have the type Symmetric.*corejax.lax.pack"):
        corejax.hessian(lambda s: (dense(s) ** 2).sum())(symmetric(S))


def test_keys_are_stored_as_words() -> None:
    keys = corejax.random.split(corejax.random.key(0), 3)
    assert keys.aval.parts() == (ShapedArray((3, 2), "uint32"),)
    for wrap in (lambda f: f, corejax.jit):
        (words,) = wrap(lax.unpack)(keys)
        np.testing.assert_array_equal(words, corejax.random.key_data(keys))
        again = wrap(lambda words: lax.pack(keys.aval, words))(words)
        assert again.dtype == keys.dtype
        np.testing.assert_array_equal(corejax.random.key_data(again), words)


def test_types_as_arguments_of_what_only_traces() -> None:
    s = symmetric(S)
    of_type = corejax.eval_shape(lambda s: (symmetric(2 * dense(s)), dense(s)), s.aval)
    assert of_type[0].aval is s.aval and of_type[1].shape == (3, 3)
    f = corejax.jit(lambda s: (s, dense(s)))
    for info in (f.eval_shape(s), f.lower(s).out_info, f.lower(s.aval).compile().out_info):
        assert info[0].aval is s.aval and info[0].parts[0].shape == (6,)
        assert info[1].shape == (3, 3)


def test_fields_are_printed_in_one_order() -> None:
    one, two = Measured((2,), "float32", unit="m", scale=3), Measured((2,), "float32", scale=3, unit="m")
    assert one is two and str(one) == "Measured[float32[2], scale=3, unit='m']"


def test_stop_gradient_and_jet() -> None:
    s, x = symmetric(S), jnp.arange(3.0)
    gradient = corejax.grad(lambda s: (dense(s) @ dense(lax.stop_gradient(s))).sum())(s)
    close(gradient.parts[0], corejax.grad(lambda s: (dense(s) @ S).sum())(s).parts[0])
    one, two = symmetric(matrix(3, 3, seed=1)), symmetric(matrix(3, 3, seed=2))
    f = lambda s: jnp.sin(dense(s) @ x)
    _, series = jet(f, (s,), ((one, two),))
    _, want = jet(lambda m: jnp.sin(m @ x), (S,), ((dense(one), dense(two)),))
    for got, term in zip(series, want, strict=True):
        close(got, term)


def test_a_field_that_is_not_hashable_is_named() -> None:
    with pytest.raises(TypeError, match=r"Columns: field 'unit' must be hashable \(not a list\): \['m'\]"):
        Columns((3, 3), "float32", unit=["m"])
    assert Columns((3, 3), "float32", unit=("m",)).fields["unit"] == ("m",)


def test_values_have_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"Symmetric\[float32\[3,3\]\] is not an array"):
        bool(symmetric(S))
    with pytest.raises(corejax.errors.TracerBoolConversionError):
        corejax.jit(bool)(symmetric(S))


class Antisymmetric(Symmetric):
    """Another type with the shapes and dtypes of `Symmetric`."""


def _antisymmetric(x: Any) -> Any:
    return lax.pack(Antisymmetric(x.shape, x.dtype), *lax.unpack(symmetric(x)))


def test_functions_with_custom_rules_compare_types() -> None:
    converted, consts = corejax.closure_convert(dense, symmetric(S))
    close(converted(symmetric(S), *consts), S)
    with pytest.raises(TypeError, match=r"args\[0\] was Symmetric\[.*got Antisymmetric\["):
        converted(_antisymmetric(S), *consts)

    mapped = corejax.custom_batching.custom_vmap(symmetric)
    mapped.def_vmap(lambda size, batched, x: (_antisymmetric(x), True))
    with pytest.raises(TypeError, match=r"returns result of type Antisymmetric\[.*it must be Symmetric\["):
        corejax.vmap(mapped)(jnp.stack([S, S]))

    call = corejax.custom_derivatives.linear_call
    with pytest.raises(TypeError, match="must return cotangents of the linear arguments"):
        call(lambda _, s: dense(s), lambda _, ct: _antisymmetric(ct), (), symmetric(S))


def test_scalars_are_no_literals() -> None:
    s = lax.pack(Stacked((), "float32"), jnp.float32(3), jnp.arange(2.0))

    def scaled(x: Any) -> Any:
        return times_first_p.bind(s, x)

    np.testing.assert_allclose(corejax.linearize(scaled, jnp.float32(2))[1](jnp.float32(5)), 15)
    np.testing.assert_allclose(corejax.vjp(scaled, jnp.float32(2))[1](jnp.float32(5))[0], 15)


times_first_p = Primitive("toy.times_first", decomposition=lambda s, x: lax.unpack(s)[0] * x, linear_in=(1,))
deflinear(times_first_p, lambda ct, s, x: [None, times_first_p.bind(s, ct)])


def test_associative_scan_and_collectives_take_the_parts() -> None:
    batch = corejax.vmap(symmetric)(jnp.stack([S, 2 * S, 4 * S]))
    with pytest.raises(TypeError, match=r"elems is of type Symmetric\[f32\[3,3,3\]\]: scan over .*lax.unpack"):
        lax.associative_scan(lambda a, b: b, batch)
    for name, more in (("pmax", ()), ("all_gather", ()), ("ppermute", ([(0, 1)],)), ("all_to_all", (0, 0))):
        with pytest.raises(TypeError, match=name + r" takes arrays, .* Symmetric\[f32\[3,3\]\]: apply it .*lax.unpack"):
            corejax.vmap(lambda s, n=name, m=more: getattr(lax, n)(s, "i", *m), axis_name="i")(batch)
    mean = corejax.vmap(lambda s: lax.pmean(s, "i"), axis_name="i")(batch)
    close(dense(mean)[0], S * 7 / 3)


def test_batches_keep_the_written_transpose_rule() -> None:
    """The rules are ten times too large, to tell them from those of the decomposition."""

    def product(s: Any, t: Any, scale: float) -> list[Any]:
        return [symmetric(dense(s) * dense(t) * scale), dense(s)[..., 0]]

    product_p = Primitive("toy.product", decomposition=product, multiple_results=True)

    @jvp_rules.register(product_p)
    def product_jvp(primals: Any, tangents: Any, scale: float) -> Any:
        dots = product_p.bind(primals[0], tangents[1], scale=scale)
        return product_p.bind(*primals, scale=scale), [dots[0], None]

    @transpose_rules.register(product_p)
    def product_transpose(cts: Any, s: Any, t: Any, scale: float) -> Any:
        return [None, symmetric(10 * dense(product_p.bind(s, cts[0], scale=scale)[0]))]

    def loss(s: Any, t: Any) -> Any:
        return dense(product_p.bind(s, t, scale=2.0)[0]).sum()

    batch = corejax.vmap(symmetric)(jnp.stack([S, 2 * S, 4 * S]))
    slope = corejax.grad(loss, argnums=1)
    one = dense(slope(symmetric(S), symmetric(S)))
    for wrap in (lambda f: f, corejax.jit):
        np.testing.assert_allclose(dense(wrap(corejax.vmap(slope, (0, None)))(batch, symmetric(S)))[2], 4 * one)
        for axes, factors in (((0, 0), [1, 2, 4]), ((None, 0), [1, 1, 1]), ((0, None), 7)):
            s, t = (symmetric(S) if axis is None else batch for axis in axes)
            total = wrap(corejax.grad(lambda s, t, axes=axes: corejax.vmap(loss, axes)(s, t).sum(), argnums=1))(s, t)
            np.testing.assert_allclose(dense(total), np.multiply.outer(factors, one))
