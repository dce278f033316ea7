"""Random well-typed programs over the array primitives, the same one for corejax and for jax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

ROWS, COLUMNS = 3, 2

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
}


@dataclass(frozen=True)
class Program:
    """Steps, each an operation on earlier values: (name, indices of operands). The inputs are values 0 and 1."""

    steps: tuple[tuple[str, tuple[int, ...]], ...]
    jitted: frozenset[int]

    def __call__(self, lib: Any, lax: Any, jnp: Any) -> Callable[[Any, Any], Any]:
        """The program as a function of two arrays; the steps in `jitted` are compiled functions of their own."""

        def run(x: Any, y: Any) -> Any:
            values = [x, y]
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
