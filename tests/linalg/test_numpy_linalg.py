"""`corejax.numpy.linalg` beside jax's: names, signatures, tuples; values eagerly, remembered, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from tests.linalg.matrices import check, close, definite, random
from tests.recorded import Recorded
from tests.signatures import difference, public

theirs = pytest.importorskip("jax.numpy")

A, STACK, TALL, WIDE = random(4, 4), random(2, 4, 4), random(5, 3), random(3, 5)
C, P, V = random(4, 4, dtype="complex128"), definite(4, 4), random(4)
FLAT = np.ones((2, 3, 3))
ONES = np.ones((3, 4), "float32")

ROWS: dict[str, list[tuple[Any, ...]]] = {
    "cholesky": [(P,), (P, {"upper": True})],
    "cond": [(A,), (A, {"p": 1}), (A, {"p": -2}), (A, {"p": "fro"}), (TALL,)],
    "cross": [(random(2, 3), random(3))],
    "det": [(A,), (STACK,), (random(3, 3),), (random(2, 2, 2),), (random(1, 1),), (C,)],
    "diagonal": [(STACK, {"offset": 1})],
    "eig": [(A,)],
    "eigh": [(P,), (C, {"UPLO": "U"})],
    "eigvals": [(C,)],
    "eigvalsh": [(C,)],
    "inv": [(STACK,)],
    "lstsq": [(TALL, random(5)), (WIDE, random(3, 2)), (TALL, random(5), 0.5), (np.zeros((0, 3)), np.zeros(0))],
    "matmul": [(A, STACK)],
    "matrix_norm": [(STACK,)],
    "matrix_power": [(A, 3), (A, -2), (STACK, 0)],
    "matrix_rank": [(STACK,), (ONES,), (V,), (A, {"tol": 1.0}), (P, {"hermitian": True})],
    "matrix_transpose": [(STACK,)],
    "outer": [(V, random(3))],
    "pinv": [(TALL,), (C,), (P, {"hermitian": True}), (FLAT,), (STACK, np.array([0.1, 0.2])), (np.zeros((0, 2)),)],
    "qr": [(TALL,), (TALL, {"mode": "complete"}), (WIDE, {"mode": "r"}), (TALL, {"mode": "raw"})],
    "slogdet": [(A,), (STACK,), (C,), (A, {"method": "qr"}), (np.zeros((3, 3)),), (np.zeros((3, 3), complex),)],
    "solve": [(A, V), (STACK, A), (A, STACK), (STACK, V), (C, A), (random(2, 1, 4, 4), random(3, 4, 2))],
    "svd": [(TALL,), (WIDE, {"full_matrices": False}), (TALL, {"compute_uv": False})],
    "svdvals": [(STACK,)],
    "tensordot": [(A, A, {"axes": 1})],
    "tensorinv": [(random(2, 3, 6),)],
    "tensorsolve": [(random(2, 3, 6), random(2, 3)), (random(2, 6, 3), random(2, 3), {"axes": (1,)})],
    "trace": [(STACK, {"offset": -1})],
    "vecdot": [(C, C, {"axis": 0})],
    "norm": [
        *((STACK, {"ord": o, "axis": (0, 2)}) for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        *((STACK, {"ord": o, "axis": 1}) for o in (0, 1, 2, 3, -1.5, np.inf, -np.inf)),
        (STACK,),
        (A, {"ord": -np.inf, "keepdims": True}),
        (np.zeros((0, 3)), {"ord": np.inf}),
    ],
    "vector_norm": [(C, {"ord": 3, "axis": (0, 1), "keepdims": True})],
}
COMPILED = ("det", "eigh", "lstsq", "pinv", "solve", "slogdet")  # one program each: the others are made of the same


RECORDED = Recorded("numpy_linalg")


def test_names_and_signatures_are_jaxs() -> None:
    names = public(theirs.linalg)
    assert set(names) == set(jnp.linalg.__all__)
    found = {n: difference(getattr(jnp.linalg, n), getattr(theirs.linalg, n)) for n in names}
    assert not {name: text for name, text in found.items() if text}


def split(row: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (row[:-1], row[-1]) if isinstance(row[-1], dict) else (row, {})


@pytest.mark.parametrize("name", ROWS)
def test_results_are_jaxs(name: str) -> None:
    for i, row in enumerate(ROWS[name]):
        args, kwargs = split(row)
        check(
            getattr(jnp.linalg, name),
            getattr(theirs.linalg, name),
            *args,
            compiled=name in COMPILED and i == 0,
            recorded=(RECORDED, f"{name} {i}"),
            **kwargs,
        )


def test_results_have_numpys_names() -> None:
    assert jnp.linalg.eigh(P)._fields == ("eigenvalues", "eigenvectors")
    assert jnp.linalg.svd(A)._fields == ("U", "S", "Vh")
    assert jnp.linalg.qr(A)._fields == ("Q", "R")
    assert corejax.jit(jnp.linalg.slogdet)(A)._fields == ("sign", "logabsdet")


def test_singular_values_of_hermitian_matrices() -> None:
    hermitian = C + C.conj().T
    u, s, vh = jnp.linalg.svd(hermitian, hermitian=True)
    close((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), hermitian)
    close(s, np.linalg.svd(hermitian, compute_uv=False))
    for singular in (np.diag([2.0, 0.0, -1.0]), np.zeros((2, 2)), 1j * np.zeros((2, 2)), np.ones((3, 3)) + 0j):
        u, s, vh = (np.asarray(x) for x in jnp.linalg.svd(singular, hermitian=True))
        close(vh @ vh.conj().T, np.eye(len(singular), dtype=singular.dtype))
        close((u * s) @ vh, singular)


def test_determinants_of_singular_matrices_that_overflow() -> None:
    for vanishing in (0, 7, 29):
        x = np.diag(np.where(np.arange(30) == vanishing, 0, 1e3)).astype(np.float32)
        for run in (jnp.linalg.det, corejax.jit(jnp.linalg.det), lambda x: corejax.jvp(jnp.linalg.det, (x,), (x,))[0]):
            assert run(x) == 0
    x[0, 0] = np.nan
    assert np.isnan(jnp.linalg.det(x)) and np.isnan(corejax.jit(jnp.linalg.det)(x))


def test_multi_dot() -> None:
    for arrays in ([A, A], [V, A, P, V], [random(2, 4), A, random(4, 3)]):
        close(jnp.linalg.multi_dot(arrays), np.linalg.multi_dot(arrays))


def test_integers_become_floating() -> None:
    for dtype, wanted in (("int32", "float32"), ("int64", "float64"), ("bool", "float32")):
        x = np.eye(3).astype(dtype)
        assert jnp.linalg.inv(x).dtype == jnp.linalg.norm(x).dtype == wanted
    assert jnp.linalg.matrix_power(np.eye(3, dtype="int32"), 2).dtype == "int32"


@pytest.mark.parametrize("numpy_resid", [True, False])
def test_residuals(numpy_resid: bool) -> None:
    for a, b in ((TALL, random(5, 2)), (WIDE, random(3)), (np.ones((4, 2)), V)):
        got = jnp.linalg.lstsq(a, b, numpy_resid=numpy_resid)
        wanted = np.linalg.lstsq(a, b)
        close(got[0], wanted[0])
        assert int(got[2]) == wanted[2]
        if numpy_resid:
            np.testing.assert_allclose(np.asarray(got[1]), wanted[1], atol=1e-12)


def test_zeros_of_polynomials() -> None:
    for p in ([1.0, -3, 2], [0, 0, 2.0, -2, 0, 0], [1, 2, 3, 4], [5.0], [0.0], []):
        got = np.sort_complex(np.asarray(jnp.roots(np.array(p, "float64"))))
        np.testing.assert_allclose(got, np.sort_complex(np.roots(p).astype(complex)), atol=1e-9)
    compiled = corejax.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.array([1.0, -3, 2]))
    np.testing.assert_allclose(np.sort(np.asarray(compiled)), [1, 2], atol=1e-12)
    with pytest.raises(TypeError) as caught:
        corejax.jit(jnp.roots)(np.array([1.0, -3, 2]))
    assert any("strip_zeros=False" in note for note in caught.value.__notes__)
    slope = corejax.grad(lambda p: jnp.sum(jnp.roots(p, strip_zeros=False).real ** 2))(np.array([1.0, -3, 2]))
    np.testing.assert_allclose(np.asarray(slope), [-14.0, -6.0, -2.0], atol=1e-9)


def test_polynomials_through_points() -> None:
    x, y, w = random(7), random(7, 2), np.abs(random(7, seed=2))
    rows: list[tuple[Any, dict[str, Any]]] = [
        (y, {}),
        (y[:, 0], {"full": True}),
        (y, {"cov": True, "w": w}),
        (y[:, 0], {"cov": "unscaled", "w": w}),
    ]
    for values, kwargs in rows:
        check(jnp.polyfit, theirs.polyfit, x, values, deg=2, compiled=not kwargs, **kwargs)


@pytest.mark.parametrize("p", [[0, 1, -3, 2, 0], [0, 0, 1, -3, 2], [1, -3, 2], [0, 0, 0], [0, 2], [0, 0, 2], [1, 0, 0]])
def test_roots_that_are_not_there_are_nan_and_last(p: list[int]) -> None:
    """As many as there are zeros in front, where these are not looked for; the others are as without these zeros."""
    wanted = np.sort_complex(np.roots(np.float32(p)))
    found = np.asarray(corejax.jit(lambda p: jnp.roots(p, strip_zeros=False))(np.float32(p)))
    assert found.shape == (len(p) - 1,) and np.isnan(found[len(wanted) :]).all()
    np.testing.assert_allclose(np.sort_complex(found[: len(wanted)]), wanted, rtol=1e-5, atol=1e-6)


def test_roots_have_derivatives_where_zeros_are_left_out() -> None:
    p, change = np.array([0, 1, -3, 2, 0], np.float32), np.array([0, 1, 0, 0, 0], np.float32)
    found, tangent = corejax.jvp(jnp.roots, (p,), (change,))
    order = np.argsort(found.real)
    np.testing.assert_allclose(np.asarray(found)[order], [0, 1, 2], atol=1e-6)
    np.testing.assert_allclose(np.asarray(tangent)[order], [0, 1, -4], atol=1e-5)  # -x**2 / (2 x - 3)


@pytest.mark.parametrize("order", [None, 2, 3, 2.5, 0.5, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_norms_of_tiny_and_huge_vectors(dtype: str, order: Any) -> None:
    largest = np.finfo(dtype).maxexp
    base = np.array([3.0, 4.0, 0.5], dtype) * (1 + 1j if dtype == "complex64" else 1)
    for exponent in (-int(0.9 * largest), -largest // 2, 0, largest // 2, int(0.97 * largest) - 3):
        x = (base * 2.0**exponent).astype(dtype)
        wanted = np.linalg.norm(base.astype("complex128"), order) * 2.0**exponent
        for norm in (jnp.linalg.norm, corejax.jit(jnp.linalg.norm, static_argnums=1)):
            np.testing.assert_allclose(norm(x, order), wanted, rtol=2e-6 if dtype != "float64" else 1e-13)
            if dtype != "complex64":  # of degree 1: the gradient does not depend on the size
                grad, same = (corejax.grad(norm)(v, order) for v in (x, base))
                np.testing.assert_allclose(grad, same, rtol=2e-5 if dtype == "float32" else 1e-12)
    with np.errstate(all="ignore"):
        stack = np.stack([base.real * 2.0**e for e in (-int(0.9 * largest), 0, largest // 2 + 5)])
    got = jnp.linalg.vector_norm(stack.astype(np.finfo(dtype).dtype), axis=-1, keepdims=True, ord=2)
    np.testing.assert_allclose(got[:, 0] / stack[:, 0], np.full(3, np.linalg.norm(base.real) / 3), rtol=1e-6)
