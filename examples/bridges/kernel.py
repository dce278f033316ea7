"""One kernel in C++, `logcosh.cc`, used from corejax, JAX and PyTorch, with derivatives and batches in each.

The kernel is registered once, with the jaxlib that corejax and JAX share. It is the translation of a primitive, whose
two rules are written once. PyTorch runs the kernel as a program that corejax compiles.

    python examples/bridges/kernel.py
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import corejax
import corejax.numpy as jnp
from corejax import ffi
from corejax.extend import Primitive, ShapedArray, jvp_rules, vmap_rules, xla_translations

SOURCE = Path(__file__).with_name("logcosh.cc")


def log_cosh_on_host(x: np.ndarray) -> np.ndarray:
    """Compute the function with NumPy, for calls outside of compiled programs."""
    size = np.abs(x)
    return (size + np.log1p(np.exp(-2 * size)) - np.log(2)).astype(x.dtype)


def log_cosh_type(x: ShapedArray) -> ShapedArray:
    """Return the type of the result: the kernel takes float32 alone."""
    if x.dtype != np.float32:
        raise TypeError(f"logcosh takes float32, got {x.str_short()}")
    return x.strip_weak_type()


log_cosh_p = Primitive("bridges.logcosh", impl=log_cosh_on_host, abstract_eval=log_cosh_type)


@jvp_rules.register(log_cosh_p)
def log_cosh_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Multiply the tangent by the derivative, tanh."""
    (x,), (t,) = primals, tangents
    return log_cosh_p.bind(x), jnp.tanh(x) * t


@vmap_rules.register(log_cosh_p)
def log_cosh_vmap(size: int, vals: Any, dims: Any) -> tuple[Any, Any]:
    """Treat a batch as a larger array."""
    return log_cosh_p.bind(*vals), dims[0]


@xla_translations.register(log_cosh_p, platform="cpu")
def log_cosh_translation(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
    """Call the kernel."""
    return ctx.custom_call("bridges.logcosh", *in_vals, out=in_avals[0])


def build(compiler: str, directory: Path) -> None:
    """Compile the kernel and register it."""
    library = directory / "logcosh.so"
    flags = ["-O2", "-w", "-shared", "-fPIC", "-std=c++17", f"-I{ffi.include_dir()}"]
    subprocess.run([compiler, *flags, SOURCE, "-o", library], check=True)
    ffi.register_ffi_target("bridges.logcosh", ctypes.CDLL(str(library)).LogCosh)


def in_corejax(x: np.ndarray) -> Any:
    """Compute the slope at each point, and the curvature."""
    slope = corejax.grad(log_cosh_p.bind)
    return corejax.jit(corejax.vmap(slope))(x), corejax.jit(corejax.vmap(corejax.grad(slope)))(x)


def in_jax(x: np.ndarray) -> Any:
    """Do the same in JAX."""
    import jax

    slope = jax.grad(corejax.to_jax(log_cosh_p))
    return jax.jit(jax.vmap(slope))(x), jax.jit(jax.vmap(jax.grad(slope)))(x)


def in_torch(x: np.ndarray) -> Any:
    """Do the same in PyTorch."""
    import torch

    slope = torch.func.grad(corejax.to_torch(log_cosh_p))
    xs = torch.from_numpy(x)
    return torch.func.vmap(slope)(xs), torch.func.vmap(torch.func.grad(slope))(xs)


def main() -> None:
    """Compare the three frameworks; those that are not installed are left out."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("kernel.py: skipped, there is no C++ compiler (c++, g++ or clang++)")
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    ways: dict[str, Callable[[np.ndarray], Any]] = {"corejax": in_corejax, "jax": in_jax, "torch": in_torch}
    with tempfile.TemporaryDirectory() as directory:
        build(compiler, Path(directory))
        print("log cosh:", np.round(corejax.jit(log_cosh_p.bind)(x), 3))
        for name, way in ways.items():
            if find_spec(name) is None or (name != "corejax" and find_spec(f"corejax_to_{name}") is None):
                print(f"{name}: skipped, it needs {name} and corejax-to-{name}")
                continue
            slope, curvature = (np.asarray(y) for y in way(x))
            np.testing.assert_allclose(slope, np.tanh(x), rtol=1e-5)
            np.testing.assert_allclose(curvature, 1 - np.tanh(x) ** 2, rtol=1e-4, atol=1e-6)
            print(f"{name}: slope {np.round(slope, 3)}, curvature {np.round(curvature, 3)}")


if __name__ == "__main__":
    main()
