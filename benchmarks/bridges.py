"""Time primitives of corejax in JAX and in PyTorch beside the native functions: `python benchmarks/bridges.py`.

PyTorch's rows need an environment with torch (`make test-torch` makes `.venv-torch`). All rows run on one core, because
PyTorch runs on one thread, and threads that wait for each other measure the load of the machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import corejax
import corejax.numpy as cnp
from benchmarks.timing import best_of_each

Case = tuple[str, Callable[[], Any], Callable[[], Any], float | None]
SIZES = (8, 2**18)


def jax_cases() -> Iterator[Case]:
    """Yield the name, the bridged call, the native call and the wanted ratio."""
    import jax
    import jax.numpy as jnp

    @jax.custom_jvp
    def same(x: Any) -> Any:
        return jnp.tanh(x)

    # corejax's derivative needs one more instruction than JAX's, but is also accurate without a fused multiply-add.
    @same.defjvp
    def _jvp(primals: Any, tangents: Any) -> Any:
        out = jnp.tanh(*primals)
        return out, (1 + out) * (1 - out) * tangents[0]

    ours, theirs = corejax.to_jax(cnp.tanh), jnp.tanh
    for size in SIZES:
        x = jnp.asarray(np.linspace(-1, 1, size, dtype=np.float32))
        pairs = {
            "jitted": (jax.jit(ours), jax.jit(theirs), 1.05),
            "eager": (ours, theirs, 4.0),
            "jitted vmap of grad": (jax.jit(jax.vmap(jax.grad(ours))), jax.jit(jax.vmap(jax.grad(same))), 1.05),
        }
        for name, (f, g, wanted) in pairs.items():
            yield f"JAX, {name}, {size}", _waiting(f, x), _waiting(g, x), wanted


def _waiting(f: Callable[..., Any], x: Any) -> Callable[[], Any]:
    return lambda: f(x).block_until_ready()


def torch_cases() -> Iterator[Case]:
    """Yield the same for PyTorch: composed of its operations, and as a kernel; eager, and compiled by Inductor."""
    import torch

    torch.set_num_threads(1)
    compiled = partial(torch.compile, fullgraph=True)
    ours = {"composed": corejax.to_torch(cnp.tanh), "kernel": corejax.to_torch(cnp.tanh, as_kernel=True)}
    for size in SIZES:
        x = torch.linspace(-1, 1, size)
        moving = x.clone().requires_grad_()
        torch.compiler.reset()  # or the second size is compiled for every size
        native = compiled(lambda x: torch.tanh(x))
        for way, f in ours.items():
            wanted = 1.0 if way == "kernel" and size > 8 else 15.0
            pulled = partial(_backward, f, moving), partial(_backward, torch.tanh, moving)
            yield f"PyTorch, {way}, {size}", partial(f, x), partial(torch.tanh, x), wanted
            yield f"PyTorch, {way}, backward, {size}", *pulled, None
            fast = partial(compiled(f), x), partial(native, x)
            yield f"PyTorch, {way}, compiled, {size}", *fast, 1.1 if way == "composed" else None


def _backward(f: Callable[..., Any], x: Any) -> None:
    f(x).sum().backward()


def main() -> None:
    """Print a table of the frameworks that are installed."""
    if hasattr(os, "sched_setaffinity"):  # before XLA and PyTorch count the cores
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| case | bridged | native | ratio | wanted |\n| --- | ---: | ---: | ---: | ---: |")
    for framework, cases in (("jax", jax_cases), ("torch", torch_cases)):
        for name, bridged, native, wanted in cases() if find_spec(framework) is not None else ():
            # Many short rounds, of which some are not interrupted by other programs.
            ours, theirs = best_of_each([bridged, native], rounds=60, budget=1e-3)
            goal = "" if wanted is None else f"{wanted:g}"
            print(
                f"| {name} | {ours * 1e6:.3g} µs | {theirs * 1e6:.3g} µs | {ours / theirs:.2f} | {goal} |", flush=True
            )


if __name__ == "__main__":
    main()
