"""Eager calls on small arrays through `numpy`, `nn` and the methods of arrays: what a call costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import corejax
from cases.registry import Sides, case

WANTED = 0.4


class Operands(NamedTuple):
    """The same small arrays on each side: float32 of shape (4, 8), a row of it, int32 positions, a mask."""

    x: Any
    y: Any
    row: Any
    at: Any
    mask: Any


def operands(lib: Any) -> Operands:
    """Operands of one side."""
    x = np.linspace(0.1, 3.2, 32, dtype=np.float32).reshape(4, 8)
    values = (x, x[::-1] + 1, x[0], np.array([2, 0, 3], np.int32), x[0] > 0.5)
    return Operands(*(lib.numpy.asarray(np.ascontiguousarray(v)) for v in values))


# n is the `numpy` namespace, nn the `nn` one, v the operands.
NUMPY: dict[str, Callable[[Any, Operands], Any]] = {
    "add": lambda n, v: n.add(v.x, v.y),
    "add of a row": lambda n, v: n.add(v.x, v.row),
    "x * 2.0": lambda n, v: v.x * 2.0,
    "sin": lambda n, v: n.sin(v.x),
    "maximum": lambda n, v: n.maximum(v.x, v.y),
    "floor_divide": lambda n, v: n.floor_divide(v.x, v.y),
    "mod": lambda n, v: n.mod(v.x, v.y),
    "power": lambda n, v: n.power(v.x, v.y),
    "x ** 2": lambda n, v: v.x**2,
    "hypot": lambda n, v: n.hypot(v.x, v.y),
    "where": lambda n, v: n.where(v.mask, v.row, 0.0),
    "clip": lambda n, v: n.clip(v.x, 0.0, 1.0),
    "isclose": lambda n, v: n.isclose(v.x, v.y),
    "sum": lambda n, v: n.sum(v.x),
    "sum over an axis": lambda n, v: n.sum(v.x, axis=1),
    "max": lambda n, v: n.max(v.x),
    "mean": lambda n, v: n.mean(v.x),
    "var": lambda n, v: n.var(v.x),
    "argmax": lambda n, v: n.argmax(v.x),
    "any": lambda n, v: n.any(v.mask),
    "cumsum": lambda n, v: n.cumsum(v.row),
    "dot": lambda n, v: n.dot(v.x, v.row),
    "matmul": lambda n, v: v.x @ v.x.T,
    "einsum": lambda n, v: n.einsum("ij,kj->ik", v.x, v.y),
    "outer": lambda n, v: n.outer(v.row, v.row),
    "sort": lambda n, v: n.sort(v.row),
    "argsort": lambda n, v: n.argsort(v.row),
    "searchsorted": lambda n, v: n.searchsorted(v.row, v.x),
    "take": lambda n, v: n.take(v.row, v.at),
    "x[1]": lambda n, v: v.x[1],
    "x[1:3, ::2]": lambda n, v: v.x[1:3, ::2],
    "x[positions]": lambda n, v: v.x[v.at],
    "x.at[positions].set": lambda n, v: v.x.at[v.at].set(0.0),
    "x.at[positions].add": lambda n, v: v.row.at[v.at].add(1.0),
    "concatenate": lambda n, v: n.concatenate([v.x, v.y]),
    "stack": lambda n, v: n.stack([v.x, v.y]),
    "reshape": lambda n, v: n.reshape(v.x, (8, 4)),
    "transpose": lambda n, v: n.transpose(v.x),
    "expand_dims": lambda n, v: n.expand_dims(v.row, 0),
    "broadcast_to": lambda n, v: n.broadcast_to(v.row, (4, 8)),
    "roll": lambda n, v: n.roll(v.row, 2),
    "pad": lambda n, v: n.pad(v.row, 2),
    "tril": lambda n, v: n.tril(v.x),
    "eye": lambda n, v: n.eye(4),
    "zeros": lambda n, v: n.zeros((4, 8)),
    "arange": lambda n, v: n.arange(8),
    "linspace": lambda n, v: n.linspace(0.0, 1.0, 8),
    "astype": lambda n, v: v.x.astype("int32"),
    "quantile": lambda n, v: n.quantile(v.row, 0.3),
    "median": lambda n, v: n.median(v.row),
    "nanmean": lambda n, v: n.nanmean(v.x),
    "nan_to_num": lambda n, v: n.nan_to_num(v.x),
    "round": lambda n, v: n.round(v.x, 2),
    "frexp": lambda n, v: n.frexp(v.x),
    "sinc": lambda n, v: n.sinc(v.x),
    "logaddexp": lambda n, v: n.logaddexp(v.x, v.y),
    "diff": lambda n, v: n.diff(v.row),
    "gradient": lambda n, v: n.gradient(v.row),
    "trapezoid": lambda n, v: n.trapezoid(v.row),
    "unwrap": lambda n, v: n.unwrap(v.row),
    "convolve": lambda n, v: n.convolve(v.row, v.row),
    "polyval": lambda n, v: n.polyval(v.row, v.x),
    "polyfit": lambda n, v: n.polyfit(v.row, v.row, 2),
    "interp": lambda n, v: n.interp(v.x, v.row, v.row),
    "histogram": lambda n, v: n.histogram(v.row),
    "cov": lambda n, v: n.cov(v.x),
    "cross": lambda n, v: n.cross(v.x[:, :3], v.y[:, :3]),
    "kron": lambda n, v: n.kron(v.x, v.row),
    "isin": lambda n, v: n.isin(v.at, v.at),
    "repeat": lambda n, v: n.repeat(v.row, 3),
    "tile": lambda n, v: n.tile(v.row, 3),
    "fft": lambda n, v: n.fft.fft(v.row),
    "rfft2": lambda n, v: n.fft.rfft2(v.x),
    "solve": lambda n, v: n.linalg.solve(v.x[:, :4] + n.eye(4), v.y[:, 0]),
    "pinv": lambda n, v: n.linalg.pinv(v.x),
}
NN: dict[str, Callable[[Any, Operands], Any]] = {
    "relu": lambda nn, v: nn.relu(v.x),
    "gelu": lambda nn, v: nn.gelu(v.x),
    "softmax": lambda nn, v: nn.softmax(v.x),
    "logsumexp": lambda nn, v: nn.logsumexp(v.x),
    "one_hot": lambda nn, v: nn.one_hot(v.at, 4),
    "sigmoid": lambda nn, v: nn.sigmoid(v.x),
    "softplus": lambda nn, v: nn.softplus(v.x),
    "elu": lambda nn, v: nn.elu(v.x),
    "leaky_relu": lambda nn, v: nn.leaky_relu(v.x),
    "log_softmax": lambda nn, v: nn.log_softmax(v.x),
    "standardize": lambda nn, v: nn.standardize(v.x),
}


def _case(name: str, module: str, f: Callable[[Any, Operands], Any]) -> None:
    def side(lib: Any) -> Callable[[], Any]:
        namespace, v = getattr(lib, module), operands(lib)
        return lambda: f(namespace, v)

    @case(f"small eager {name}", WANTED, short=True)
    def make() -> Sides:
        return side(corejax), side(jax)


for _module, _calls in (("numpy", NUMPY), ("nn", NN)):
    for _name, _call in _calls.items():
        _case(_name, _module, _call)
