"""Arrays whose elements are not numbers: moved, batched, looped over and compiled as any others; no arithmetic."""

import pickle

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import DerivedRuleWarning
from corejax.extend import Array, Primitive, dtypes, impl_rules
from corejax.extend.programs import check_jaxpr, parse_jaxpr
from corejax.extend.types import numbers_of, physical_rules

PAIR = dtypes.extended_dtype("pair<test>", base=np.uint32, shape=(2,), numbers="the test's own words")
GRID = dtypes.extended_dtype("grid<test>", base=np.int16, shape=(2, 3))


def words(x):
    return numbers_of(x._fetch())


def array_of(dtype, *shape):
    base, inner = dtypes.element_of(dtype)
    count = int(np.prod(shape + inner))
    numbers = np.arange(count, dtype=base).reshape(-1)
    return Array(numbers.view(dtype).reshape(shape))


def test_dtype():
    assert dtypes.extended_dtype("pair<test>", base="uint32", shape=(2,)) is PAIR
    assert dtypes.is_extended(PAIR) and not dtypes.is_extended(np.dtype(np.uint32))
    assert dtypes.element_of(GRID) == (np.dtype(np.int16), (2, 3))
    with pytest.raises(ValueError, match=r"pair<test> is known as uint32\[2\], got uint32\[4\]"):
        dtypes.extended_dtype("pair<test>", base=np.uint32, shape=(4,))
    with pytest.raises(ValueError, match="at least one number"):
        dtypes.extended_dtype("none<test>", base=np.uint32, shape=(0,))
    with pytest.raises(ValueError, match="a name must have the form"):
        dtypes.extended_dtype("float32", base=np.uint32, shape=(1,))
    assert dtypes.canonicalize_dtype(PAIR, allow_extended_dtype=True) == PAIR
    with pytest.raises(ValueError, match="a dtype of numbers is needed here, got pair<test>"):
        dtypes.canonicalize_dtype(PAIR, allow_extended_dtype=False)


def test_array_shows_its_numbers():
    x = array_of(PAIR, 2)
    assert repr(x) == "Array((2,), dtype=pair<test>) overlaying:\n[[0 1]\n [2 3]]"
    assert (x.shape, x.ndim, x.size, len(x), x.itemsize) == ((2,), 1, 2, 2, 8)
    assert x[0].shape == () and [e.shape for e in x] == [(), ()]
    np.testing.assert_array_equal(words(pickle.loads(pickle.dumps(x))), words(x))
    assert "pair&lt;test&gt;" in x.reshape(2, 1)._repr_html_()


MOVES = {
    "slice": lambda x: x[1:5:2],
    "index": lambda x: x[2],
    "gather": lambda x: x[np.array([3, 1])],
    "dynamic index": lambda x: lax.dynamic_index_in_dim(x, jnp.argmax(jnp.array([0, 1]))),
    "concatenate": lambda x: jnp.concatenate([x, x[:1]]),
    "stack": lambda x: jnp.stack([x, x[::-1]], axis=1),
    "list": lambda x: jnp.array([x[0], x[3]]),
    "where": lambda x: jnp.where(np.arange(6) % 2 == 0, x, x[::-1]),
    "at": lambda x: x.at[np.array([0, 2])].set(x[1]),
    "transpose": lambda x: x.reshape(2, 3).T,
    "broadcast": lambda x: jnp.broadcast_to(x[0], (2, 2)),
    "pad": lambda x: lax.pad(x, x[0], [(1, -2, 1)]),
    "roll": lambda x: jnp.roll(x, 1),
    "tile": lambda x: jnp.tile(x, 2),
    "repeat": lambda x: jnp.repeat(x, 2),
    "full": lambda x: jnp.full((2,), x[0]),
    "split": lambda x: jnp.split(x, 3)[1],
    "empty": lambda x: x[:0],
    "vmap": lambda x: corejax.vmap(lambda e: jnp.stack([e, x[0]]))(x),
    "scan": lambda x: lax.scan(lambda c, e: (e, c), x[0], x)[1],
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1][::-1]), (0, x))[1],
    "cond": lambda x: lax.cond(jnp.sum(jnp.ones(3)) > 2, lambda e: e[::-1], lambda e: e, x),
    "vmap of scan": lambda x: corejax.vmap(lambda e: lax.scan(lambda c, _: (c, c), e, None, length=2)[1])(x),
    "map": lambda x: lax.map(lambda e: e.reshape(1), x),
    "checkpoint": lambda x: corejax.checkpoint(lambda e: e[::-1])(x),
    "jit": lambda x: corejax.jit(lambda e: e[::-1])(x),
    "barrier": lambda x: lax.optimization_barrier(x),
    "stop_gradient": lambda x: lax.stop_gradient(x),
}


@pytest.mark.parametrize("move", MOVES)
def test_moves_as_its_positions_do(move):
    """What is done to an array of positions says which elements have to be where."""
    f = MOVES[move]
    positions = np.asarray(f(jnp.arange(6)))
    for dtype in (PAIR, GRID) if move in ("gather", "scan", "transpose", "at") else (PAIR,):
        x = array_of(dtype, 6)
        for found in (f(x), corejax.jit(f)(x)):
            assert found.aval.str_short() == f"{dtypes.short_name(dtype)}[{','.join(map(str, positions.shape))}]"
            np.testing.assert_array_equal(words(found), words(x)[positions])


def test_arrays_begin_as_zeros():
    for made in (jnp.zeros(3, PAIR), jnp.zeros_like(array_of(PAIR, 3)), corejax.jit(lambda: lax.full((3,), 0, PAIR))()):
        np.testing.assert_array_equal(words(made), np.zeros((3, 2), np.uint32))


def test_no_arithmetic():
    x = array_of(PAIR, 3)
    calls = [
        lambda x: x + 1,
        lambda x: x * x,
        lambda x: -x,
        lambda x: jnp.sin(x),
        lambda x: jnp.sum(x),
        lambda x: jnp.sort(x),
        lambda x: x < x,
        lambda x: x.astype("float32"),
        lambda x: lax.bitcast_convert_type(x, np.uint32),
        lambda x: jnp.ones(3, PAIR),
        lambda x: jnp.full_like(x, 1),
        lambda x: jnp.ones(3).astype(PAIR),
        lambda x: jnp.dot(x, x),
        lambda x: jnp.where(True, x, 0),
    ]
    for call in calls:
        for f in (call, corejax.jit(call), corejax.vmap(call) if call is calls[2] else call):
            with pytest.raises((TypeError, ValueError), match="<test> are not numbers; the test's own words returns"):
                f(x)
    for read in (np.asarray, lambda x: x.tolist(), lambda x: x[0].item(), lambda x: float(x[0]), lambda x: bool(x[0])):
        with pytest.raises(TypeError, match="are not numbers"):
            read(x)
    with pytest.raises(TypeError, match=r"argument x of <lambda> is pair<test>"):
        corejax.grad(lambda x: 2.0)(x)


def test_equality_is_of_whole_elements():
    x = array_of(PAIR, 3)
    y = x.at[1].set(x[0])
    for compare in (lambda x, y: (x == y, x != y), corejax.jit(lambda x, y: (x == y, x != y))):
        equal, unequal = compare(x, y)
        assert equal.tolist() == [True, False, True] and unequal.tolist() == [False, True, False]
        assert compare(x, x[2])[0].tolist() == [False, False, True]


def test_derivatives_beside_it():
    x = array_of(PAIR, 3)

    def f(weight, x):
        return lax.scan(lambda c, e: (c * weight, e), 1.0, x)[0]

    assert float(corejax.grad(f)(2.0, x)) == 12.0
    assert float(corejax.jit(corejax.grad(f))(2.0, x)) == 12.0
    primal, tangent = corejax.jvp(lambda w: f(w, x), (2.0,), (1.0,))
    assert (float(primal), float(tangent)) == (8.0, 12.0)


def test_program_prints_parses_and_keeps_its_types():
    x = array_of(PAIR, 3)
    program = corejax.make_jaxpr(lambda y: jnp.where(np.array([True, False, True]), x, y))(x)
    assert "pair<test>[3] = select_n" in str(program)
    check_jaxpr(program)
    again = parse_jaxpr(str(program), program.consts)
    assert str(again) == str(program)


def test_compiled_calls_tell_elements_from_numbers():
    """A dispatcher sees the same buffers for both: the dtype is part of the signature."""
    f = corejax.jit(lambda x: x[::-1])
    numbers = np.arange(6, dtype=np.uint32).reshape(3, 2)
    for _ in range(3):
        assert f(array_of(PAIR, 3)).aval.str_short() == "pair<test>[3]"
        assert f(corejax.device_put(numbers)).aval.str_short() == "u32[3,2]"
    on_device = corejax.device_put(array_of(PAIR, 3), corejax.devices()[0])
    assert on_device.devices() == {corejax.devices()[0]}
    np.testing.assert_array_equal(words(f(on_device)), words(array_of(PAIR, 3))[::-1])
    corejax.block_until_ready(f(on_device))


def test_constants_of_programs():
    x = array_of(PAIR, 3)
    f = corejax.jit(lambda i: (x[i], x[1]))
    for i in (0, 2):
        one, other = f(i)
        np.testing.assert_array_equal(words(one), words(x)[i])
        np.testing.assert_array_equal(words(other), words(x)[1])


def test_donated():
    f = corejax.jit(lambda x: x[::-1], donate_argnums=0)
    x = corejax.device_put(array_of(PAIR, 3), corejax.devices()[0])
    np.testing.assert_array_equal(words(f(x)), words(array_of(PAIR, 3))[::-1])
    with pytest.raises(RuntimeError, match="donated"):
        words(x)


def test_primitive_that_says_nothing_of_such_elements():
    plain_p = Primitive("test.plain_of_pairs", impl=lambda x: x, abstract_eval=lambda x: x)
    with pytest.raises(TypeError, match=r"test.plain_of_pairs.*not numbers"):
        plain_p.bind(array_of(PAIR, 3))
    moves_p = Primitive("test.moves_pairs", impl=np.flip, abstract_eval=lambda x: x, tags=("structural",))
    x = array_of(PAIR, 3)
    np.testing.assert_array_equal(words(moves_p.bind(x)), words(x)[::-1])
    with pytest.warns(DerivedRuleWarning, match="one element after the other|on the host"):
        np.testing.assert_array_equal(words(corejax.jit(moves_p.bind)(x)), words(x)[::-1])


def test_physical_rule_of_a_primitive():
    first_p = Primitive("test.first_of_pair", abstract_eval=lambda x: x.update(dtype=np.dtype(np.uint32)))
    impl_rules.register(first_p, lambda x: np.asarray(numbers_of(x)[..., 0]))
    physical_rules.register(first_p, lambda avals, numbers: numbers[..., 0])
    x = array_of(PAIR, 3)
    assert first_p.bind(x).tolist() == corejax.jit(first_p.bind)(x).tolist() == [0, 2, 4]
