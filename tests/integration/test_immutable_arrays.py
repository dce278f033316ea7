"""Nobody can change an array: not its user, not the owner of what it was made of, not an impl rule."""

from __future__ import annotations

import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.extend import Array, Primitive, ShapedArray, eval_jaxpr_on_host

X = np.array([1.0, 2.0, 3.0], np.float32)
_numbers = itertools.count()


def primitive(impl, out=lambda x: x, **kwargs):
    return Primitive(f"test_immutable.p{next(_numbers)}", impl=impl, abstract_eval=out, **kwargs)


# -- what users get at -------------------------------------------------------------------------------------------

ARRAYS = {
    "made": lambda: jnp.array(X),
    "computed": lambda: jnp.array(X) * 2,
    "view": lambda: jnp.ones((2, 3)).T,
    "reversed": lambda: jnp.array(X)[::-1],
    "broadcast": lambda: jnp.zeros((2, 3)),
    "scalar": lambda: jnp.array(X)[0],
    "strided": lambda: jnp.ones((4, 6))[::2, 1::3],
    "jitted": lambda: cj.jit(lambda x: x * 2)(X),
    "bfloat16": lambda: jnp.ones((2, 3), ml_dtypes.bfloat16).T,
    "jitted bfloat16": lambda: cj.jit(lambda x: x * 2)(jnp.ones(3, ml_dtypes.bfloat16)),
    "int4": lambda: jnp.ones(3, ml_dtypes.int4),
    "complex": lambda: jnp.array(X) * 1j,
    "bool": lambda: jnp.array(X) > 1,
    "unpickled": lambda: pickle.loads(pickle.dumps(jnp.array(X))),
    "Array of a NumPy scalar": lambda: Array(np.float32(2)),
    "gradient": lambda: cj.grad(lambda x: jnp.sum(x * x))(jnp.array(X)),
}
LOOKS = {
    "asarray": np.asarray,
    "array without a copy": lambda x: np.array(x, copy=False),
    "__array__": lambda x: x.__array__(),
    "device_get": cj.device_get,
    "view of a view": lambda x: np.asarray(x)[...],
    "ravel": lambda x: np.asarray(x).reshape(-1),
    "dlpack": lambda x: np.from_dlpack(x) if x.dtype.kind != "V" else np.asarray(x),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ARRAYS)
def test_what_numpy_sees_of_an_array_cannot_be_written_to(name, look):
    x = ARRAYS[name]()
    before = np.array(x)
    seen = LOOKS[look](x)
    assert seen.dtype == before.dtype and seen.reshape(before.shape).tobytes() == before.tobytes()
    if not np.shares_memory(seen, np.asarray(x)):  # NumPy's reshape had to copy
        return
    parts = [seen]
    while isinstance(parts[-1].base, np.ndarray):
        parts.append(parts[-1].base)
    for part in parts:
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        seen[...] = 0
    assert np.array(x).tobytes() == before.tobytes()


def test_copies_are_the_users():
    x = jnp.array(X)
    for copy in (np.array(x), x.__array__(copy=True), np.asarray(x, np.float64), np.from_dlpack(x, copy=True)):
        if copy.flags.writeable:
            copy[...] = 7
    np.testing.assert_array_equal(x, X)
    with pytest.raises(BufferError):
        x.__dlpack__(copy=False)


def test_unpickled_arrays_own_their_memory():
    buffers = []
    text = pickle.dumps(jnp.array(X), protocol=5, buffer_callback=buffers.append)
    memory = [bytearray(b.raw()) for b in buffers]
    x = pickle.loads(text, buffers=memory)
    for block in memory:
        block[:] = bytes(len(block))
    np.testing.assert_array_equal(x, X)


# -- what arrays are made of -------------------------------------------------------------------------------------


class Interface:
    """Memory behind NumPy's protocol, which says that it is read-only."""

    def __init__(self, owner):
        self.__array_interface__ = {**owner.__array_interface__, "data": (owner.ctypes.data, True)}
        self.owner = owner


def flagged(owner):
    view = owner.view()
    view.flags.writeable = False
    return view


def locked_for_now(owner):
    owner.flags.writeable = False
    return owner


SOURCES = {
    "itself": lambda owner, path: owner,
    "flagged view": lambda owner, path: flagged(owner),
    "flagged": lambda owner, path: locked_for_now(owner),
    "memoryview": lambda owner, path: np.asarray(memoryview(owner).toreadonly()),
    "broadcast": lambda owner, path: np.broadcast_to(owner, (2, 3)),
    "array interface": lambda owner, path: np.asarray(Interface(owner)),
    "subclass": lambda owner, path: flagged(owner.view(np.matrix)),
}


@cj.custom_jvp
def identity(x):
    return x


identity.defjvp(lambda primals, tangents: (primals[0], tangents[0]))

USES = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "Array": Array,
    "lax.asarray": lax.asarray,
    "ellipsis": lambda a: jnp.asarray(a)[...],
    "astype": lambda a: jnp.asarray(a).astype(np.float32),
    "reshape": lambda a: jnp.reshape(a, -1),
    "transpose": jnp.transpose,
    "device_put": cj.device_put,
    "jit": cj.jit(lambda x: x),
    "vmap": cj.vmap(lambda x: x),
    "jvp": lambda a: cj.jvp(lambda x: x, (a,), (a,))[1],
    "custom_jvp": lambda a: identity(a),
    "constant": lambda a: cj.eval_jaxpr(*(lambda c: (c.jaxpr, c.consts, ()))(cj.make_jaxpr(lambda: jnp.asarray(a))()))[
        0
    ],
}


@pytest.mark.sampled
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("source", SOURCES)
def test_arrays_do_not_share_memory_that_its_owner_writes_to(source, use, tmp_path):
    owner = X.copy()
    if source == "subclass" and use == "Array":
        return  # not an array of the kinds that it takes
    x = USES[use](SOURCES[source](owner, tmp_path))
    before = np.array(x)
    owner.flags.writeable = True
    owner[:] = -1
    assert np.array(x).tobytes() == before.tobytes() and before.size >= 3


def test_a_memory_map(tmp_path):
    np.save(tmp_path / "a.npy", X)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    x, (_, pull), closed = (
        jnp.asarray(mapped),
        cj.vjp(lambda y: y * mapped, jnp.ones(3)),
        cj.make_jaxpr(lambda y: y * mapped)(X),
    )
    writer = np.load(tmp_path / "a.npy", mmap_mode="r+")
    writer[:] = -1
    writer.flush()
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(pull(jnp.ones(3))[0], X)
    np.testing.assert_array_equal(cj.eval_jaxpr(closed.jaxpr, closed.consts, [np.ones(3, np.float32)])[0], X)


def test_residuals_are_as_they_were():
    for make in (lambda a: a, flagged):
        owner = X.copy()
        kept = make(owner)
        _, pull = cj.vjp(lambda x, a=kept: x * a, jnp.ones(3))
        _, push = cj.linearize(lambda x, a=kept: x * a, jnp.ones(3))
        f = cj.custom_vjp(lambda x: x)
        f.defvjp(lambda x, a=kept: (x, a), lambda a, ct: (ct * a,))
        _, custom = cj.vjp(f, jnp.ones(3))
        owner[:] = -1
        for got in (pull(jnp.ones(3))[0], push(jnp.ones(3)), custom(jnp.ones(3))[0]):
            np.testing.assert_array_equal(got, X)


def test_a_running_program_has_a_copy_of_its_inputs():
    f = cj.jit(lambda x: jnp.exp(-x).sum() + x @ x)
    for _ in range(3):
        a = np.full(100_000, 2.0, np.float32)
        out = f(a)
        a[:] = 0
        np.testing.assert_allclose(out, 1e5 * (np.exp(-2.0) + 4), rtol=1e-4)


def test_copy_false_is_an_error_where_a_copy_is_needed():
    x = jnp.array(X)
    assert jnp.asarray(x, copy=False) is x and jnp.array(x, copy=False) is x
    assert jnp.asarray(x, np.float32, copy=False) is x
    assert cj.jit(lambda y: jnp.asarray(y, copy=False))(x).tolist() == X.tolist()
    for value, dtype in ((X, None), (1.0, None), ([1.0], None), (x, np.float16), (X[0], None)):
        for make in (jnp.array, jnp.asarray):
            with pytest.raises(ValueError, match="copy=False"):
                make(value, dtype, copy=False)


def test_isinstance_of_tracers():
    seen = []

    def f(x):
        seen.append((isinstance(x, Array), isinstance(x, cj.Array), type(x) is Array))
        return jnp.sum(x * 2)

    cj.jit(f)(X)
    cj.grad(f)(X)
    cj.vmap(f)(X[None])
    cj.make_jaxpr(f)(X)
    cj.linear_transpose(f, X)
    lax.scan(lambda c, x: (f(x), None), jnp.float32(0), X[:, None])
    assert seen == [(True, True, False)] * 6
    assert isinstance(jnp.array(X), Array) and not isinstance(X, Array) and not isinstance(1.0, Array)
    assert not isinstance(None, Array) and not isinstance(Array, Array)


# -- impl rules --------------------------------------------------------------------------------------------------


def in_place(x):
    return np.multiply(x, 2, out=x)


RUNS = {
    "eager": lambda p, x: p.bind(x),
    "eval_jaxpr": lambda p, x: cj.eval_jaxpr(*(lambda c: (c.jaxpr, c.consts, [x]))(cj.make_jaxpr(p.bind)(x)))[0],
    "jit": lambda p, x: cj.jit(p.bind)(x),
    "vmap": lambda p, x: cj.vmap(p.bind)(x),
    "scan": lambda p, x: lax.scan(lambda c, _: (p.bind(c), None), x, None, length=1)[0],
    "fori_loop": lambda p, x: lax.fori_loop(0, 1, lambda i, c: p.bind(c), x),
    "cond": lambda p, x: lax.cond(True, p.bind, p.bind, x),
    "literal": lambda p, x: lax.scan(lambda c, _: (c + p.bind(np.float32(3.0)), None), x, None, length=1)[0],
}


@pytest.mark.parametrize("how", RUNS)
@pytest.mark.filterwarnings("ignore::corejax.errors.DerivedRuleWarning")
def test_an_impl_that_works_in_place_is_refused_and_changes_nothing(how):
    p = primitive(in_place)
    x = jnp.array(X)
    with pytest.raises((ValueError, cj.errors.HostCallbackError), match="read-only"):
        RUNS[how](p, x)
    np.testing.assert_array_equal(x, X)
    with pytest.raises(ValueError, match="read-only"):
        p.bind(2.0)  # what was made of a Python number, too


KEPT = np.zeros(3, np.float32)
KEPT_PAIR = [np.zeros(3, np.float32), np.zeros(3, np.float32)]


def keeps(x):
    return np.multiply(x, 2, out=KEPT)


def keeps_a_view(x):
    np.multiply(x, 2, out=KEPT)
    return KEPT[:]


def keeps_through_a_buffer(x):
    np.multiply(x, 2, out=KEPT)
    return np.frombuffer(KEPT.data, np.float32)


def keeps_locked(x):
    KEPT.flags.writeable = True
    np.multiply(x, 2, out=KEPT)
    return locked_for_now(KEPT)


@pytest.mark.parametrize("impl", [keeps, keeps_a_view, keeps_through_a_buffer, keeps_locked])
def test_memory_that_an_author_keeps_is_not_an_arrays(impl):
    p = primitive(impl)
    first, second = p.bind(X), p.bind(X + 1)
    np.testing.assert_array_equal(first, 2 * X)
    np.testing.assert_array_equal(second, 2 * X + 2)
    closed = cj.make_jaxpr(lambda x: (p.bind(x), p.bind(x + 1)))(X)
    one, two = cj.eval_jaxpr(closed.jaxpr, closed.consts, [X])
    np.testing.assert_array_equal(one, 2 * X)
    np.testing.assert_array_equal(two, 2 * X + 2)
    KEPT.flags.writeable = True
    KEPT[:] = 0


def test_several_results_that_an_author_keeps():
    def impl(x):
        KEPT_PAIR[0][:], KEPT_PAIR[1][:] = x, 2 * x
        return KEPT_PAIR

    def twice_the_same(x):
        out = x * 2
        return out, out

    p = primitive(impl, lambda x: [x, x], multiple_results=True)
    first, second = p.bind(X), p.bind(X + 1)
    np.testing.assert_array_equal(first, [X, 2 * X])
    np.testing.assert_array_equal(second, [X + 1, 2 * X + 2])
    same = primitive(twice_the_same, lambda x: [x, x], multiple_results=True)
    np.testing.assert_array_equal(same.bind(X), [2 * X, 2 * X])


def test_results_that_are_fresh_or_the_operands_are_not_copied():
    made = []

    def fresh(x):
        out = x * 2
        made.append(out.__array_interface__["data"][0])
        return out

    def fresh_view(x):
        out = np.concatenate([x, x])
        made.append(out.__array_interface__["data"][0])
        return out[:3]

    for impl in (fresh, fresh_view):
        out = primitive(impl).bind(jnp.array(X))
        assert out._host.__array_interface__["data"][0] == made[-1] and not out._host.flags.writeable
    x = jnp.array(X)
    for impl in (lambda x: x, lambda x: x[::-1], lambda x: x.reshape(3, 1)[:, 0]):
        assert np.shares_memory(primitive(impl).bind(x)._host, x._host)


def test_programs_on_the_host_leave_their_arguments_writeable():
    closed = cj.make_jaxpr(lambda x: x * 2)(X)
    a = X.copy()
    (out,) = eval_jaxpr_on_host(closed, [a])
    a[:] = 0
    np.testing.assert_array_equal(out, 2 * X)


def test_a_taken_buffer_is_read_only():
    a = X.copy()
    x = Array(a, ShapedArray(a.shape, a.dtype))
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 5
    np.testing.assert_array_equal(x, X)
