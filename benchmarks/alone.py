"""What is measured in processes that have one of the two libraries, in turn: calls, imports, first results, tracing.

With jax in the process, whose setting for 64-bit types every dispatcher follows from then on, corejax makes buffers of
NumPy arrays and Python numbers itself: calls with these cost more than where jax is not imported.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence

import timing

_CALLS = """
import json, sys, time
import numpy as np
import {0} as lib


def best(call, count=200, rounds=100):
    call(), call(), call()
    least = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        least = min(least, (time.perf_counter() - start) / count)
    return least


add = lib.jit(lambda x, y: x + y)
own = lib.jit(lambda x: x + 0)
leaves = lib.jit(lambda xs: [x + 1 for x in xs])
given = np.ones(8, np.float32)
a, b = own(given), own(given)
several = [own(given) for _ in range(100)]
print(json.dumps([
    best(lambda: add(a, b)),
    best(lambda: add(given, given)),
    best(lambda: add(a, 2.0)),
    best(lambda: add(3, 2.0)),
    best(lambda: leaves(several), 20),
]))
"""

_FIRST = """
import time

start = time.perf_counter()

import gc, json, resource
import numpy as np
import {0} as lib
import {0}.numpy as jnp

rng = np.random.default_rng(0)
sizes = ((784, 256), (256, 128), (128, 10))
params = [(rng.normal(size=s).astype(np.float32), np.zeros(s[1], np.float32)) for s in sizes]
x = rng.normal(size=(32, 784)).astype(np.float32)


def network(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean(x**2)


def first(function, *args):
    gc.collect()  # when all objects are next looked at is nothing that a function takes
    gc.freeze()
    start = time.perf_counter()
    lib.block_until_ready(function(*args))
    return time.perf_counter() - start


def private():
    try:
        with open("/proc/self/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) / 1024
    except OSError:  # no Linux
        return 0.0


lib.block_until_ready(lib.jit(jnp.sin)(x[0]))  # corejax imports jaxlib when something is first compiled
compiled = time.perf_counter() - start
small = first(lib.jit(lambda x: x * 2 + 1), x)
peak, own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, private()
gradient = first(lib.jit(lib.value_and_grad(network)), params, x)
print(json.dumps([small, gradient, peak, own, compiled]))
"""

_EARLY = _FIRST.replace("lib.value_and_grad(network))", 'lib.value_and_grad(network), tier="auto")').replace(
    "small = first(lib.jit(lambda x: x * 2 + 1), x)", "small = 0.0"
)


def _both(program: str, other: str, rounds: int) -> tuple[list[float], list[float]]:
    """Least of each number that the programs print, corejax's and jax's, run in turn."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(json.loads(timing.output_of(program.format("corejax")).splitlines()[-1]))
        theirs.append(json.loads(timing.output_of(other.format("jax")).splitlines()[-1]))
    return [min(column) for column in zip(*ours, strict=True)], [min(column) for column in zip(*theirs, strict=True)]


def calls(rounds: int) -> list[timing.Result]:
    """Jitted calls, by what they are given."""
    names = (
        ("on two device arrays", 1.05),
        ("on two NumPy arrays", 1.05),
        ("on an array and a Python number", 1.1),
        ("on two Python numbers", 1.1),
        ("on 100 arrays", 1.2),
    )
    ours, theirs = _both(_CALLS, _CALLS, rounds)
    return [
        timing.Result(f"jitted call {name}, alone", a, b, wanted)
        for (name, wanted), a, b in zip(names, ours, theirs, strict=True)
    ]


def first_results(rounds: int) -> list[timing.Result]:
    """First calls, compilation and all; memory of an import and a small compiled function."""
    ours, theirs = _both(_FIRST, _FIRST, rounds)
    early, theirs_again = _both(_EARLY, _FIRST, rounds)
    names = (
        ("first call of a small function", 0.75, "s"),
        ("first call of the gradient of a network", 0.85, "s"),
        ("memory of import and a small function", 0.65, "MiB"),
        ("the same memory without pages of libraries", 0.65, "MiB"),
        ("import and the first compiled function", None, "s"),
    )
    found = [
        timing.Result(name, a, b, w, None, unit) for (name, w, unit), a, b in zip(names, ours, theirs, strict=True)
    ]
    return [*found, timing.Result('the same gradient, tier="auto"', early[1], theirs_again[1], 0.15)]


def cached_results(rounds: int) -> list[timing.Result]:
    """Time a gradient in a new process with the cache on disk, beside jax without and with its cache."""
    with tempfile.TemporaryDirectory() as directory:
        caches = {
            "COREJAX_COMPILATION_CACHE_DIR": f"{directory}/corejax",
            "COREJAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_COMPILATION_CACHE_DIR": f"{directory}/jax",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }

        def gradient(lib: str, **variables: str) -> float:
            return float(json.loads(timing.output_of(_FIRST.format(lib), **variables).splitlines()[-1])[1])

        for lib in ("corejax", "jax"):
            gradient(lib, **caches)
        times = [
            (gradient("corejax", **caches), gradient("jax"), gradient("jax", **caches)) for _ in range(max(3, rounds))
        ]
    ours, cold, theirs = (min(column) for column in zip(*times, strict=True))
    name = "the same gradient in a new process, cached on disk"
    return [timing.Result(name, ours, cold, 0.15), timing.Result(f"{name}, beside jax's cache", ours, theirs, None)]


_IMPORT = """
import os
os.environ.update({0})
import corejax
import sys
assert not [m for m in sys.modules if m.startswith(("corejax_", "scipy", "jaxlib"))]
"""
_FIRST_PLUGINS = {"COREJAX_PLUGINS": "lax_basic,numpy_api,control_flow,xla_backend"}


def _started(programs: Sequence[str], rounds: int) -> list[float]:
    """Return the least time of new processes for each program; the programs run in turn."""
    times = [[timing.process_time(program, 2) for program in programs] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def imports(rounds: int) -> list[timing.Result]:
    """`import corejax` with all plugins that are installed, beside the first four: it loads none of them."""
    everything, few = _started([_IMPORT.format(names) for names in ({}, _FIRST_PLUGINS)], rounds)
    return [timing.Result("import of corejax with all plugins, beside four of them", everything, few, 1.05)]


_OPERATION = "import {0}.numpy as jnp; import numpy as np; x = jnp.asarray(np.ones(8, np.float32)); x + x"


def first_operation(rounds: int) -> list[timing.Result]:
    """Import `numpy` of a library, and add two arrays."""
    ours, theirs = _started([_OPERATION.format(lib) for lib in ("corejax", "jax")], rounds)
    return [timing.Result("import and first op", ours, theirs, 0.3)]


_USE = """
import time
import numpy as np
import corejax, corejax.numpy as jnp
jnp.ones(3) + 1
x = np.ones(3, np.float32)
start = time.process_time()
{0}
print(time.process_time() - start)
"""
_FIRST_JIT = "corejax.block_until_ready(corejax.jit(lambda x: x + 1)(x))"
_JAXLIB = "import jaxlib.mlir.dialects.stablehlo, jaxlib.mlir.ir, jaxlib.xla_client"


def first_use(rounds: int) -> list[timing.Result]:
    """CPU time of the first use of `jit` after a first operation, beside jaxlib's own import: 120 ms more at most."""
    programs = [_USE.format(part) for part in (_FIRST_JIT, _JAXLIB)]
    times = [[float(timing.output_of(program)) for program in programs] for _ in range(rounds)]
    use, own = map(min, zip(*times, strict=True))
    return [timing.Result("first use of jit without jaxlib's import, beside 120 ms", use - own, 0.12, 1.0)]


_LENGTHS = """
import json, time
import numpy as np
import {0} as lib
import {0}.numpy as jnp
from {0} import lax


def chain(count):
    def f(x):
        for _ in range(count // 2):
            x = lax.mul(lax.sin(x), x)
        return x

    return f


def tracing(count):
    f = chain(count)
    start = time.process_time()
    lib.make_jaxpr(f)(x)
    return time.process_time() - start


x = jnp.asarray(np.arange(8, dtype=np.float32) / 8)
print(json.dumps([min(tracing(count) for _ in range(5)) for count in (2000, 20000)]))
"""


def lengths(rounds: int) -> list[timing.Result]:
    """CPU time of tracing 20,000 equations beside 2,000, by each library."""
    both = _both(_LENGTHS, _LENGTHS, rounds)
    name = "tracing 20,000 against 2,000 equations"
    return [
        timing.Result(f"{name}{which}", long, short, wanted)
        for which, wanted, (short, long) in zip(("", ", jax"), (10.2, None), both, strict=True)
    ]


CASES: dict[str, Callable[[int], list[timing.Result]]] = {
    "import and first op": first_operation,
    "import of corejax": imports,
    "first use of jit": first_use,
    "jitted calls, alone": calls,
    "first results": first_results,
    "cached on disk": cached_results,
    "tracing 20,000 against 2,000 equations": lengths,
}
