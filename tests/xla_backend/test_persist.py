"""`jit(f, persist=True)`: later processes do not trace the function, unless something that it reaches changed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import compilation_cache
from corejax_xla_backend._jit.reach import UnseenError, digest_of
from corejax_xla_backend._xla.program_files import SUFFIX

X = np.float32([1, 2, 3])

MODULE = """
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import corejax
import corejax.numpy as jnp
import numpy as np
import persist_helper
from persist_helper import act

SCALE = 3.0
WEIGHTS = np.float32([1.0, 2.0, 3.0])
TABLE = {"act": act}


class Pair(NamedTuple):
    x: object
    y: object


@corejax.jit
def inner(x):
    return jnp.sin(x) * WEIGHTS


@corejax.custom_jvp
def twice(x):
    return 2 * x


@twice.defjvp
def twice_jvp(primals, tangents):
    return twice(*primals), 2 * tangents[0]


def step(x, n=1):
    for _ in range(n):
        x = persist_helper.act(inner(x)) * SCALE
    value, slope = corejax.value_and_grad(lambda x: jnp.sum(twice(corejax.checkpoint(inner)(x))))(x)
    return Pair(TABLE["act"](x), {"value": value, "slope": slope})


def closing_over(value):
    return lambda x: x * value


class Model:
    def __init__(self, rate):
        self.rate = rate

    def step(self, x):
        return x * self.rate


def outside(x):
    import persist_helper as helper

    return helper.act(x)


def printing(x):
    corejax.debug.print("{}", x)
    return x


def wrong(x):
    raise ValueError("as it says")
"""
HELPER = """
import corejax.numpy as jnp

def act(x):
    return jnp.tanh(x)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """Write both modules, with replacements in their text, and import them as a new process would."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("persist_helper", "persist_module")

    def write(*replacements: tuple[str, str]) -> ModuleType:
        for name, text in zip(names, (HELPER, MODULE), strict=True):
            for old, new in replacements:
                text = text.replace(old, new)
            (tmp_path / f"{name}.py").write_text(text)
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("persist_module")

    settings = {"compilation_cache_dir": str(tmp_path / "cache"), "persistent_cache_min_compile_time_secs": 0.0}
    with corejax.config.override(**settings):
        yield write
    for name in names:
        sys.modules.pop(name, None)


def events(fun: Any, *args: Any, **options: Any) -> tuple[list[str], Any]:
    """Run a function as in a new process; return the kinds of what `jit` did for it, and the result."""
    corejax.clear_caches()
    explanation = corejax.explain(corejax.jit(fun, persist=True, **options))(*args)
    name = getattr(fun, "__name__", "")
    return [event.kind for event in explanation.jit if event.name == name], explanation.result


def is_traced(fun: Any, *args: Any, **options: Any) -> bool:
    kinds, _ = events(fun, *args, **options)
    assert kinds in (["trace", "compile"], ["persist", "compile"])
    return kinds[0] == "trace"


def test_the_second_time_it_is_not_traced_and_read_from_the_cache(write: Callable[..., ModuleType]) -> None:
    kinds, first = events(write().step, X)
    assert kinds == ["trace", "compile"]
    compilation_cache.reset_cache()
    module = write()
    kinds, second = events(module.step, X)
    assert kinds == ["persist", "compile"]
    assert compilation_cache.stats()[3:] == (1, 0)  # the compiled program is there, too
    assert type(second) is module.Pair
    with corejax.config.override(compilation_cache=False):
        right = corejax.jit(module.step)(X)
    for result in (first, second):
        corejax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), tuple(result), tuple(right))


def test_calls_after_the_first_and_transformations(write: Callable[..., ModuleType]) -> None:
    for _ in range(2):
        module = write()
        f = corejax.jit(module.Model(2.0).step, persist=True)
        for _ in range(3):
            np.testing.assert_array_equal(f(X), 2 * X)
        np.testing.assert_array_equal(corejax.vmap(f)(X), 2 * X)
        np.testing.assert_array_equal(corejax.grad(lambda x, f=f: f(x).sum())(X), 2 * np.ones(3))
        assert corejax.jit(f)(X)[0] == 2 and f.lower(X).as_text()
        assert f.eval_shape(X).shape == (3,)
        corejax.clear_caches()


def test_what_is_changed_is_traced_anew(write: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_traced(write().step, X)
    assert not is_traced(write().step, X)
    assert is_traced(write(("SCALE = 3.0", "SCALE = 4.0")).step, X), "a constant"
    assert is_traced(write(("jnp.sin", "jnp.cos")).step, X), "a function"
    assert is_traced(write(("jnp.tanh", "jnp.sin")).step, X), "a helper's module"
    assert is_traced(write().step, np.stack([X, X])), "types"
    assert is_traced(write().step, X, 2, static_argnums=1), "a static argument"
    assert not is_traced(write().step, X, 2, static_argnums=1)
    with corejax.default_matmul_precision("float32"):
        assert is_traced(write().step, X), "a setting"
    assert not is_traced(write().step, X)
    with monkeypatch.context() as patched:
        patched.setenv("COREJAX_ACME_LEVEL", "2")  # of a plugin that may be loaded while the function is traced
        assert is_traced(write().step, X), "a setting in the environment"
    assert not is_traced(write().step, X)


def test_values_that_the_source_does_not_show(write: Callable[..., ModuleType]) -> None:
    def changed(name: str, value: Any) -> bool:
        module = write()
        setattr(module, name, value)
        return is_traced(module.step, X)

    assert is_traced(write().step, X)
    assert changed("SCALE", 5.0) and not changed("SCALE", 5.0)
    assert changed("WEIGHTS", np.float32([1, 1, 2]))
    assert changed("TABLE", {"act": lambda x: x})
    write().persist_helper.act = corejax.numpy.cos
    module = importlib.import_module("persist_module")
    assert is_traced(module.step, X)


def test_closures_and_bound_methods(write: Callable[..., ModuleType]) -> None:
    for value in (2.0, 3.0, np.float32([1, 2, 3]), np.float32([1, 2, 4]), corejax.numpy.ones(3)):
        assert is_traced(write().closing_over(value), X)
        assert not is_traced(write().closing_over(value), X)
    for rate in (1.0, 2.0):
        assert is_traced(write().Model(rate).step, X)
        assert not is_traced(write().Model(rate).step, X)


def test_constants_are_part_of_an_entry(write: Callable[..., ModuleType]) -> None:
    large = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    for kinds in (["trace", "compile"], ["persist", "compile"]):
        found, result = events(write().closing_over(large), X)
        assert found == kinds
        np.testing.assert_array_equal(result, large * X)


def test_one_that_is_not_persisted_says_why(write: Callable[..., ModuleType]) -> None:
    module = write()

    def reason(fun: Any) -> str:
        f = corejax.jit(fun, persist=True)
        with pytest.warns(RuntimeWarning) as warned:
            explanation = corejax.explain(f)(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(X[:2])  # warned of once
        message = str(warned[0].message)
        name, _, text = message.partition(": persist=True has no effect, because ")
        assert name.startswith("jit of ")
        assert [e.reasons for e in explanation.jit if e.kind == "persist"] == [(message.partition(": ")[2],)]
        return text

    holder = module.Model(2.0)
    holder.lock = threading.Lock()
    assert reason(holder.step) == "function.lock is of type _thread.lock, which has no digest"
    assert "imports 'persist_helper' in its body" in reason(module.outside)
    assert "calls back into Python" in reason(module.printing)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("f = lambda x: x + 1", namespace)
    assert reason(namespace["f"]) == "<lambda> is defined in __main__, not in a module file"


def test_a_closure_variable_is_named(write: Callable[..., ModuleType]) -> None:
    lock = threading.Lock()
    with pytest.raises(
        UnseenError, match=r"the closure variable 'value' of closing_over\.<locals>\.<lambda> is of type"
    ):
        digest_of(function=write().closing_over(lock))


def test_errors_of_the_function_are_its_own(write: Callable[..., ModuleType]) -> None:
    with pytest.raises(ValueError, match="as it says"):
        corejax.jit(write().wrong, persist=True)(X)


def test_damaged_and_foreign_entries_are_written_again(write: Callable[..., ModuleType], tmp_path: Path) -> None:
    assert is_traced(write().step, X)
    (entry,) = (tmp_path / "cache").glob(f"trace_*{SUFFIX}")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-10])
    assert is_traced(write().step, X)
    assert not is_traced(write().step, X)
    from corejax_xla_backend._xla.program_files import current_files

    files = current_files()
    assert files is not None
    files.write(entry.name.removesuffix(SUFFIX), b"no pickle")
    assert is_traced(write().step, X)


def test_without_a_cache_it_is_traced_in_silence(write: Callable[..., ModuleType]) -> None:
    with corejax.config.override(compilation_cache=False):
        assert is_traced(write().step, X) and is_traced(write().step, X)


def test_first_tier_and_precompile(write: Callable[..., ModuleType]) -> None:
    for _ in range(2):
        f = corejax.jit(write().step, persist=True, tier="auto")
        corejax.precompile(f, corejax.ShapeDtypeStruct((3,), np.float32))
        compilation_cache.reset_cache()
        f(X)
        assert compilation_cache.stats()[3:] == (0, 0)  # it was compiled before
        corejax.clear_caches()


SECOND_PROCESS = """
import numpy as np, corejax, persist_module
explanation = corejax.explain(corejax.jit(persist_module.step, persist=True))(np.float32([1, 2, 3]))
print(*(event.kind for event in explanation.jit if event.name == "step"))
"""


def test_a_second_process_does_not_trace(write: Callable[..., ModuleType], tmp_path: Path) -> None:
    write()
    said = []
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "COREJAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        }
        command = [sys.executable, "-W", "error", "-c", SECOND_PROCESS]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split())
    assert said == [["trace", "compile"], ["persist", "compile"]]
