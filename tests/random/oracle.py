"""Draws to compare with jax's: for each function of `corejax.random`, arguments behind the key.

What jax 0.10.2 gives for `key(11)` is in `tests/fixtures/random/draws.npz`; `REWRITE_FIXTURES=1 pytest
tests/random/distributions/test_draws_of_jax.py` writes it again with the jax that is installed.
"""

import pathlib

import numpy as np

FIXTURE = pathlib.Path(__file__).parent.parent / "fixtures" / "random" / "draws.npz"
SEED = 11

MEAN = np.array([1.0, 2.0], np.float32)
COV = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
A = np.array([0.3, 1.0, 2.5], np.float32)
SHARES = A / A.sum()
LOGITS = np.log(np.stack([A, A[::-1]]))
GRID = np.arange(12, dtype=np.int32).reshape(3, 4)


def case(*args, **kwargs):
    """Arguments behind the key."""
    return args, kwargs


CASES = {
    "bits": [case(), case((3,), "uint8"), case((2, 3), "uint16"), case((5,), "uint64"), case((0, 2))],
    "uniform": [
        case((4,)), case((2, 3), "float16"), case((5,), "bfloat16"), case((5,), "float8_e4m3fn"),
        case((5,), "float32", -2.0, 3.3), case((3,), "float32", A, 3.0), case((0,)),
        case((5,), "float16", -2.0, 3.3), case((5,), "float64"),
    ],
    "randint": [
        case((20,), 0, 10), case((20,), -5, 1000, "int8"), case((5,), 0, 256, "uint8"), case((5,), 0, 2**31 - 1),
        case((5,), 5, 3), case((5,), -(2**31), 2**31 - 1), case((3,), np.int32([0, 5, 9]), np.int32([3, 7, 100])),
        case((6,), 0, 70000, "uint16"), case((4,), 0, 2**40, "int64"), case((2, 3), 0, np.uint64(2**63), "uint64"),
    ],
    "bernoulli": [case(), case(A), case(0.3, (7,)), case(0.3, (7,), "high"), case(1.5, (2,))],
    "rademacher": [case((8,)), case((8,), "float32"), case((8,), "int8")],
    "normal": [
        case(), case((5,)), case((4,), "float16"), case((4,), "bfloat16"), case((4,), "complex64"),
        case((4,), "float64"), case((2,), "complex128"), case((2, 0)),
    ],
    "truncated_normal": [case(-1.0, 2.0, (5,)), case(np.zeros(3, np.float32), A), case(-1.0, 2.0, (5,), "float16")],
    "lognormal": [case(0.5, (4,)), case(), case(A)],
    "maxwell": [case((4,))],
    "double_sided_maxwell": [case(1.0, 2.0, (4,)), case(A, A)],
    "cauchy": [case((6,)), case((6,), "float16")],
    "exponential": [case((6,)), case((3,), "float64")],
    "laplace": [case((6,))],
    "logistic": [case((6,))],
    "gumbel": [case((6,)), case((6,), None, "high"), case((6,), None, "highest"), case((6,), "bfloat16", "high")],
    "pareto": [case(2.0, (6,)), case(A)],
    "rayleigh": [case(A), case(A, (2, 3))],
    "triangular": [case(0.0, 1.0, 3.0, (6,)), case(A - 1, A, A + 1)],
    "wald": [case(A), case(A, (2, 3))],
    "weibull_min": [case(2.0, 1.5, (6,)), case(A, A, (2, 3))],
    "gamma": [case(A), case(2.0, (5,)), case(A, (2, 3)), case(0.1, (4,), "float16"), case(0.7, (2,), "float64")],
    "loggamma": [case(A), case(0.01, (5,))],
    "beta": [case(A, 2.0), case(0.5, 0.5, (4,))],
    "chisquare": [case(A), case(3.0, (2,))],
    "f": [case(A, 2.0)],
    "t": [case(A), case(3.0, (4,))],
    "dirichlet": [case(A), case(A, (2,))],
    "generalized_normal": [case(1.5, (4,))],
    "ball": [case(3), case(3, 1.0, (2,))],
    "geometric": [case(A / 4), case(0.3, (5,)), case(0.3, (5,), "int8")],
    "poisson": [case(A), case(50.0, (5,)), case(np.float32([0, 3, 30, np.nan])), case(3.0, (5,), "int8")],
    "binomial": [
        case(10, 0.3), case(np.float32([5, 100, 1000, -1, np.nan, np.inf]), 0.4), case(20, 0.3, (5,)),
        case(100.0, np.float32([0, 0.2, 0.7, 1])),
    ],
    "multinomial": [case(10, SHARES), case(np.float32([3, 100]), np.stack([SHARES, SHARES]))],
    "permutation": [case(10), case(GRID), case(GRID, 1, True), case(GRID.astype(np.float32), -1)],
    "choice": [
        case(10, (3,)), case(10, (3,), False), case(GRID, (2,), True, None, 1), case(3, (5,), True, A),
        case(3, (2,), False, A), case(GRID[0], (2, 2), False), case(GRID, (2,), False, None, 1),
    ],
    "categorical": [
        case(np.log(A)), case(LOGITS, shape=(4, 2)), case(LOGITS, 0), case(LOGITS, shape=(2, 2), replace=False),
        case(LOGITS, -1, (5, 2), mode="high"),
    ],
    "multivariate_normal": [case(MEAN, COV), case(MEAN, COV, (3,)), case(MEAN, COV, (3,), None, "eigh")],
    "orthogonal": [case(3), case(3, (2,), None, 2), case(2, (), None, 3)],
}  # fmt: skip

EXACT = {"bits", "uniform", "randint", "bernoulli", "rademacher", "permutation", "choice"}
NEED_LINALG = {"multivariate_normal", "orthogonal"}
ALL = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]


def drawn(random, name, number, key):
    """One case with `corejax.random` or `jax.random`, as a NumPy array."""
    args, kwargs = CASES[name][number]
    return np.asarray(getattr(random, name)(key, *args, **kwargs))


def assert_same(got, wanted, exact):
    """The same dtype and shape, and the same bits or, of transcendental functions, numbers to rounding."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if exact or got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    error = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12, "complex128": 1e-12}.get(got.dtype.name, 2e-5)
    wide = [x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, wanted)]
    np.testing.assert_allclose(*wide, rtol=error, atol=error)


def rewrite():
    """What jax gives, with bfloat16 and narrower floats as float32."""
    import jax

    found = {}
    for name, number in ALL:
        args = CASES[name][number][0]
        wide = any(isinstance(x, str) and x.endswith(("t64", "128")) for x in args)
        with jax.enable_x64(wide):
            value = drawn(jax.random, name, number, jax.random.key(SEED))
        plain = value.astype(np.float32) if value.dtype.kind == "V" else value
        found[f"{name} {number} {value.dtype.name}"] = plain
    FIXTURE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FIXTURE, **found)
