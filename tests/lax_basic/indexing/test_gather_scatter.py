"""gather and scatters against jax: run and compiled, every mode, many dimension numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corejax
from corejax import lax
from corejax.extend import as_array, dtypes

jax = pytest.importorskip("jax")
jax_lax = jax.lax

# shape of the operand, of the indices, dimension numbers, slice sizes
CASES: list[tuple[Any, Any, Any, Any]] = [
    ((5,), (3, 1), ((), (0,), (0,)), (1,)),
    ((5, 4), (3, 1), ((1,), (0,), (0,)), (1, 4)),
    ((5, 4), (2, 3, 1), ((0,), (1,), (1,)), (5, 1)),
    ((5, 4), (3, 2), ((), (0, 1), (0, 1)), (1, 1)),
    ((5, 4), (3, 2), ((), (0, 1), (1, 0)), (1, 1)),
    ((5, 4, 3), (3, 2), ((0, 2), (1,), (2, 0)), (2, 1, 2)),
    ((5, 4, 3), (3, 2), ((1,), (0, 1), (0, 1)), (1, 1, 2)),
    ((3, 5, 4), (3, 2, 1), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
    ((5, 3, 2, 4), (2, 7, 3, 2), ((0,), (0,), (3, 0), (1, 2), (2, 0)), (1, 1, 1, 3)),
    ((5, 4), (0,), ((0, 1), (), ()), (2, 3)),
    ((5, 4), (2, 0), ((1, 2), (), ()), (2, 3)),
    ((5, 4), (0, 1), ((1,), (0,), (0,)), (1, 4)),
    ((0, 4), (0, 1), ((1,), (0,), (0,)), (1, 4)),
    ((5, 0), (3, 1), ((1,), (0,), (0,)), (1, 0)),
    ((5, 4), (3, 1), ((0, 2), (), (1,)), (5, 2)),
    ((5, 4), (3, 1), ((1, 2), (), (0,)), (1, 4)),
]
MODES = ["clip", "fill", "promise_in_bounds"]
SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]


def _operands(case: Any, dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    shape, places, _, _ = case
    x = (rng.normal(size=shape) * 3).astype(dtype)
    indices = rng.integers(-3, 8, size=places).astype(np.int32)
    updates = jax.eval_shape(lambda x, i: _gathers(jax_lax, case, "clip")(x, i), x, indices)
    return x, indices, (rng.normal(size=updates.shape) * 3).astype(dtype)


def _gathers(module: Any, case: Any, mode: str) -> Any:
    _, _, numbers, sizes = case
    numbers = module.GatherDimensionNumbers(*numbers)
    return lambda x, i: module.gather(x, i, numbers, sizes, mode=mode)


def _scatters(module: Any, name: str, case: Any, mode: str, **promises: bool) -> Any:
    numbers = module.ScatterDimensionNumbers(*case[2])
    return lambda x, i, updates: getattr(module, name)(x, i, updates, numbers, mode=mode, **promises)


def test_values() -> None:
    """Eagerly against jax, compiled against that: programs of all cases."""
    operands = [_operands(case) for case in CASES]

    def everything(module: Any, modes: Any, scatters: Any) -> Any:
        def f(operands: Any) -> Any:
            out = []
            for k, (case, (x, i, updates)) in enumerate(zip(CASES, operands, strict=True)):
                for mode in modes:
                    out.append(_gathers(module, case, mode)(x, i))
                    for name in scatters if k in (1, 5, 8) else scatters[:1] if mode == "fill" else []:
                        out.append(_scatters(module, name, case, mode)(x, i, updates))
            return out

        return f

    ours = everything(lax, MODES, SCATTERS)(operands)
    theirs = jax.jit(everything(jax_lax, MODES, SCATTERS))(operands)
    for k, (out, expected) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_array_equal(out, expected, err_msg=f"{k}")
    compiled = corejax.jit(everything(lax, MODES, SCATTERS))(operands)
    for k, (out, expected) in enumerate(zip(compiled, ours, strict=True)):
        np.testing.assert_array_equal(out, expected, err_msg=f"{k}")


INTEGERS = ["int2", "int4", "int8", "int16", "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64"]
SMALL = ["float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"]
SMALL += ["float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
DTYPES = ["bool", *INTEGERS, *SMALL, "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]


def test_every_dtype_runs_as_it_compiles() -> None:
    """Elements of every dtype, and what fills; one program."""
    rng = np.random.default_rng(1)
    case = CASES[1]
    i = np.array([[0], [2], [7]], np.int32)
    operands = []
    for name in DTYPES:
        values = np.abs(rng.normal(size=(5, 4)) * 2)
        operands.append((values if name[0] == "u" or "e8m0" in name else values - 1).astype(dtypes.dtype(name)))

    def everything(operands: Any, i: Any) -> Any:
        out = []
        for x in operands:
            updates = x[1:4]
            out.append(_gathers(lax, case, "fill")(x, i))
            out.append(_scatters(lax, "scatter", case, "clip")(x, i, updates))
            if not dtypes.is_bool(x.dtype):
                out.append(_scatters(lax, "scatter_add", case, "drop")(x, i, updates))
            if not dtypes.is_complex(x.dtype) and x.dtype.itemsize < 4:
                out.append(_scatters(lax, "scatter_max", case, "clip")(x, i, updates))
        return out

    operands = [as_array(x) for x in operands]
    wide = lambda v: v.astype(np.complex128) if v.dtype.kind == "c" else v.astype(np.float64)
    for a, b in zip(everything(operands, i), corejax.jit(everything)(operands, i), strict=True):
        np.testing.assert_array_equal(wide(np.asarray(a)), wide(np.asarray(b)), err_msg=str(a.dtype))


@pytest.mark.parametrize("name", ["int2", "int8", "int64", "uint4", "uint8", "uint32", "uint64"])
def test_every_dtype_of_indices(name: str) -> None:
    dtype = dtypes.dtype(name)
    info = dtypes.iinfo(dtype)
    wide = np.uint64 if name == "uint64" else np.int64
    i = np.array([[0], [1], [int(info.min)], [int(info.max)]], wide).astype(dtype)
    x, updates = np.arange(12.0, dtype=np.float32).reshape(4, 3), np.ones((4, 3), np.float32)
    case = ((4, 3), (4, 1), ((1,), (0,), (0,)), (1, 3))
    inside = [k for k in range(4) if 0 <= int(i[k, 0]) < 4]
    filled = np.full((4, 3), np.nan, np.float32)
    filled[inside] = x[[int(i[k, 0]) for k in inside]]
    added = x.copy()
    np.add.at(added, [int(i[k, 0]) for k in inside], 1.0)
    f = lambda x, i, updates: (
        _gathers(lax, case, "fill")(x, i),
        _gathers(lax, case, "clip")(x, i),
        _scatters(lax, "scatter_add", case, "drop")(x, i, updates),
    )
    for out in (f(x, i, updates), corejax.jit(f)(x, i, updates)):
        np.testing.assert_array_equal(out[0], filled)
        np.testing.assert_array_equal(out[1], x[[min(max(int(k), 0), 3) for k in i[:, 0]]])
        np.testing.assert_array_equal(out[2], added)


@st.composite
def _gather_case(draw: Any) -> tuple[Any, Any, Any, Any]:
    """An operand's shape, indices, dimension numbers and sizes that fit each other."""
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    index_map = tuple(draw(st.permutations(range(rank)))[: draw(st.integers(0, rank))])
    sizes = tuple(draw(st.integers(1, n)) for n in shape)
    collapsed = tuple(d for d in range(rank) if draw(st.booleans()))
    sizes = tuple(1 if d in collapsed else n for d, n in enumerate(sizes))
    places = tuple(draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 2))))
    count = rank - len(collapsed)
    offsets = tuple(sorted(draw(st.permutations(range(len(places) + count)))[:count]))
    flat = [draw(st.integers(-2, 5)) for _ in range(int(np.prod((*places, len(index_map)))))]
    indices = np.array(flat, np.int32).reshape((*places, len(index_map)))
    return shape, indices, (offsets, collapsed, index_map), sizes


@settings(max_examples=150, deadline=None, derandomize=True)
@given(_gather_case(), st.sampled_from(MODES))
def test_windows_by_hand(case: Any, mode: str) -> None:
    """Run, against loops over places; transposed, gathers and scatters belong together."""
    shape, indices, numbers, sizes = case
    x = np.arange(1.0, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    out = np.asarray(lax.gather(x, indices, lax.GatherDimensionNumbers(*numbers), sizes, mode=mode, fill_value=0))
    scattered = np.zeros_like(x)
    updates = np.random.default_rng(0).integers(-3, 4, out.shape).astype(np.float32)
    offsets, collapsed, index_map = numbers
    outer = [d for d in range(out.ndim) if d not in offsets]
    for place in np.ndindex(indices.shape[:-1]):
        start = [0] * x.ndim
        for k, d in enumerate(index_map):
            start[d] = int(indices[(*place, k)])
        limits = [n - s for n, s in zip(shape, sizes, strict=True)]
        inside = all(0 <= s <= limit for s, limit in zip(start, limits, strict=True))
        clamped = [min(max(s, 0), limit) for s, limit in zip(start, limits, strict=True)]
        window = tuple(slice(s, s + n) for s, n in zip(clamped, sizes, strict=True))
        there: list[Any] = [slice(None)] * out.ndim
        for d, i in zip(outer, place, strict=True):
            there[d] = i
        expected = x[window].squeeze(collapsed) if inside or mode != "fill" else np.zeros(())
        np.testing.assert_array_equal(out[tuple(there)], np.broadcast_to(expected, out[tuple(there)].shape))
        if inside or mode == "clip":
            scattered[window] += np.expand_dims(updates[tuple(there)], collapsed)
    added = lax.scatter_add(np.zeros_like(x), indices, updates, lax.ScatterDimensionNumbers(*numbers), mode=mode)
    np.testing.assert_array_equal(added, scattered)


ERRORS = [
    (((1,), (0,), (0,)), (1, 4), {"i": np.zeros((3, 2), np.int32)}, "a component for each entry of start_index_map"),
    (((1,), (0,), (0,)), (1, 5), {}, r"at index 1 .* slice_sizes \(1, 5\) do not fit inside operand f32\[5,4\]"),
    (((1,), (0,), (2,)), (1, 4), {}, r"Invalid start_index_map set in gather op; valid range is \[0, 2\).*got 2"),
    (((1,), (0, 0), (0,)), (1, 4), {}, "collapsed_slice_dims in gather op must not repeat"),
    (((2,), (0,), (0,)), (1, 4), {}, r"Invalid offset_dims set .* \[0, 2\), the axes of the result"),
    (((1,), (0,), (0,)), (2, 4), {}, "must be 1 on collapsed_slice_dims"),
    (((1,), (), (0,)), (1, 4), {}, "each axis of operand"),
    (((1,), (0,), (0,), (0,), (0,)), (1, 4), {}, "is among both"),
    (((), (0,), (0,), (1,), (0,)), (1, 1), {}, "batching axis 1 of operand"),
    (((1,), (0,), (0,)), (1, 4), {"i": np.zeros((3, 1), np.float32)}, r"indices must be integers, got f32\[3,1\]"),
    (((1,), (0,), (0,)), (1, 4), {"i": np.int32(0)}, "got a scalar"),
]


@pytest.mark.parametrize(("numbers", "sizes", "given", "text"), ERRORS)
def test_errors(numbers: Any, sizes: Any, given: Any, text: str) -> None:
    x, i = np.zeros((5, 4), np.float32), given.get("i", np.zeros((3, 1), np.int32))
    with pytest.raises(TypeError, match=text):
        lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), sizes)


def test_errors_of_scatters_and_modes() -> None:
    x, i, updates = _operands(CASES[1])
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    with pytest.raises(TypeError, match=r"scatter: operand f32\[5,4\] and updates f64\[3,4\] differ in dtype"):
        lax.scatter(x, i, updates.astype(np.float64), numbers)
    with pytest.raises(TypeError, match=r"scatter_add: updates .* have sizes"):
        lax.scatter_add(x, i, updates[:2], numbers)
    with pytest.raises(TypeError, match=r"scatter_add: windows of updates .* on axis 1"):
        lax.scatter_add(x, i, np.zeros((3, 5), np.float32), numbers)
    with pytest.raises(TypeError, match="dimension_numbers must be a ScatterDimensionNumbers"):
        lax.scatter(x, i, updates, ((1,), (0,), (0,)))
    with pytest.raises(ValueError, match="unknown mode 'wrap'"):
        lax.scatter(x, i, updates, numbers, mode="wrap")
    with pytest.raises(ValueError, match="gathers and scatters do not support the mode 'one_hot'"):
        lax.gather(x, i, lax.GatherDimensionNumbers(*numbers), (1, 4), mode="one_hot")
    with pytest.raises(NotImplementedError, match="promise that none do with unique_indices=True"):
        corejax.linear_transpose(lambda u: lax.scatter_mul(x, i, u, numbers), updates)(x)


def test_index_take() -> None:
    x, i, j = np.arange(60.0).reshape(3, 4, 5), np.array([0, -1, 7]), np.array([1, 2, -9])
    np.testing.assert_array_equal(lax.index_take(x, (i, j), (0, 2)), jax_lax.index_take(x, (i, j), (0, 2)))
    with pytest.raises(TypeError, match="a vector of integers of one type for each of the axes"):
        lax.index_take(x, (i,), (0, 2))


@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize("width", [None, 2])
def test_derivatives_of_products_of_several_updates(mode: str, width: int | None) -> None:
    """Of all orders, where updates are 0 as well: what one update after the other has."""
    places = np.array([1, 7, 1, -1, 1, 3, 7])
    shape = (len(places),) if width is None else (len(places), width)
    updates = as_array(np.resize([2.0, 3.0, 0.0, 4.0, 5.0, 0.0, 6.0], shape).astype(np.float32))
    x = as_array(np.arange(1.0, 1 + 4 * (width or 1), dtype=np.float32).reshape(4, *shape[1:]))

    def at_once(x: Any, u: Any) -> Any:
        return x.at[places].multiply(u, mode=mode)

    def in_turn(x: Any, u: Any) -> Any:
        for i, place in enumerate(places):
            x = x.at[place].multiply(u[i], mode=mode)
        return x

    for derivative in (corejax.jacfwd, corejax.jacrev, corejax.hessian):
        got, wanted = (derivative(f, (0, 1))(x, updates) for f in (at_once, in_turn))
        for a, b in zip(corejax.tree.leaves(got), corejax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_nothing_is_written_to_an_axis_without_elements(mode: str) -> None:
    x, places = np.zeros((2, 0), np.float32), np.array([0, -1, 3])

    def every(x: Any) -> list[Any]:
        at = x.at[:, places]
        updated = [f(1.0, mode=mode) for f in (at.set, at.add, at.mul, at.min)]
        return [*updated, at.apply(lax.sin, mode=mode)]

    for out in (*every(as_array(x)), *corejax.jit(every)(as_array(x))):
        assert (out.shape, out.dtype) == ((2, 0), np.float32)


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("jitted", [False, True])
def test_derivatives_where_there_is_no_place(name: str, jitted: bool) -> None:
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    operand, updates = np.ones((0, 4), np.float32), np.ones((3, 4), np.float32)
    indices = np.zeros((3, 1), np.int32)
    scatter = lambda x, u: getattr(lax, name)(x, indices, u, numbers, mode="clip")
    total = lambda x, u: scatter(x, u).sum() + (u * u).sum()
    gradient = corejax.grad(total, argnums=(0, 1))
    of_operand, of_updates = (corejax.jit(gradient) if jitted else gradient)(operand, updates)
    assert of_operand.shape == (0, 4)
    np.testing.assert_array_equal(of_updates, 2 * updates)
    assert corejax.jvp(scatter, (operand, updates), (operand, updates))[1].shape == (0, 4)
