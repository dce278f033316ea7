"""Run the checks of README.md on the GPU of this machine, each step in a process of its own, and print a table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CLI = [sys.executable, "-m", "corejax"]

LOAD = """
import sys, corejax
device = corejax.devices()[0]
assert device.platform == "{platform}", f"the first device is {{device}}"
x = corejax.jit(lambda x: x @ x)(corejax.device_put(corejax.numpy.eye(256), device))
assert x.devices() == {{device}} and float(x.sum()) == 256
assert "jax" not in sys.modules, "jax was imported"
print(getattr(device, "device_kind", device), "- jaxlib", __import__("jaxlib").__version__)
"""

DLPACK = """
import corejax, corejax.numpy as jnp
try:
    import torch
except ImportError:
    print("no PyTorch here"); raise SystemExit
device = corejax.devices()[0]
x = corejax.jit(lambda x: x * 2)(corejax.device_put(jnp.arange(8.0), device))
tensor = torch.from_dlpack(x)
assert tensor.device.type == ("cuda" if device.platform == "cuda" else "cpu"), tensor.device
assert tensor.data_ptr() == x.unsafe_buffer_pointer(), "the tensor is a copy"
back = jnp.from_dlpack(torch.arange(8.0, device=tensor.device) * 3)
assert back.devices() == {device} or device.platform == "cpu", back.devices()
assert back.tolist() == [3.0 * i for i in range(8)]
print("shared in both directions, torch", torch.__version__)
"""

# Words in the names of benchmarks: compiled steps that a GPU is for.
ROWS = ["compiled matmul of 1024", "compiled train step", "compiled gradient of a transformer", "compiled convolution",
        "compiled attention", "compiled gradient of 1,000 RNN", "compiled sort", "compiled fft2"]  # fmt: skip


class Step(NamedTuple):
    """A step: its name, the seconds that it may take, and a function of the platform that returns what it showed."""

    name: str
    limit: int
    run: Callable[[str, int], str]


class Failed(Exception):
    """A step's process failed; the message is the end of its output."""


def output(command: list[str], limit: int, allowed: tuple[int, ...] = (0,)) -> str:
    """Return the output of a command.

    Raises:
        Failed: its exit status is not one that is allowed, or it took longer than `limit` seconds.
    """
    env = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "COREJAX_COMPILATION_CACHE": "off"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise Failed(f"took longer than {limit} s") from None
    if done.returncode not in allowed:
        raise Failed(" ".join((done.stdout + done.stderr).split())[-600:])
    return done.stdout


def load(platform: str, limit: int) -> str:
    """Find the device without jax, and multiply matrices on it."""
    return output([sys.executable, "-c", LOAD.format(platform=platform)], limit).strip()


def demo(platform: str, limit: int) -> str:
    """Train the demo's network; return the line with the accuracy."""
    lines = output([sys.executable, "examples/digits/train.py"], limit).splitlines()
    return next(line.strip() for line in reversed(lines) if "%" in line)


def primitives(platform: str, limit: int) -> str:
    """Verify the translation of each primitive against NumPy, on the default device, as many as the time allows.

    Primitives are verified in groups, by several processes at a time; a group holds primitives of all kinds.
    """
    listed = json.loads(output([*CLI, "list-primitives", "--json"], limit))["primitives"]
    names = [row["name"] for row in listed if row["plugin"] in ("lax_basic", "linalg", "fft")]
    count = max(1, len(names) // 12)
    groups = [names[i::count] for i in range(count)]
    until = time.monotonic() + limit

    def verify(group: list[str]) -> list[str]:
        seconds = int(until - time.monotonic())
        if seconds <= 0:
            return []
        try:
            text = output([*CLI, "verify", *group, "--check", "xla", "--quick", "--json"], seconds, allowed=(0, 1))
        except Failed as failure:
            if "took longer" in str(failure):
                return []
            raise
        return [f"{row['primitive']} {row['status']}" for row in json.loads(text)["results"]]

    with ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 2) // 2))) as pool:
        rows = [row for found in pool.map(verify, groups) for row in found]
    wrong = sorted(row.split()[0] for row in rows if row.endswith(" failed"))
    said = f"{len(rows) - len(wrong)} of {len(names)} primitives agree with NumPy, {len(names) - len(rows)} not reached"
    if wrong:
        raise Failed(f"{said}; wrong: {', '.join(wrong)} (corejax verify NAME --check xla)")
    return said


def benchmark(platform: str, limit: int) -> str:
    """Time compiled steps beside jax's."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        output([sys.executable, "benchmarks/run.py", *ROWS, "--rounds", "5", "--json", file.name], limit)
        rows = json.loads(Path(file.name).read_text())["results"]
    lines = []
    for row in rows:
        ours, theirs = 1e3 * row["corejax_s"], 1e3 * row["jax_s"]
        lines.append(f"{row['case']}: {ours:.3g} ms, jax {theirs:.3g} ms, ratio {row['ratio']:.2f}")
    return "; ".join(lines)


def dlpack(platform: str, limit: int) -> str:
    """Share memory with PyTorch."""
    return output([sys.executable, "-c", DLPACK], limit).strip()


STEPS = [
    Step("load", 60, load),
    Step("demo", 90, demo),
    Step("dlpack", 60, dlpack),
    Step("benchmark", 120, benchmark),
    Step("primitives", 240, primitives),
]


def main() -> int:
    """Run the steps, print and write the table; return 1 if a step failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="cuda", help="the platform that is expected (default: cuda)")
    parser.add_argument("steps", nargs="*", help=f"only these: {', '.join(step.name for step in STEPS)}")
    arguments = parser.parse_args()
    lines = ["| step | seconds | result |", "| --- | --- | --- |"]
    failed = False
    for step in STEPS:
        if arguments.steps and step.name not in arguments.steps:
            continue
        started = time.monotonic()
        try:
            result = step.run(arguments.platform, step.limit)
        except Failed as failure:
            failed, result = True, f"FAILED: {failure}"
        lines.append(f"| {step.name} | {time.monotonic() - started:.0f} | {result.replace('|', '/')} |")
        print(lines[-1], flush=True)
    Path(os.environ.get("OUT", "."), "gpu.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
