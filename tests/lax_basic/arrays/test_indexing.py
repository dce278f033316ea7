"""`x[index]`, against NumPy for what is static and jax for what is data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import as_array
from tests.lax_basic.structural_checks import DTYPES, assert_same, data

s_ = np.s_
BASIC = [
    s_[0],
    s_[-1],
    s_[1, 2],
    s_[-1, -2, -3],
    s_[:],
    s_[1:3],
    s_[:-1],
    s_[::2],
    s_[::-1],
    s_[3:0:-2],
    s_[-2::-3],
    s_[5:2],
    s_[10:20],
    s_[-10:2],
    s_[...],
    s_[..., 0],
    s_[0, ...],
    s_[1, ..., ::-1],
    s_[None],
    s_[:, None],
    s_[..., None],
    s_[None, 0, None, 1:3, None],
    s_[1:3, ::-1, ::2],
    s_[np.int32(1)],
    s_[np.array(2), :, np.uint8(1)],
    s_[()],
    s_[0, 0, 0],
]


@pytest.mark.parametrize("index", BASIC, ids=repr)
def test_static(index: Any) -> None:
    x = data(4, 5, 3)
    f = lambda x: x[index]
    assert_same(f(as_array(x)), x[index])
    assert corejax.make_jaxpr(f)(x).out_avals[0].shape == np.shape(x[index])
    batch = data(2, 4, 5, 3, seed=1)
    assert_same(corejax.vmap(f)(batch), np.stack([b[index] for b in batch]))
    expected = np.zeros_like(x)
    expected[index] = 1.0
    assert_same(corejax.grad(lambda x: f(x).sum())(x), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(dtype: Any) -> None:
    x = data(4, 3, dtype=dtype)
    assert_same(as_array(x)[::-2, 1], x[::-2, 1])
    assert_same(corejax.vmap(lambda x, i: x[i])(x, np.array([2, 0, 1, -1])), x[np.arange(4), [2, 0, 1, -1]])
    assert_same(corejax.jit(lambda x, i: x[i])(x, np.array([1, 0])), x[[1, 0]])


def test_tuples_among_indices_are_lists() -> None:
    x = data(4, 5, 3)
    for index in (s_[:, (0, 2)], ((0, 1), (2, 3)), s_[((0, 1), (2, 3)), 1], s_[..., (True, False, True)], s_[1, ()]):
        assert_same(as_array(x)[index], x[index])
        assert_same(corejax.jit(lambda x: x[index])(x), x[index])  # noqa: B023
        expected = x.copy()
        expected[index] = 7
        assert_same(as_array(x).at[index].set(7), expected)
    assert_same(corejax.jit(lambda x, i: x[0, (i, 1)])(x, 2), x[0, [2, 1]])


DYNAMIC = [
    (lambda x, i: x[i], 1),
    (lambda x, i: x[i], -1),
    (lambda x, i: x[i], 100),
    (lambda x, i: x[i], -100),
    (lambda x, i: x[:, i], 2),
    (lambda x, i: x[i, 1:, None], 2),
    (lambda x, i: x[1, i], 2),
    (lambda x, i: x[..., i, ::-1], 3),
    (lambda x, i: x[i, i], 3),
]


@pytest.mark.parametrize(("f", "i"), DYNAMIC)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint32], ids=lambda t: t.__name__)
def test_scalars_that_are_data(f: Any, i: int, dtype: Any) -> None:
    """Clamped, and counted from the end when negative: traced, mapped, or just an array."""
    if i < 0 and np.dtype(dtype).kind == "u":
        pytest.skip("no negative values")
    x = data(4, 5, 3)
    at = lambda k, n: min(max(k + n if k < 0 else k, 0), n - 1)

    class Clamped:
        """NumPy's indexing of `x`, with clamped integers."""

        def __getitem__(self, index: Any) -> Any:
            index = index if isinstance(index, tuple) else (index,)
            places = [p - (len(index) - 3 - (None in index)) if Ellipsis in index[:p] else p for p in range(len(index))]
            return x[tuple(at(e, x.shape[p]) if isinstance(e, int) else e for e, p in zip(index, places, strict=True))]

    expected = f(Clamped(), i)
    k = dtype(i)
    assert_same(f(as_array(x), as_array(np.asarray(k))), expected)
    assert_same(corejax.jit(f)(x, k), expected)
    assert_same(corejax.vmap(f, (None, 0))(as_array(x), np.array([k, k])), np.stack([expected, expected]))


def test_gradient_of_a_dynamic_index() -> None:
    out = corejax.grad(lambda x, i: (x[i] ** 2).sum())(data(3, 2), np.int32(1))
    expected = np.zeros((3, 2), np.float32)
    expected[1] = 2 * data(3, 2)[1]
    assert_same(out, expected)


MASK = np.array([True, False, True, True])
ARRAYS = [
    s_[np.array([2, 0, 0])],
    s_[np.array([-1, 3])],
    s_[:, np.array([2, 0])],
    s_[..., np.array([2, 0])],
    s_[np.array([[0, 1], [2, 3]])],
    s_[1:, np.array([2, 0]), ::-1],
    s_[np.array([2, 0]), None],
    s_[np.array([0, 1]), np.array([2, 3])],
    s_[np.array([[0], [1]]), np.array([2, 3])],
    s_[0, np.array([2, 3])],
    s_[np.array([2, 3]), :, 0],
    s_[np.array([2, 3]), :, np.array([0, 1])],
    s_[:, np.array([], int)],
    s_[MASK],
    s_[:, :, np.array([True, False, True])],
    s_[np.arange(20).reshape(4, 5) % 3 == 0],
    s_[MASK, 0],
]


@pytest.mark.parametrize("index", ARRAYS, ids=repr)
def test_arrays(index: Any) -> None:
    """Concrete, traced with a concrete index, and traced with a traced one."""
    x = data(4, 5, 3)
    expected = x[index]
    assert_same(as_array(x)[index], expected)
    wrapped = tuple(
        as_array(e) if isinstance(e, np.ndarray) else e for e in (index if type(index) is tuple else (index,))
    )
    assert_same(as_array(x)[wrapped], expected)
    assert_same(corejax.jit(lambda x: x[index])(x), expected)
    grad = corejax.grad(lambda x: (x[index] ** 2).sum())(x)
    by_hand = np.zeros_like(x)
    np.add.at(by_hand, index, 2 * expected)
    assert_same(grad, by_hand)
    arrays = [e for e in wrapped if hasattr(e, "aval")]
    if all(e.dtype != bool for e in arrays):

        def f(x: Any, *traced: Any) -> Any:
            it = iter(traced)
            return x[tuple(next(it) if hasattr(e, "aval") else e for e in wrapped)]

        assert_same(corejax.jit(f)(x, *arrays), expected)
        assert_same(corejax.vmap(f)(x[None], *(np.asarray(a)[None] for a in arrays)), expected[None])


def test_arrays_out_of_bounds_are_clamped() -> None:
    x, index = data(4), np.array([9, -9, -1, 4])
    expected = x[[3, 0, 3, 3]]
    assert_same(as_array(x)[index], expected)
    assert_same(corejax.jit(lambda x, i: x[i])(x, index), expected)


def test_iteration_and_length() -> None:
    x = data(3, 2)
    assert_same(np.stack([np.asarray(row) for row in as_array(x)]), x)
    assert len(as_array(x)) == 3
    a, b, c = corejax.vmap(lambda x: tuple(x))(data(2, 3))
    assert_same(np.stack([a, b, c], 1), data(2, 3))


@pytest.mark.parametrize(
    ("index", "conversions"), [(1, 0), (np.int32(1), 0), (np.int8(1), 1), (np.int64(1), 0), (np.uint32(1), 1)]
)
def test_a_traced_index_is_converted_only_to_another_dtype(index: Any, conversions: int) -> None:
    jaxpr = corejax.make_jaxpr(lambda x, i: x[i])(data(3), index).jaxpr
    names = [eqn.primitive.name for eqn in jaxpr.eqns]
    assert names.count("convert_element_type") == conversions
    assert names[conversions:] == ["from_front", "dynamic_slice", "squeeze"]


def test_jaxpr_text() -> None:
    text = str(corejax.make_jaxpr(lambda x: x[1, ::-1])(data(2, 3)))
    assert text == (
        "{ lambda ; a:f32[2,3]. let\n"
        "    b:f32[1,3] = slice[\n"
        "      limit_indices=(2, 3)\n"
        "      start_indices=(1, 0)\n"
        "      strides=None\n"
        "    ] a\n"
        "    c:f32[1,3] = rev[dimensions=(1,)] b\n"
        "    d:f32[3] = squeeze[dimensions=(0,)] c\n"
        "  in (d,) }"
    )


CLAMPED = {
    "read": lambda x: x[5],
    "negative": lambda x: x[-7],
    "one_of_two": lambda x: x[:, 5],
    "with_an_array": lambda x: x[5, np.array([0, 2])],
    "get": lambda x: x.at[5].get(),
    "set": lambda x: x.at[5, 1].set(9.0),
    "add_at_a_negative": lambda x: x.at[-7].add(9.0),
    "before_an_array": lambda x: x.at[-7, np.array([0, 2])].set(9.0),
}


@pytest.mark.parametrize("name", CLAMPED)
def test_static_integers_out_of_bounds_with_jaxs_settings(name: str) -> None:
    jax = pytest.importorskip("jax")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = CLAMPED[name](jax.numpy.asarray(x))
    with corejax.config.override(x64_compat=True):
        assert_same(CLAMPED[name](as_array(x)), expected)
        assert_same(corejax.jit(CLAMPED[name])(x), expected)
        with pytest.raises(IndexError, match="index 0 out of bounds for axis 0 with size 0"):
            as_array(x[:0])[0]


ERRORS = [
    (lambda x: x[2], IndexError, "index 2 out of bounds for axis 0 with size 2"),
    (lambda x: x[0, -4], IndexError, "index -4 out of bounds for axis 1 with size 3"),
    (lambda x: x[0, 0, 0], IndexError, r"Too many indices: array is 2-dimensional, but 3 were indexed, in f32\[2,3\]"),
    (lambda x: x[..., 0, ...], IndexError, "only one Ellipsis"),
    (lambda x: x[[0, 1]], TypeError, r"not by lists: use x\[np.array\(\[0, 1\]\)\]"),
    (lambda x: x["a"], TypeError, "got 'a' of type str"),
    (lambda x: x[1.0], TypeError, "got 1.0 of type float"),
    (lambda x: x[x[0, 0]], TypeError, r"index of axis 0 is f32\[\]"),
    (lambda x: x[x[0]], TypeError, r"one of type f32\[3\]"),
    (lambda x: x[np.array([True, False, True])], IndexError, r"boolean index did not match shape .* got bool\[3\]"),
    (lambda x: x[:, np.array([0, 1]), np.array([0])], IndexError, "Too many indices"),
    (lambda x: x[np.array([0, 1]), np.array([0, 1, 2])], IndexError, "broadcast"),
    (lambda x: x[:0][as_array(np.int32(0))], IndexError, "size 0"),
]


@pytest.mark.parametrize(("f", "error", "text"), ERRORS)
def test_errors(f: Any, error: type[Exception], text: str) -> None:
    for transformed in (f, corejax.make_jaxpr(f), corejax.grad(f)):
        with pytest.raises(error, match=text):
            transformed(as_array(data(2, 3)))


def test_traced_masks_and_bounds_say_why_not() -> None:
    with pytest.raises(IndexError, match=r"boolean index arrays have to be concrete[\s\S]*argument x"):
        corejax.make_jaxpr(lambda x: x[x > 0])(data(3))
    with pytest.raises(IndexError, match=r"bounds of a slice must be static[\s\S]*argument n[\s\S]*dynamic_slice"):
        corejax.make_jaxpr(lambda x, n: x[:n])(data(3), 2)


def test_masks_of_known_values_under_grad() -> None:
    assert_same(corejax.grad(lambda x: x[x > 0].sum())(data(5)), (data(5) > 0).astype(np.float32))
