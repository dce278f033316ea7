"""What people wait for in a new process: imports, tracing, lowering and compiling of typical programs, beside jax.

    python benchmarks/first_result.py                      # all programs
    python benchmarks/first_result.py transformer loop     # programs whose name contains one of the words
    python benchmarks/first_result.py --rounds 5 --json first.json

Each number is from a new process with one of the two libraries, the two in turn: "cold" without a cache of compiled
programs, "disk" with the library's own cache, which an earlier process filled. A first result is the first call of a
jitted function, and without its run it is what compiling takes; "trace" and "lower" are the parts of it that a second
function takes, when all modules are imported. "run" is the least of five later calls, and "process" is everything from
the start to the first result. Numbers are CPU times of the process with its threads, so that other work on the machine
disturbs them less, and the least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
from typing import Any

import timing

_COMMON = """
import time
started = time.process_time()
import json, sys
import numpy as np
import {lib} as lib
import {lib}.numpy as jnp
from {lib} import lax

rng = np.random.default_rng(0)


def array(*shape):
    return (0.1 * rng.normal(size=shape)).astype(np.float32)


{program}

lib.block_until_ready(lib.jit(lambda x: x + 1)(np.ones(3, np.float32)))  # imports what each first compilation does


def timed(call):
    begun = time.process_time()
    result = call()
    return result, time.process_time() - begun


fun = lib.jit(step)
_, first = timed(lambda: lib.block_until_ready(fun(*args)))
process = time.process_time() - started
run = min(timed(lambda: lib.block_until_ready(fun(*args)))[1] for _ in range(5))
lib.clear_caches()
traced, trace = timed(lambda: lib.jit(step).trace(*args))
lowered, lower = timed(traced.lower)
found = {{"first result": first, "without the run": max(first - run, 0.0), "trace": trace, "lower": lower, "run": run}}
found["process"] = process
found["text"] = len(lowered.as_text()) / 1e6
print(json.dumps(found))
"""

_TRANSFORMER = """
LAYERS, WIDTH, HEADS, LENGTH, WORDS = 24, 32, 4, 16, 64


def normal(x, scale):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def block(layer, x):
    y = normal(x, layer["scales"][0])
    q, k, v = jnp.split(y @ layer["qkv"], 3, -1)
    q, k, v = (jnp.reshape(z, (*z.shape[:2], HEADS, -1)) for z in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32((WIDTH // HEADS) ** 0.5)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    y = jnp.einsum("bhqk,bkhd->bqhd", lib.nn.softmax(scores, -1), v)
    x = x + jnp.reshape(y, x.shape) @ layer["out"]
    y = normal(x, layer["scales"][1])
    return x + lib.nn.gelu(y @ layer["up"]) @ layer["down"]


def loss(params, tokens):
    x = params["words"][tokens] + params["places"]
    for layer in params["layers"]:
        x = block(layer, x)
    logits = lib.nn.log_softmax(x @ params["words"].T, -1)[:, :-1]
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def step(params, tokens):
    value, grads = lib.value_and_grad(loss)(params, tokens)
    return value, lib.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def layer():
    return {
        "scales": np.ones((2, WIDTH), np.float32), "qkv": array(WIDTH, 3 * WIDTH), "out": array(WIDTH, WIDTH),
        "up": array(WIDTH, 4 * WIDTH), "down": array(4 * WIDTH, WIDTH),
    }


params = {"words": array(WORDS, WIDTH), "places": array(LENGTH, WIDTH), "layers": [layer() for _ in range(LAYERS)]}
args = params, rng.integers(0, WORDS, size=(4, LENGTH)).astype(np.int32)
"""

_LOOP = """
def step(w, x):
    def loss(w):
        h = x
        for _ in range(100):
            h = jnp.tanh(h @ w) + 0.1 * h
        return jnp.mean(h**2)

    return lib.value_and_grad(loss)(w)


args = array(64, 64), array(32, 64)
"""

_PROCESS = """
def step(params, x, y):
    def loss(params):
        distances = jnp.sum((x[:, None] - x[None]) ** 2, -1) / jnp.exp(params["length"]) ** 2
        kernel = jnp.exp(params["scale"] - 0.5 * distances) + (1e-2 + jnp.exp(params["noise"])) * jnp.eye(len(x))
        factor = jnp.linalg.cholesky(kernel)
        z = lib.scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * z @ z + jnp.sum(jnp.log(jnp.diag(factor)))

    value, grads = lib.value_and_grad(loss)(params)
    return value, lib.tree.map(lambda p, g: p - 0.01 * g, params, grads)


import {lib}.scipy.linalg
args = {name: np.float32(0.5) for name in ("length", "scale", "noise")}, array(1000, 3), array(1000)
"""

_SOLVER = """
A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
     [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
     [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]]
B = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525]


def field(params, t, y):
    for w in params:
        y = jnp.tanh(y @ w) + 0.01 * t
    return y


def solve(params, y0, end):
    def body(state):
        t, y, h, count = state
        h = jnp.minimum(h, end - t)
        slopes = []
        for row in A:
            slopes.append(field(params, t, y + h * sum((a * k for a, k in zip(row, slopes)), jnp.zeros_like(y))))
        new = y + h * sum(b * k for b, k in zip(B, slopes))
        error = jnp.max(jnp.abs(h * sum(e * k for e, k in zip(ERROR, slopes)))) / 1e-4 + 1e-10
        fits = error <= 1
        factor = jnp.clip(0.9 * error**-0.2, 0.2, 5.0)
        return jnp.where(fits, t + h, t), jnp.where(fits, new, y), h * factor, count + 1

    start = (jnp.float32(0), y0, jnp.float32(0.1), 0)
    return lax.while_loop(lambda state: (state[0] < end) & (state[3] < 1000), body, start)[1]


def step(params, y0):
    saved = [y0]
    for i in range(4):
        saved.append(solve(params, saved[-1], jnp.float32(i + 1)))
    value, slopes = lib.jvp(lambda y: jnp.sum(solve(params, y, jnp.float32(1)) ** 2), (y0,), (jnp.ones_like(y0),))
    return jnp.stack(saved), value, slopes


args = [array(8, 64), array(64, 64), array(64, 8)], array(8)
"""

PROGRAMS = {
    "step of a transformer of 24 layers": _TRANSFORMER,
    "gradient of a loop of 100 unrolled steps": _LOOP,
    "gradient step of a Gaussian process of 1,000 points": _PROCESS,
    "adaptive solver": _SOLVER,
}
WANTED = {"cold": 0.9, "disk": 0.15}


def program_of(text: str, lib: str) -> str:
    """Return the program of a process that measures with one of the libraries."""
    return _COMMON.format(lib=lib, program=text.replace("{lib}", lib))


def found_by(text: str, lib: str, cache: str) -> dict[str, float]:
    """Run a process; `cache` is the folder of the library's cache, "" for none."""
    variables = {
        "COREJAX_COMPILATION_CACHE_DIR": cache,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_ENABLE_COMPILATION_CACHE": "true" if cache else "false",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",  # its threads spin while they wait, which would count as CPU time of the process
    }
    return dict(json.loads(timing.output_of(program_of(text, lib), **variables).splitlines()[-1]))


def measured(text: str, rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Return the least of each number: library -> "cold" or "disk" -> name -> seconds."""
    libs = ("corejax", "jax")
    rows: dict[tuple[str, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for lib in libs:
            found_by(text, lib, f"{directory}/{lib}")  # fills the cache, and compiles the modules of the library
        for _ in range(rounds):
            for lib in libs:
                rows.setdefault((lib, "cold"), []).append(found_by(text, lib, ""))
                rows.setdefault((lib, "disk"), []).append(found_by(text, lib, f"{directory}/{lib}"))
    return {
        lib: {how: {name: min(row[name] for row in rows[lib, how]) for name in rows[lib, how][0]} for how in WANTED}
        for lib in libs
    }


def lines_of(name: str, found: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Return the rows of a table about a program: with both libraries, each beside jax cold."""
    ours, theirs = found["corejax"], found["jax"]
    lines = [f"{name} (StableHLO: {ours['cold']['text']:.2f} MB, jax {theirs['cold']['text']:.2f} MB)"]
    for part in ("without the run", "first result", "trace", "lower", "run", "process"):
        numbers = [ours["cold"][part], theirs["cold"][part], ours["disk"][part], theirs["disk"][part]]
        ratios = numbers[0] / numbers[1], numbers[2] / numbers[1], numbers[2] / numbers[3]
        shown = "".join(f"{1000 * x:10.1f}" for x in numbers) + "".join(f"{x:10.2f}" for x in ratios)
        lines.append(f"  {part:15}{shown}")
    return lines


HEADER = f"{'':17}" + "".join(
    f"{word:>10}" for word in ("cold", "jax cold", "disk", "jax disk", "cold/cold", "disk/cold", "disk/disk")
)


def main() -> None:
    """Measure, print, and write JSON where asked."""
    parser = argparse.ArgumentParser(description="first results of new processes, beside jax (milliseconds of CPU)")
    parser.add_argument("words", nargs="*", help="only programs whose name contains one of these")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default 3)")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there too")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    print(f"{HEADER}\nwanted without the run: cold/cold {WANTED['cold']}, disk/cold {WANTED['disk']}", flush=True)
    for name, text in PROGRAMS.items():
        if not options.words or any(word in name for word in options.words):
            results[name] = measured(text, options.rounds)
            print("\n".join(lines_of(name, results[name])), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
