"""Products: values as NumPy's, dtypes as jax's; and the equations that they come down to."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.numpy_api.oracle import check, check_compiled, check_types
from tests.numpy_api.test_elementwise import sample


def array(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return sample(dtype, shape, seed)


SHAPES = {
    "dot": [
        ((), ()),
        ((), (2, 3)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (6, 3, 4)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
    ],
    "matmul": [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((2, 3), (5, 3, 4)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 2, 3), (1, 3, 4)),
        ((1, 2, 3), (5, 3, 4)),
        ((6, 1, 2, 3), (5, 3, 4)),
        ((6, 1, 2, 3), (1, 5, 3, 4)),
        ((6, 5, 2, 1), (6, 5, 1, 4)),
        ((1, 1), (1, 1)),
        ((0, 2, 3), (0, 3, 4)),
    ],
    "inner": [((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3)), ((5, 2, 3), (4, 3))],
    "outer": [((2,), (3,)), ((2, 2), (3,)), ((), (3,)), ((0,), (3,))],
    "vdot": [((3,), (3,)), ((2, 3), (3, 2)), ((), ())],
    "vecdot": [((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3))],
    "matvec": [((2, 3), (3,)), ((5, 2, 3), (3,)), ((2, 3), (4, 3)), ((5, 1, 2, 3), (4, 3)), ((0, 3), (3,))],
    "vecmat": [((3,), (3, 2)), ((4, 3), (4, 3, 2)), ((3,), (4, 3, 2)), ((0,), (0, 2))],
    "kron": [((2, 3), (4, 2)), ((3,), (4, 2)), ((2, 1, 2), (3,)), ((), (2,)), ((0, 2), (3,))],
    "cross": [((3,), (3,)), ((2, 3), (3,)), ((4, 1, 3), (2, 3)), ((0, 3), (3,))],
}
ROWS = [(name, *shapes) for name, rows in SHAPES.items() for shapes in rows]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_shapes(row: tuple[str, Any, Any]) -> None:
    name, a, b = row
    check(lambda xp, x, y: getattr(xp, name)(x, y), array(*a), array(*b, seed=1))


PAIRS = [("int8", "int8"), ("int8", "uint8"), ("bool", "bool"), ("float16", "int32"), ("complex64", "float32")]


@pytest.mark.parametrize("dtypes", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", ["dot", "matmul", "inner", "outer", "vdot", "tensordot"])
def test_dtypes(name: str, dtypes: tuple[str, str]) -> None:
    x, y = array(3, 3, dtype=dtypes[0]), array(3, 3, dtype=dtypes[1], seed=1)
    if name == "tensordot" and "bool" in dtypes:
        pytest.skip("NumPy takes dot of booleans for a sum")
    check_types(lambda xp, x, y: getattr(xp, name)(x, y), x, y)
    wide = np.result_type(*dtypes)
    got = np.asarray(getattr(jnp, name)(x, y))
    np.testing.assert_allclose(got, getattr(np, name)(x.astype(wide), y.astype(wide)), rtol=2e-3)


def test_conjugation() -> None:
    x, y = array(4, dtype="complex64"), array(4, dtype="complex64", seed=1)
    for name in ("vdot", "vecdot", "inner"):
        check(lambda xp, x, y, name=name: getattr(xp, name)(x, y), x, y)


def test_preferred_element_type() -> None:
    for name in ("dot", "matmul", "inner", "vdot"):
        out = getattr(jnp, name)(jnp.full(200, 100, "int8"), jnp.full(200, 100, "int8"), preferred_element_type="int32")
        assert out.dtype == np.int32 and int(out) == 2_000_000
    assert jnp.dot(2, jnp.ones(3), preferred_element_type="float16").dtype == np.float16


@pytest.mark.parametrize("axes", [0, 1, 2, ((0,), (0,)), ((0, 1), (0, 1)), ((1, 0), (-1, -2)), (0, 0)], ids=str)
def test_tensordot(axes: Any) -> None:
    check(lambda xp, x, y: xp.tensordot(x, y, axes), array(3, 3), array(3, 3, seed=1))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ji,jk->ki", (3, 2), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ij", (2, 3)),
    ("ba", (2, 3)),
    ("ij->", (2, 3)),
    ("ij->j", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->ij", (3, 3, 2)),
    ("iiij->j", (2, 2, 2, 3)),
    ("ii,ij->j", (3, 3), (3, 4)),
    ("i,i->i", (3,), (3,)),
    ("i,i->", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->ji", (2,), (3,)),
    ("i,j->", (2,), (3,)),
    (",ij->ij", (), (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bij,bjk->kbi", (5, 2, 3), (5, 3, 4)),
    ("...ij,...jk->...ik", (5, 2, 3), (5, 3, 4)),
    ("...ij,jk->...ik", (6, 5, 2, 3), (3, 4)),
    ("...i->...", (2, 3)),
    ("...,...->...", (2, 3), (3,)),
    ("i...->...", (2, 3)),
    ("bij,bjk->bik", (1, 2, 3), (5, 3, 4)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,ij,ij->i", (2, 3), (2, 3), (2, 3)),
    ("abc,cd,be,a->de", (2, 3, 4), (4, 5), (3, 6), (2,)),
    ("i,i,i,i->i", (3,), (3,), (3,), (3,)),
    ("ij,j->i", (0, 3), (3,)),
    ("ij,j->i", (3, 0), (0,)),
]


@pytest.mark.parametrize("row", EINSUMS, ids=lambda row: f"{row[0]} {row[1:]}")
def test_einsum(row: Any) -> None:
    subscripts, *shapes = row
    operands = [array(*shape, seed=i) for i, shape in enumerate(shapes)]
    check(lambda xp, *xs: xp.einsum(subscripts, *xs), *operands)


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal"])
def test_contraction_orders(optimize: Any) -> None:
    operands = [array(2, 3), array(3, 4, seed=1), array(4, 2, seed=2)]
    check(lambda xp, *xs: xp.einsum("ij,jk,ki->", *xs, optimize=optimize), *operands)


def test_einsum_with_lists_of_labels() -> None:
    check(lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2], [0, 2]), array(2, 3), array(3, 4, seed=1))


def test_einsum_dtypes() -> None:
    check_types(lambda xp, x, y: xp.einsum("ij,ij->", x, y), array(2, 3), array(2, 3, dtype="int8"))
    check_types(lambda xp, x: xp.einsum("ij->", x), array(2, 3, dtype="int8"))
    check_types(
        lambda xp, x: xp.einsum("ij,jk->ik", x, x, preferred_element_type="float32"), array(3, 3, dtype="float16")
    )


def test_einsum_is_few_equations() -> None:
    def names(subscripts: str, *shapes: tuple[int, ...]) -> list[str]:
        closed = corejax.make_jaxpr(lambda *xs: jnp.einsum(subscripts, *xs))(*map(jnp.ones, shapes))
        return [eqn.primitive.name for eqn in closed.jaxpr.eqns]

    assert names("bij,bjk->bik", (5, 2, 3), (5, 3, 4)) == ["dot_general"]
    assert names("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)) == ["dot_general", "dot_general"]
    assert names("ij->ji", (2, 3)) == ["transpose"]
    assert names("ij->", (2, 3)) == ["reduce_sum"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3))), TypeError),
        (lambda: jnp.matmul(jnp.ones((2, 3)), jnp.ones((2, 3))), TypeError),
        (lambda: jnp.matmul(1, jnp.ones(3)), ValueError),
        (lambda: jnp.matmul(jnp.ones((2, 3, 4)), jnp.ones((5, 4, 1))), ValueError),
        (lambda: jnp.inner(jnp.ones(2), jnp.ones(3)), TypeError),
        (lambda: jnp.vdot(jnp.ones(2), jnp.ones(3)), TypeError),
        (lambda: jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), 1), TypeError),
        (lambda: jnp.tensordot(jnp.ones((2, 3)), jnp.ones(3), 2), TypeError),
        (lambda: jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((2, 3))), ValueError),
        (lambda: jnp.einsum("ij->i", jnp.ones(3)), ValueError),
        (lambda: jnp.einsum("ii->i", jnp.ones((2, 3))), ValueError),
        (lambda: jnp.einsum("ij->ik", jnp.ones((2, 3))), ValueError),
        (lambda: jnp.einsum("ij,jk->ik"), ValueError),
        (lambda: jnp.einsum("i->i", jnp.ones(3), out=jnp.ones(3)), NotImplementedError),
        (lambda: jnp.outer(jnp.ones(3), jnp.ones(3), jnp.ones((3, 3))), NotImplementedError),
        (lambda: jnp.matvec(jnp.ones(3), jnp.ones(3)), ValueError),
        (lambda: jnp.vecmat(jnp.ones(3), jnp.ones((2, 3))), TypeError),
        (lambda: jnp.cross(jnp.ones(4), jnp.ones(3)), ValueError),
        (lambda: jnp.cross(jnp.ones((2, 3)), jnp.ones(3), axisa=2), ValueError),
    ],
)
def test_what_does_not_fit(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_messages_name_both_shapes() -> None:
    x, y = jnp.ones((2, 3, 3)), jnp.ones((5, 3, 3))
    for name in ("vecdot", "matvec", "vecmat"):
        with pytest.raises(ValueError, match=rf"{name}: the leading axes of f32\[2,3,3\] and f32\[5,3,3\] do not"):
            getattr(jnp, name)(x, y)
    for product in (jnp.matmul, operator.matmul):
        with pytest.raises(ValueError, match=r"matmul: the leading axes of f32\[2,3,4\] and f32\[5,4,1\]"):
            product(jnp.ones((2, 3, 4)), jnp.ones((5, 4, 1)))
    with pytest.raises(TypeError, match=r"dot: axis 1 of f32\[2,3\] and axis 0 of f32\[2,4\].*got 3 and 2"):
        jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 4)))
    with pytest.raises(ValueError, match=r"label 'j' has size 3, and 2 in operand 1, which has shape \(2, 4\)"):
        jnp.einsum("ij,jk", jnp.ones((2, 3)), jnp.ones((2, 4)))


CROSSES = [
    ((3, 4), (4, 3), {"axisa": 0, "axisc": 1}),
    ((3, 2), (3, 2), {"axis": 0}),
    ((2, 2), (2, 3), {}),
    ((2, 2), (4, 1, 2), {}),
]


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize(("a", "b", "options"), CROSSES)
def test_cross(a: Any, b: Any, options: Any) -> None:
    check(lambda xp, x, y: xp.cross(x, y, **options), array(*a), array(*b, seed=1))


def test_cross_is_put_together_once() -> None:
    """Operands put together anew, rolled say, are computed for each part: chained, twice as often each time."""
    program = corejax.make_jaxpr(jnp.cross)(jnp.ones((4, 3)), jnp.ones((4, 3))).jaxpr
    assert sum(eqn.primitive.name == "concatenate" for eqn in program.eqns) == 1
    assert len(program.eqns) <= 20


def test_vectors_are_conjugated() -> None:
    x, y = array(4, 3, dtype="complex64"), array(3, 2, dtype="complex64", seed=1)
    check(lambda xp, x, y: xp.vecmat(x, y), x, y)
    check(lambda xp, x, y: xp.matvec(y.T, x), x, y)


def test_paths() -> None:
    operands = [jnp.ones(shape) for shape in ((2, 3), (3, 4), (4, 2))]
    path, report = jnp.einsum_path("ij,jk,kl->il", *operands, optimize="greedy")
    assert sorted(path[-1]) == [0, 1] and "ij,jk,kl->il" in str(report)
    for given in (path, ["einsum_path", *path], tuple(path)):
        np.testing.assert_allclose(jnp.einsum("ij,jk,kl->il", *operands, optimize=given), np.full((2, 2), 12))
    assert jnp.einsum_path(operands[0], [0, 1], operands[1], [1, 2], [0, 2])[0] == [(0, 1)]


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_trace(offset: int) -> None:
    check(lambda xp, x: xp.trace(x, offset), array(3, 4))
    check(lambda xp, x: xp.trace(x, offset, axis1=2, axis2=0), array(3, 2, 4, dtype="int8"))


@pytest.mark.parametrize("row", [r for r in EINSUMS if len(r) == 3][::3], ids=lambda row: row[0])
def test_compiled_and_differentiated(row: Any) -> None:
    subscripts, a, b = row
    x, y = array(*a), array(*b, seed=1)
    check_compiled(lambda xp, x, y: xp.einsum(subscripts, x, y), x, y)
    ct = np.ones_like(np.einsum(subscripts, x, y))
    gradient = corejax.grad(lambda x: jnp.vdot(jnp.einsum(subscripts, x, y), ct))(x)
    direction = array(*a, seed=2)
    np.testing.assert_allclose(
        np.vdot(np.asarray(gradient), direction), np.vdot(np.einsum(subscripts, direction, y), ct), rtol=1e-4, atol=1e-4
    )
