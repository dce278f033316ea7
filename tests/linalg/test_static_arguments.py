"""Flags, words and static numbers of every public function: what is none is refused with function and argument."""

import inspect

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
import corejax.scipy.linalg
from corejax import lax

A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]], np.float32)
V = np.array([1.0, 2.0, 3.0], np.float32)
PIVOTS = np.array([0, 1, 2], np.int32)
ARGUMENTS = {
    "lax triangular_solve": (A, A), "lax tridiagonal_solve": (V, V, V, A), "lax ormqr": (A, V, A),
    "lax symmetric_product": (A, A), "numpy lstsq": (A, V), "numpy matrix_power": (A, 3),
    "scipy cho_solve": ((A, True), V), "scipy eigh_tridiagonal": (V, V[:2]), "scipy expm_frechet": (A, A),
    "scipy funm": (A, jnp.exp), "scipy helmert": (3,), "scipy qr_multiply": (A, A), "scipy solve": (A, V),
    "scipy solve_triangular": (A, V), "scipy convolution_matrix": (V, 3), "scipy lu_solve": ((A, PIVOTS), V),
    "scipy solve_sylvester": (A, A, A), "scipy pascal": (3,), "scipy invpascal": (3,), "scipy dft": (3,),
}  # fmt: skip
MODULES = {"lax": lax.linalg, "numpy": jnp.linalg, "scipy": corejax.scipy.linalg}
IGNORED = {
    "overwrite_a", "overwrite_b", "overwrite_c", "check_finite", "lwork", "turbo", "debug", "lapack_driver",
    "is_hermitian", "sort_eigenvalues", "use_magma", "full_pivoting", "conjugate",
}  # fmt: skip


def _static():
    for module, namespace in MODULES.items():
        for name, f in sorted(vars(namespace).items()):
            if not inspect.isfunction(f) or name.startswith("_"):
                continue
            for p in inspect.signature(f).parameters.values():
                if isinstance(p.default, bool | str) and p.name not in IGNORED:
                    yield module, name, p.name


STATIC = sorted(set(_static()))


def test_there_are_many():
    assert len(STATIC) > 55


@pytest.mark.parametrize(("module", "name", "argument"), STATIC)
def test_arrays_are_no_flags_and_no_words(module, name, argument):
    f = getattr(MODULES[module], name)
    arguments = ARGUMENTS.get(f"{module} {name}", (A,))
    with pytest.raises((TypeError, ValueError), match=rf"^{name}: .*{argument} "):
        f(*arguments, **{argument: np.ones((2, 2))})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.linalg.eigvalsh(A, "X"), ValueError, "eigvalsh: UPLO must be one of None, 'L', 'U', got 'X'"),
        (lambda: jnp.linalg.eigvalsh(None), TypeError, "eigvalsh takes arrays"),
        (lambda: jnp.linalg.svdvals(None), TypeError, "svdvals takes arrays"),
        (lambda: jnp.linalg.pinv(A, "x"), TypeError, "pinv takes arrays and scalars, got str as rtol"),
        (lambda: jnp.linalg.lstsq(A, V, "x"), TypeError, "lstsq takes arrays and scalars, got str as rcond"),
        (lambda: jnp.linalg.matrix_rank(A, 1j), TypeError, r"matrix_rank: rtol must be real, got c64\[\]"),
        (
            lambda: jnp.linalg.matrix_rank(A[:2], hermitian=True),
            ValueError,
            "matrix_rank: Hermitian matrices must",
        ),
        (lambda: jnp.linalg.cond(A, np.ones(2)), ValueError, "cond: p must be one number or string"),
        (lambda: jnp.linalg.norm(A, np.ones(2)), ValueError, "^norm: ord must be one number or string"),
        (lambda: jnp.linalg.cross(V, V, axis=None), TypeError, "cross: axis must be a static integer, got None"),
        (lambda: jnp.linalg.cross(V, V, axis=2), np.exceptions.AxisError, r"axis 2 is out of bounds for f32\[3\]"),
        (lambda: jnp.linalg.multi_dot(None), TypeError, "multi_dot takes arrays"),
        (lambda: jnp.linalg.tensorsolve(A, V, axes="x"), TypeError, "tensorsolve: axes must be a static integer"),
        (lambda: lax.linalg.svd(A, algorithm="x"), ValueError, "svd: algorithm must be one of 'default', 'QR'"),
        (lambda: lax.linalg.eigh(A, implementation="x"), ValueError, "eigh: implementation must be one of"),
        (lambda: lax.linalg.qdwh(A, eps="x"), TypeError, "qdwh: eps must be a number, got 'x'"),
        (lambda: lax.linalg.qdwh(A, dynamic_shape=(1,)), TypeError, "qdwh: dynamic_shape must be two sizes"),
        (lambda: lax.linalg.symmetric_product(A, A, alpha="x"), TypeError, "symmetric_product: alpha must be a number"),
        (lambda: lax.linalg.triangular_solve(None, A), TypeError, "triangular_solve takes arrays .* NoneType as a"),
        (lambda: lax.linalg.lu_pivots_to_permutation(PIVOTS, "x"), TypeError, "permutation_size must be a static int"),
        (
            lambda: corejax.scipy.linalg.cho_solve(A, V),
            TypeError,
            "cho_solve: c_and_lower must be a pair, as",
        ),
        (lambda: corejax.scipy.linalg.lu_solve((V, PIVOTS), V), ValueError, "lu_solve takes factors of square"),
        (lambda: corejax.scipy.linalg.funm(A, 3), TypeError, "funm: func must be a function of an array, got 3"),
        (lambda: corejax.scipy.linalg.hadamard(2**70), MemoryError, "hadamard: the matrix of n="),
        (lambda: corejax.scipy.linalg.sqrtm(A, None), TypeError, "sqrtm: blocksize must be a static integer, got None"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_traced_flags_are_said_to_be_traced():
    with pytest.raises(corejax.errors.ConcretizationTypeError):
        corejax.jit(lambda flag: jnp.linalg.svd(A, full_matrices=flag))(True)
