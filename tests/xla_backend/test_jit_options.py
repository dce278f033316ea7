"""Options of `jit` and settings around it: what is kept, compiled how, logged, and not compiled at all."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, jit, lax, vmap
from corejax_xla_backend import _jaxlib

pytest.importorskip("jaxlib")

X = np.float32([1, 2, 3])


def test_keep_unused() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * 2

    text = jit(f, keep_unused=True).lower(X, X).as_text()
    assert text.count("%arg1: tensor<3xf32>") == 1 and "%arg1" not in jit(f).lower(X, X).as_text()
    kept = jit(f, keep_unused=True)
    for _ in range(2):
        np.testing.assert_array_equal(kept(X, X), 2 * X)


def test_compiler_options() -> None:
    options = {"xla_cpu_enable_fast_math": True, "xla_llvm_disable_expensive_passes": True}
    f = jit(lambda x: lax.sin(x), compiler_options=options)
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(grad(lambda x: lax.reduce_sum(f(x), (0,)))(X), np.cos(X), rtol=1e-5)
    np.testing.assert_allclose(vmap(f)(X), np.sin(X), rtol=1e-5)
    lowered = jit(lambda x: x + 1).lower(X)
    np.testing.assert_array_equal(lowered.compile(compiler_options=options)(X), X + 1)
    with pytest.raises(ValueError, match=r"jit of <lambda>: XLA rejects compiler_options \(nope=1\).*No such compile"):
        lowered.compile(compiler_options={"nope": 1})
    for wrong in ([1], {1: 2}, {"a": object()}):
        with pytest.raises(TypeError, match="compiler_options"):
            jit(lambda x: x, compiler_options=wrong)


def test_devices_that_are_none() -> None:
    device = corejax.devices()[0]
    with pytest.raises(
        TypeError, match=r"jit of <lambda>: device: expected one of corejax.devices\(\), or a sharding over one, got 3"
    ):
        jit(lambda x: x, device=3)
    with pytest.raises(ValueError, match="a device or a backend, not both"):
        jit(lambda x: x, device=device, backend="cpu")
    assert jit(lambda x: x + 1, device=device)(X).committed


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    @jit
    def step(x: Any) -> Any:
        return x + 1

    with caplog.at_level(logging.WARNING, "corejax"):
        step(np.float32(1))
        assert not caplog.messages
        with corejax.log_compiles():
            step(X)
        assert [m.split(" in ")[0] for m in caplog.messages] == [
            "traced step(f32[3])",
            "compiled step, 1 equations, for cpu",
        ]
        caplog.clear()
        with corejax.explain_cache_misses():
            step(X)
            step(X[:2])
            jit(lambda x: x)(X)
        assert caplog.messages == ["jit of step is traced again: shape of x: (2,), was (3,)"]


def test_disable_jit() -> None:
    seen = []

    @jit
    def f(x: Any) -> Any:
        seen.append(float(x.sum()) if not isinstance(x, corejax.Tracer) else "traced")
        return x * 2

    np.testing.assert_array_equal(f(X), 2 * X)
    with corejax.disable_jit():
        np.testing.assert_array_equal(f(corejax.lax.mul(X, 1.0)), 2 * X)
        np.testing.assert_array_equal(vmap(f)(X), 2 * X)
    np.testing.assert_array_equal(f(X), 2 * X)
    assert seen == ["traced", 6.0, "traced"]


def test_live_arrays() -> None:
    mine = jit(lambda x: x * 1)(X)
    other = lax.sin(X)
    found = {id(x) for x in corejax.live_arrays()}
    assert {id(mine), id(other)} <= found
    on_cpu = {id(x) for x in corejax.live_arrays("cpu")}
    assert id(mine) in on_cpu and id(other) not in on_cpu
    mine.delete()
    assert id(mine) not in {id(x) for x in corejax.live_arrays()}


def test_transfer_guard() -> None:
    f = jit(lambda x: x + 1)
    there = corejax.device_put(X)
    with corejax.transfer_guard("disallow"):
        for x in (X, 2.0, lax.sin(X)):
            with pytest.raises(corejax.errors.BackendError, match=r"transfer_guard refuses .*corejax.device_put"):
                f(x)
        np.testing.assert_array_equal(f(there), X + 1)
        np.testing.assert_array_equal(f(corejax.device_put(X)), X + 1)
        with corejax.transfer_guard_host_to_device("disallow_explicit"), pytest.raises(corejax.errors.BackendError):
            corejax.device_put(X + 1)
        corejax.device_put(X + 1)
    f(X)
    assert _jaxlib.transfer_guards() == {
        "host_to_device": None,
        "device_to_device": None,
        "device_to_host": None,
        "explicit_device_put": False,
    }
    with pytest.raises(ValueError, match="the levels are allow, log,"):
        corejax.transfer_guard("never")


def test_transfer_guard_as_a_setting() -> None:
    """It holds in every thread that has said nothing else."""
    f = jit(lambda x: x + 1)
    with corejax.config.override(transfer_guard="disallow"):
        for call in (lambda: f(X), lambda: ThreadPoolExecutor(1).submit(f, X).result()):
            with pytest.raises(corejax.errors.BackendError, match="transfer_guard refuses"):
                call()
        with corejax.transfer_guard("allow"):
            np.testing.assert_array_equal(f(X), X + 1)
        with corejax.config.override(transfer_guard_host_to_device="allow"):
            np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(f(X), X + 1)
    with pytest.raises(ValueError, match="transfer_guard: the levels are allow, log,"):
        corejax.config.update("transfer_guard", "never")


def test_attributes_of_place() -> None:
    x = corejax.device_put(X, corejax.devices()[0])
    (shard,) = x.addressable_shards
    assert shard.data is x is x.addressable_data(0) and shard.device == x.device and shard.index == (slice(None),)
    assert x.sharding == corejax.sharding.SingleDeviceSharding(x.device) and x.sharding.device_set == x.devices()
    assert x.platform() == "cpu" and x.is_fully_addressable and x.is_fully_replicated and x.is_ready()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x.is_ready()


PREFIXES: dict[str, Any] = {
    "one for two": lambda m, s: m.jit(lambda x, y: x, in_shardings=(None,))(X, X),
    "one device for two": lambda m, s: m.jit(lambda x, y: x, in_shardings=(s,))(X, X),
    "two for two": lambda m, s: m.jit(lambda x, y: x, in_shardings=(None, s))(X, X),
    "a list for two": lambda m, s: m.jit(lambda x, y: x, in_shardings=[s, None])(X, X),
    "nested": lambda m, s: m.jit(lambda x: x, in_shardings=((None,),))(X),
    "of a dict": lambda m, s: m.jit(lambda x: x["a"], in_shardings=({"a": None},))({"a": X}),
    "of another dict": lambda m, s: m.jit(lambda x: x["a"], in_shardings=({"b": None},))({"a": X}),
    "results": lambda m, s: m.jit(lambda x: (x, x), out_shardings=(None, s))(X),
    "one for two results": lambda m, s: m.jit(lambda x: (x, x), out_shardings=(None,))(X),
    "one for a result": lambda m, s: m.jit(lambda x: x, out_shardings=(s,))(X),
    "lowered": lambda m, s: m.jit(lambda x, y: x, in_shardings=(None,)).lower(X, X),
    "shapes": lambda m, s: m.jit(lambda x, y: x, in_shardings=(None,)).eval_shape(X, X),
    "traced": lambda m, s: m.make_jaxpr(m.jit(lambda x: (x, x), out_shardings=(None,)))(X),
    "backend and sharding": lambda m, s: m.jit(lambda x: x, backend="cpu", in_shardings=(s,))(X),
    "backend and nothing": lambda m, s: m.jit(lambda x: x, backend="cpu", in_shardings=None)(X),
}


@pytest.mark.parametrize("name", PREFIXES)
@pytest.mark.filterwarnings("ignore:.*backend")
def test_shardings_are_prefixes_as_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    refused = []
    for m in (corejax, jax):
        sharding = m.sharding.SingleDeviceSharding(m.devices()[0])
        try:
            PREFIXES[name](m, sharding)
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) != 1
    if refused:
        assert re.match(
            r"jit of <lambda>: ((in|out)_shardings: the shardings are not a prefix|give in_shardings or a b)",
            refused[0],
        )


@pytest.mark.skipif(_jaxlib.FEATURES.version >= (0, 12), reason="it has levels in place of efforts")
def test_efforts_reach_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """By settings, and for one function; what a program depends on has them."""
    device = corejax.devices()[0]
    given = []
    made = _jaxlib._client.compile_options

    def spied(*args: Any, **kwargs: Any) -> Any:
        options = made(*args, **kwargs)
        build = options.executable_build_options
        given.append((build.exec_time_optimization_effort, build.memory_fitting_effort, int(build.optimization_level)))
        assert dict(options.env_option_overrides).items() <= _jaxlib.PLAIN_FUSIONS.items()
        return options

    monkeypatch.setattr(_jaxlib._executable, "compile_options", spied)
    with corejax.config.override(optimization_level="O1", memory_fitting_effort=-0.5):
        np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)
    options = {"exec_time_optimization_effort": 0.5, "optimization_level": "O3"}
    np.testing.assert_array_equal(jit(lambda x: x + 1, compiler_options=options)(X), X + 1)
    assert given == [(0.0, -0.5, 19), (0.5, 0.0, 39)]
    assert _jaxlib.compilation_fingerprint(device, [("optimization_level", "O1")]) != _jaxlib.compilation_fingerprint(
        device
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimization_level", "O9"),
        ("memory_fitting_level", 2),
        ("exec_time_optimization_effort", 1.5),
        ("memory_fitting_effort", "a"),
    ],
)
def test_efforts_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is "):
        corejax.config.update(name, value)
    with pytest.raises(ValueError, match=f"{name} is "):
        jit(lambda x: x, compiler_options={name: value})


LATE_SETTING = """
import numpy as np, corejax
from corejax.extend import config

step = corejax.jit(lambda x: x + 1)
step(np.ones(3))
config.add_setting("acme_level", 1, int, traced=True)  # as a plugin does that is loaded between two calls
explanation = corejax.explain(step)(np.ones(3))
print(*(reason for event in explanation.jit if event.kind == "trace" for reason in event.reasons))
config.update("acme_level", 3)
explanation = corejax.explain(step)(np.ones(3))
print(*(reason for event in explanation.jit if event.kind == "trace" for reason in event.reasons))
"""


@pytest.mark.parametrize("initial", [1, 2])
def test_a_setting_that_came_between_two_calls_traces_again_if_it_changes(initial: int) -> None:
    environment = {**os.environ, "COREJAX_ACME_LEVEL": str(initial)}
    done = subprocess.run([sys.executable, "-c", LATE_SETTING], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"\nsettings: acme_level=3, was {initial}\n"


DURING_A_TRACE = """
import corejax
from corejax.extend import config

@corejax.jit
def step(x):
    if "acme_level" not in config.values():  # as a plugin does that is loaded while a function is traced
        config.add_setting("acme_level", 1, int, traced=True)
    return x * config.acme_level

for level in (None, 1, 3, 2, 1):
    if level is not None:
        config.update("acme_level", level)
    print(int(step(10)))
"""


def test_a_setting_that_came_during_a_trace_is_in_the_key_of_the_trace() -> None:
    environment = {**os.environ, "COREJAX_ACME_LEVEL": "2"}
    done = subprocess.run([sys.executable, "-c", DURING_A_TRACE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["20", "10", "30", "20", "10"]
