"""Linear algebra and Fourier transforms of size 256, eager and compiled; small matrices; a Gaussian process."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cases.loops import both, fresh
from cases.registry import Sides, blocking, case

SIZE = 256


class Operands(NamedTuple):
    """A matrix, a positive definite one, right-hand sides, a vector of 256 numbers and a complex one, all float32."""

    a: Any
    positive: Any
    b: Any
    x: Any
    z: Any


def operands(lib: Any, size: int) -> Operands:
    """Operands of one side."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((size, size)).astype(np.float32)
    b = rng.standard_normal((size, 8)).astype(np.float32)
    x = rng.standard_normal(size).astype(np.float32)
    values = (a, a @ a.T / size + np.eye(size, dtype=np.float32), b, x, (x + 1j * x[::-1]).astype(np.complex64))
    return Operands(*(lib.numpy.asarray(v) for v in values))


# n is the `numpy` namespace, s `scipy.linalg`, v the operands.
CALLS: dict[str, Callable[[Any, Any, Operands], Any]] = {
    "cholesky": lambda n, s, v: n.linalg.cholesky(v.positive),
    "qr": lambda n, s, v: n.linalg.qr(v.a),
    "svd": lambda n, s, v: n.linalg.svd(v.a),
    "eigh": lambda n, s, v: n.linalg.eigh(v.positive),
    "lu": lambda n, s, v: s.lu_factor(v.a),
    "solve": lambda n, s, v: n.linalg.solve(v.a, v.b),
    "inv": lambda n, s, v: n.linalg.inv(v.a),
    "det": lambda n, s, v: n.linalg.det(v.a),
    "cho_solve": lambda n, s, v: s.cho_solve((v.positive, True), v.b),
    "fft": lambda n, s, v: n.fft.fft(v.z),
    "rfft": lambda n, s, v: n.fft.rfft(v.x),
    "fft2": lambda n, s, v: n.fft.fft2(v.a),
}
SMALL = {name: CALLS[name] for name in ("cholesky", "qr", "eigh", "solve", "inv", "det")} | {
    "norm": lambda n, s, v: n.linalg.norm(v.a),
    "norm of a vector": lambda n, s, v: n.linalg.norm(v.x),
    "matrix_power": lambda n, s, v: n.linalg.matrix_power(v.a, 3),
}


def _matrix_case(name: str, f: Callable[..., Any], wanted: float | None, size: int, compiled: bool = False) -> None:
    def side(lib: Any) -> Callable[[], Any]:
        scipy_linalg = importlib.import_module(f"{lib.__name__}.scipy.linalg")
        v = operands(lib, size)
        if compiled:
            run = lib.jit(lambda v: f(lib.numpy, scipy_linalg, v))
            return blocking(lib, lambda: run(v))
        return blocking(lib, lambda: f(lib.numpy, scipy_linalg, v))

    kind = "compiled" if compiled else "eager"

    @case(f"{kind} {name} of {size}", wanted, short=True)
    def make() -> Sides:
        return both(side)


for _name, _call in CALLS.items():
    _matrix_case(_name, _call, 1.0, SIZE)
for _name, _call in CALLS.items():
    _matrix_case(_name, _call, 1.05, SIZE, compiled=True)
for _name, _call in SMALL.items():
    _matrix_case(_name, _call, None, 3)
    _matrix_case(_name, _call, None, 10)


# -- a Gaussian process ----------------------------------------------------------------------------------------------


def likelihood(lib: Any, factor: float) -> Callable[[Any, Any, Any], Any]:
    """The negative log likelihood of targets under a Gaussian process with a squared-exponential kernel."""
    n, linalg = lib.numpy, importlib.import_module(f"{lib.__name__}.scipy.linalg")

    def loss(p: Any, x: Any, y: Any) -> Any:
        amplitude, scales, noise = n.exp(p["amplitude"]), n.exp(p["scales"]), n.exp(p["noise"])
        differences = (x[:, None, :] - x[None, :, :]) / scales
        kernel = amplitude * n.exp(-0.5 * n.sum(differences**2, axis=-1)) * factor
        factored = linalg.cholesky(kernel + (noise + 1e-4) * n.eye(x.shape[0]), lower=True)
        weights = linalg.cho_solve((factored, True), y)
        determinant = n.sum(n.log(n.diagonal(factored)))
        return 0.5 * n.dot(y, weights) + determinant + 0.5 * x.shape[0] * n.log(2 * n.pi)

    return loss


def process_operands() -> tuple[Any, Any, Any]:
    """Parameters, inputs and targets."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 3)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    zero = np.zeros((), np.float32)
    return {"amplitude": zero, "scales": np.zeros(3, np.float32), "noise": zero}, x, y


@case("tracing grad of a GP's likelihood", 0.2)
def traced_process() -> Sides:
    """Of a new function each time."""
    args = process_operands()
    return both(lambda lib: lambda: lib.make_jaxpr(lib.grad(likelihood(lib, fresh())))(*args))


@case("lowering grad of a GP's likelihood", 0.25)
def lowered_process() -> Sides:
    """Of a new function each time."""
    args = process_operands()
    return both(lambda lib: lambda: lib.jit(lib.grad(likelihood(lib, fresh()))).lower(*args))


@case("compiled grad of a GP's likelihood", 1.05)
def compiled_process() -> Sides:
    """With operands on the device."""

    def side(lib: Any) -> Callable[[], Any]:
        run = lib.jit(lib.grad(likelihood(lib, 1.0)))
        args = lib.device_put(process_operands())
        return blocking(lib, lambda: run(*args))

    return both(side)
