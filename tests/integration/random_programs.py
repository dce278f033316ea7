"""Random well-typed programs over the array primitives, the same one for corejax and for jax."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

ROWS, COLUMNS = 3, 2
PLACES, OUTSIDE = np.array([2, 0, 2]), np.array([1, 9, -7])  # for indices: a row twice; some outside
SIZES = np.array([1, 2], np.int32)  # of groups of rows

# name -> function(lax-like, numpy-like, *operands of shape (ROWS, COLUMNS)): smooth, and tame in value
UNARY: dict[str, Callable[..., Any]] = {
    "sin": lambda lax, jnp, x: lax.sin(x),
    "cos": lambda lax, jnp, x: lax.cos(x),
    "tanh": lambda lax, jnp, x: lax.tanh(x),
    "neg": lambda lax, jnp, x: -x,
    "logistic": lambda lax, jnp, x: lax.logistic(x),
    "log1p of square": lambda lax, jnp, x: lax.log1p(x * x),
    "sqrt": lambda lax, jnp, x: lax.sqrt(x * x + 1.0),
    "exp of tanh": lambda lax, jnp, x: lax.exp(lax.tanh(x)),
    "cube": lambda lax, jnp, x: lax.integer_pow(lax.tanh(x), 3),
    "reversed": lambda lax, jnp, x: lax.rev(x, (0,)),
    "transposed twice": lambda lax, jnp, x: lax.transpose(2.0 * lax.transpose(x, (1, 0)), (1, 0)),
    "rows summed": lambda lax, jnp, x: x + jnp.sum(x, axis=0),
    "columns averaged": lambda lax, jnp, x: x - jnp.mean(x, axis=1, keepdims=True),
    "flattened": lambda lax, jnp, x: jnp.reshape(jnp.reshape(x, (-1,)) * 0.5, x.shape),
    "sliced and padded": lambda lax, jnp, x: jnp.concatenate([x[1:], x[:1] * 2.0], 0),
    "diagonal of products": lambda lax, jnp, x: x * jnp.sum(x @ x.T) * 0.01,
    "halves chosen": lambda lax, jnp, x: jnp.where(x > 0.0, x, 0.5 * x),
    "greatest of each row": lambda lax, jnp, x: x + jnp.max(x, axis=1, keepdims=True),
    "rows taken": lambda lax, jnp, x: x[PLACES] + jnp.take(x, PLACES[::-1], axis=0, mode="clip"),
    "entries gathered, some outside": lambda lax, jnp, x: (
        x.at[OUTSIDE, 0].get(mode="fill", fill_value=0.5)[:, None] * x
    ),
    "rows scattered": lambda lax, jnp, x: jnp.zeros_like(x).at[PLACES].add(x) + x.at[OUTSIDE].set(0.5, mode="drop"),
    "entries multiplied": lambda lax, jnp, x: x.at[PLACES[:2], PLACES[1:] % COLUMNS].multiply(0.5, unique_indices=True),
    "greatest scattered": lambda lax, jnp, x: x.at[PLACES].max(lax.tanh(x)),
    "sorted": lambda lax, jnp, x: jnp.sort(x, axis=0),
    "sorted by another": lambda lax, jnp, x: lax.sort((lax.sin(x), x), dimension=0, num_keys=1)[1],
    "two greatest": lambda lax, jnp, x: x * jnp.sum(lax.top_k(x.T, 2)[0]) * 0.2,
    "windows summed": lambda lax, jnp, x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), ((1, 0), (0, 0))) * 0.5,
    "windows' greatest": lambda lax, jnp, x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "convolved": lambda lax, jnp, x: lax.tanh(
        lax.conv_general_dilated(x[None, None], x[None, None, :2], (1, 1), "SAME")
    )[0, 0],
    "cumulated": lambda lax, jnp, x: lax.cumsum(x, 0, reverse=True) * 0.3 + lax.cumlogsumexp(x, 1),
    "product of others": lambda lax, jnp, x: x + lax.cumprod(lax.tanh(x), 0),
    "error function": lambda lax, jnp, x: lax.erf(x) + lax.lgamma(x * x + 1.5),
    "digamma and bessel": lambda lax, jnp, x: 0.3 * lax.digamma(x * x + 1.5) + lax.bessel_i0e(x * x + 0.5),
    "padded within": lambda lax, jnp, x: lax.pad(x, 0.5, ((-1, 0, 1), (0, 0, 0)))[:ROWS],
    "split and stacked": lambda lax, jnp, x: jnp.stack([2.0 * c for c in jnp.split(x, COLUMNS, 1)[::-1]], 1)[..., 0],
    "checkpointed": lambda lax, jnp, x: lib_of(lax).checkpoint(lambda y: lax.sin(lax.cos(y)))(x),
    "own derivative": lambda lax, jnp, x: own_derivative(lib_of(lax), lax)(x),
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda lax, jnp, x, y: x + y,
    "sub": lambda lax, jnp, x, y: x - y,
    "mul": lambda lax, jnp, x, y: x * y,
    "quotient": lambda lax, jnp, x, y: x / (y * y + 1.0),
    "matmul": lambda lax, jnp, x, y: lax.tanh(x @ y.T @ x),
    "scaled by a sum": lambda lax, jnp, x, y: x * jnp.sum(y) * 0.1,
    "chosen": lambda lax, jnp, x, y: jnp.where(x > y, x, y * 0.3),
    "conditional": lambda lax, jnp, x, y: lax.cond(jnp.sum(x) > 0.0, lambda a, b: a * b, lambda a, b: a - b, x, y),
    "scanned": lambda lax, jnp, x, y: lax.scan(lambda c, r: (lax.tanh(c + r), c * r), x[0], y)[1] + x,
    "looped slices": lambda lax, jnp, x, y: lax.fori_loop(0, 2, lambda i, c: _moved(lax, c, y, i), x),
    "groups multiplied": lambda lax, jnp, x, y: lax.tanh(lax.ragged_dot(x, jnp.stack([y.T @ x, x.T @ y]), SIZES)),
    "incomplete gamma": lambda lax, jnp, x, y: lax.igamma(2.5 + 0.0 * x, x * x + 0.5) * y,
    "clamped": lambda lax, jnp, x, y: lax.clamp(-0.9, x, 0.9) * lax.atan2(y, x * x + 1.0),
    "contracted": lambda lax, jnp, x, y: jnp.einsum("ij,kj,kl->il", x, y, lax.tanh(x)),
}


def lib_of(lax: Any) -> Any:
    """The library that a `lax` is of."""
    return importlib.import_module("jax" if lax.__name__.startswith("jax") else "corejax")


def own_derivative(lib: Any, lax: Any) -> Callable[[Any], Any]:
    """A function with a rule for its derivative."""
    f = lib.custom_jvp(lambda y: lax.sin(y) * y)
    f.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * (lax.cos(primals[0]) * 2.0)))
    return f  # type: ignore[no-any-return]


def _moved(lax: Any, c: Any, y: Any, i: Any) -> Any:
    row = lax.dynamic_slice_in_dim(c, i, 1, 0)
    return lax.dynamic_update_slice_in_dim(c, lax.tanh(row * y[:1]), i + 1, 0)


@dataclass(frozen=True)
class Program:
    """Steps, each an operation on earlier values: (name, indices of operands). The inputs are values 0 and 1."""

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    jitted: frozenset[int]

    def __call__(self, lib: Any, lax: Any, jnp: Any) -> Callable[[Any, Any], Any]:
        """The program as a function of two arrays; the steps in `jitted` are compiled functions of their own."""

        def run(x: Any, y: Any) -> Any:
            values = [jnp.asarray(x), jnp.asarray(y)]
            for i, (name, operands) in enumerate(self.steps):
                op = UNARY.get(name) or BINARY[name]

                def step(*args: Any, op: Callable[..., Any] = op) -> Any:
                    return op(lax, jnp, *args)

                values.append((lib.jit(step) if i in self.jitted else step)(*(values[k] for k in operands)))
            return values[-1]

        return run


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 6) -> Program:
    """Programs of a few steps."""
    steps = []
    for i in range(draw(st.integers(1, max_steps))):
        name = draw(st.sampled_from(sorted(UNARY) + sorted(BINARY)))
        earlier = st.integers(0, i + 1)
        steps.append((name, (draw(earlier),) if name in UNARY else (draw(earlier), draw(earlier))))
    jitted = draw(st.frozensets(st.integers(0, len(steps) - 1), max_size=2))
    return Program(tuple(steps), jitted)
