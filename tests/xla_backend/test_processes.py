"""Forks, exits and modules called jax: in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

BEGIN = """
import os, sys, threading
import numpy as np
import corejax
import corejax.numpy as jnp
X = np.arange(3, dtype=np.float32)
"""


def run(code: str) -> str:
    """What a program prints; it has to end by itself, without an error, and with nothing on the other channel."""
    done = subprocess.run(
        # From 3.12 on, Python warns of every fork of a process that has threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


# -- forks -----------------------------------------------------------------------------------------

FORKED = """
def attempt(fun):
    try:
        return repr(fun())
    except RuntimeError as error:
        return f"{type(error).__name__}: {'spawn' in str(error)}"

def in_fork(child):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        child()
        sys.exit(0)  # everything is taken down as usual
    assert os.waitpid(pid, 0)[1] == 0
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this platform")


# Runs each case in a process of its own: a fork of one that has imported corejax and compiled nothing.
EACH_IN_A_FORK = """
def run_in_fork(child):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    os.dup2(1, 2)
    exec(child, globals())
    sys.exit(0)

for case, child in cases.items():
    print("--", case, flush=True)
    print("status", run_in_fork(child), flush=True)
"""


def run_each(begin: str, cases: dict[str, str], result: str) -> None:
    """Run cases, each of which has to end without an error, having printed the result."""
    said = run(f"{begin}\ncases = {cases!r}\n{EACH_IN_A_FORK}")
    assert said == "".join(f"-- {case}\n{result}status 0\n" for case in cases)


@needs_fork
def test_a_fork_after_a_compilation_is_told_at_once() -> None:
    code = """
corejax.config.update("cpu_enable_async_dispatch", True)  # or nothing would be pending
f, g = corejax.jit(lambda x: x * 2), corejax.jit(lambda x: x + 1)
slow = corejax.jit(lambda x: x @ x)
y = f(X)
y = f(X).block_until_ready()
compiled = f.lower(X).compile()
pending = slow(jnp.ones((2000, 2000)))

def child():
    print("eager", attempt(lambda: np.asarray(jnp.sin(0 * y) + X + y).tolist()))
    print("gradient", attempt(lambda: corejax.grad(lambda x: (x * x).sum())(y).tolist()))
    print("traced", attempt(lambda: len(corejax.make_jaxpr(g)(X).eqns)))
    print("same", attempt(lambda: f(X)))
    print("again", attempt(lambda: f(X)))
    print("other", attempt(lambda: g(X)))
    print("compiled", attempt(lambda: compiled(X)))
    print("vmapped", attempt(lambda: corejax.vmap(f)(np.ones((2, 3), np.float32))))
    print("put", attempt(lambda: corejax.device_put(X)))
    print("pending", attempt(lambda: np.asarray(pending)))
    print("wait", attempt(lambda: pending.block_until_ready()))

in_fork(child)
print("parent", f(X), g(X), float(pending[0, 0]))
"""
    refused = [f"{what} BackendError: True" for what in ("same", "again", "other", "compiled", "vmapped", "put")]
    wanted = ["eager [0.0, 3.0, 6.0]", "gradient [0.0, 4.0, 8.0]", "traced 1", *refused]
    wanted += ["pending BackendError: True", "wait BackendError: True", "parent [0. 2. 4.] [1. 2. 3.] 2000.0"]
    assert run(FORKED + code).splitlines() == wanted


@needs_fork
def test_large_operations_go_on_after_a_fork() -> None:
    code = """
big = jnp.ones(1 << 18)
y = jnp.tanh(big)  # compiled

def child():
    print("child", attempt(lambda: float(y[0])), attempt(lambda: round(float(jnp.exp(y * 0 + 1).sum()) / big.size, 4)))

in_fork(child)
print("parent", round(float(jnp.exp(y * 0 + 1).sum()) / big.size, 4))
"""
    child, parent = run(FORKED + code).splitlines()
    assert child.startswith("child 0.7615") and child.endswith("2.7183")
    assert parent == "parent 2.7183"


@needs_fork
def test_a_fork_before_the_first_compilation_compiles() -> None:
    code = """
f = corejax.jit(lambda x: x * 2)
in_fork(lambda: print("child", f(X)))
print("parent", f(X))
"""
    assert run(FORKED + code) == "child [0. 2. 4.]\nparent [0. 2. 4.]\n"


@needs_fork
def test_a_pool_of_forked_processes() -> None:
    code = """
import multiprocessing
print(corejax.jit(lambda x: x * 2)(X))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(abs, [-1, -2]))
    print(pool.apply(attempt, (corejax.devices,)))
"""
    assert run(FORKED + code).splitlines() == ["[0. 2. 4.]", "[1, 2]", "BackendError: True"]


# -- modules called jax ----------------------------------------------------------------------------

NOT_JAX = {
    "file": {"jax.py": "import_me = 1"},
    "raises": {"jax.py": "def __getattr__(name):\n    raise RuntimeError(name)"},
    "alike": {"jax/__init__.py": "", "jax/_src/__init__.py": "", "jax/_src/config.py": "", "jax/_src/api.py": ""},
}
CALLS = """
f = corejax.jit(lambda x: x * 2)
print(f(X), f(X), f(X), corejax.grad(lambda x: f(x).sum())(X), np.asarray(f(jnp.ones(1, "bfloat16"))))
"""
RESULTS = "[0. 2. 4.] [0. 2. 4.] [0. 2. 4.] [2. 2. 2.] [2]\n"


ENTRIES = {
    "none": "sys.modules['jax'] = None",
    "object": "sys.modules['jax'] = object()",
    # A folder without any Python, which another one on the path would win over.
    "namespace": "import types; sys.modules['jax'] = jax = types.ModuleType('jax'); jax.__path__ = ['/nowhere']",
}


@needs_fork
def test_a_module_called_jax_that_is_not_jax(tmp_path: Path) -> None:
    cases = {kind: f"{entry}\n{CALLS}" for kind, entry in ENTRIES.items()}
    for kind, texts in NOT_JAX.items():
        for name, text in texts.items():
            file = tmp_path / kind / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        cases[kind] = f"sys.path.insert(0, {str(tmp_path / kind)!r})\nimport jax\n{CALLS}"
    run_each("", cases, RESULTS)


# -- the end of the process, with daemon threads ---------------------------------------------------

THREADS = """
from corejax.extend import Primitive, ShapedArray

def in_thread(fun):
    threading.Thread(target=fun, daemon=True).start()

def deep(x, after=lambda: None):
    for i in range(150):
        x = jnp.sin(x) @ jnp.cos(x) if i % 2 else x * 1.01
    after()
    return x

def without_end(x):
    while True:
        x = x + 1
        entered.set()

def repeated(fun, *args):
    started = threading.Event()
    def loop():
        while True:
            fun(*args)
            started.set()
    in_thread(loop)
    started.wait()

def hold(x):
    entered.set()
    never.wait()
    return x

entered, never = threading.Event(), threading.Event()
hold_p = Primitive("acme.hold", impl=hold, abstract_eval=lambda x: ShapedArray(x.shape, x.dtype))
double = corejax.jit(lambda x: x * 2)
square = corejax.jit(lambda x: x @ x)
M = jnp.ones((200, 200))
"""
AT_EXIT = {
    "compiling": "in_thread(lambda: corejax.jit(lambda x: deep(x, entered.set))(M)); entered.wait()",
    "calling": "repeated(double, X)",
    "waiting": "repeated(lambda: np.asarray(square(M)))",
    "tracing": "in_thread(lambda: corejax.jit(hold)(X)); entered.wait()",
    "tracing without end": "in_thread(lambda: corejax.jit(without_end)(X)); entered.wait()",
    "computing": "square(square(jnp.ones((1200, 1200))))",
    "hooks": "import atexit; atexit.register(lambda: double(X)); repeated(double, X)",
    "hooks that compile": "import atexit; atexit.register(lambda: np.testing.assert_array_equal(double(X), 2 * X))",
}


SLOW_IMPORT = """
import atexit, time

class Slow:
    ended = False

    def find_spec(self, name, path=None, target=None):
        if name == "jaxlib._jax":
            entered.set()
            time.sleep(0.5)
            self.ended = True

entered, slow = threading.Event(), Slow()
sys.meta_path.insert(0, slow)
atexit.register(lambda: print(slow.ended))
threading.Thread(target=lambda: corejax.jit(lambda x: x * 2)(X), daemon=True).start()
entered.wait()
"""


# The thread is switched off just before it is counted, and goes on when the exit has begun.
LATE_ENTRY = """
import atexit, time
from corejax_xla_backend import _exit

class Late(set):
    def add(self, thread):
        while not _exit._exiting:
            entered.set()
            time.sleep(0.001)
        time.sleep(0.05)
        super().add(thread)

def enter():
    with _exit.inside():
        came.append("inside")

entered, came, _exit.busy = threading.Event(), [], Late()
atexit.unregister(_exit._before_exit)
atexit.register(lambda: print(came))
atexit.register(_exit._before_exit)
threading.Thread(target=enter, daemon=True).start()
entered.wait()
"""


@needs_fork
def test_processes_end_in_peace() -> None:
    run_each(THREADS, {case: f"{code}\nprint('end')" for case, code in AT_EXIT.items()}, "end\n")


def test_the_exit_waits_for_the_first_import_of_jaxlib_in_a_thread() -> None:
    """The import's C++ calls Python back, where Python must not end the thread."""
    assert run(SLOW_IMPORT) == "True\n"


def test_no_thread_enters_once_the_exit_has_begun() -> None:
    assert run(LATE_ENTRY) == "[]\n"
