"""Programs on the backend `numpy` against eager evaluation and XLA, under every transformation; and without jaxlib."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import lax, random
from corejax.errors import BackendError, MissingRuleError
from corejax.extend import Primitive, abstract_eval_rules, impl_rules

pytest.importorskip("corejax_xla_backend", reason="corejax.jit comes with it")

X = np.float32([0.5, -1.0, 2.0])
W = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def numpy_jit(fun: Any, **options: Any) -> Any:
    return corejax.jit(fun, backend="numpy", **options)


@corejax.custom_jvp
def softened(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


softened.defjvp(lambda primals, tangents: (softened(*primals), tangents[0] / (1 + jnp.exp(-primals[0]))))


def newton(x: Any) -> Any:
    return lax.while_loop(lambda s: abs(s * s - 2) > 1e-6, lambda s: 0.5 * (s + 2 / s), x[2])


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: jnp.sin(x) * 2 + x.sum(),
    "several results": lambda x: {"a": x + 1, "b": (x, x[0] * 2)},
    "constants": lambda x: W @ x + np.float32([1, 2]),
    "shapes": lambda x: jnp.concatenate([x[::-1], x]).reshape(2, 3).T,
    "division by zero": lambda x: x / (x - x) + jnp.log(x),
    "integers and booleans": lambda x: (x > 0).astype(np.int32) // 2,
    "weak types": lambda x: x * 2.0 + 1,
    "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "scan": lambda x: lax.scan(lambda c, a: (c * a + 1, c), np.float32(0), x),
    "while": newton,
    "custom derivative": lambda x: softened(x),
    "checkpoint": lambda x: corejax.checkpoint(lambda y: jnp.tanh(y) * y)(x),
    "jit in jit": lambda x: corejax.jit(lambda y: corejax.jit(jnp.sin)(y) * x)(x * 2),
    "jit in scan": lambda x: lax.scan(corejax.jit(lambda c, a: (c + jnp.sin(a), c)), np.float32(0), x),
    "nothing": lambda x: x,
}
TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "jit": lambda jit: lambda f: jit(f),
    "jit of vmap": lambda jit: lambda f: jit(corejax.vmap(f)),
    "vmap of jit": lambda jit: lambda f: corejax.vmap(jit(f)),
}
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad of jit": lambda jit: lambda f: corejax.grad(jit(f)),
    "jit of grad": lambda jit: lambda f: jit(corejax.grad(f)),
    "jit of jvp of jit": lambda jit: lambda f: jit(lambda x: corejax.jvp(jit(f), (x,), (x,))[1]),
    "vmap of grad of jit": lambda jit: lambda f: lambda x: corejax.vmap(corejax.grad(jit(f)))(jnp.stack([x, 2 * x])),
}


def assert_same(got: Any, wanted: Any) -> None:
    got, wanted = corejax.tree.tree_flatten(got), corejax.tree.tree_flatten(wanted)
    assert got[1] == wanted[1]
    for a, b in zip(got[0], wanted[0], strict=True):
        assert a.aval == b.aval
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, how: str) -> None:
    x = jnp.stack([X, 2 * X]) if "vmap" in how else jnp.array(X)
    eager = TRANSFORMED[how](lambda f: f)(PROGRAMS[name])(x)
    if how == "jit" and name != "nothing":
        assert_same(corejax.jit(PROGRAMS[name])(x), eager)
    assert_same(TRANSFORMED[how](numpy_jit)(PROGRAMS[name])(x), eager)


@pytest.mark.parametrize("how", DERIVATIVES)
@pytest.mark.parametrize(
    "name", ["arithmetic", "constants", "cond", "scan", "custom derivative", "checkpoint", "jit in scan"]
)
def test_derivatives(name: str, how: str) -> None:
    def loss(x: Any) -> Any:
        return sum(jnp.sum(leaf) for leaf in corejax.tree.tree_leaves(PROGRAMS[name](x)))

    x = jnp.array(X)
    assert_same(DERIVATIVES[how](numpy_jit)(loss)(x), DERIVATIVES[how](lambda f: f)(loss)(x))


def test_results_are_on_the_device_and_go_wherever_they_are_needed() -> None:
    double = numpy_jit(lambda x: x * 2)
    y = double(X)
    assert y.devices() == {*corejax.devices("numpy")} and y.block_until_ready() is y
    assert double(y).devices() == y.devices()
    np.testing.assert_array_equal(corejax.jit(lambda x: x + 1)(y), X * 2 + 1)  # XLA's
    np.testing.assert_array_equal(double(corejax.jit(lambda x: x + 1)(X)), (X + 1) * 2)
    np.testing.assert_array_equal(y + y, X * 4)
    (device,) = corejax.devices("numpy")
    assert corejax.device_put(X, device).devices() == {device}
    assert corejax.device_put(y, corejax.devices()[0]).devices() == {corejax.devices()[0]}
    assert corejax.block_until_ready({"a": y, "b": corejax.device_put(X)})["a"] is y


def test_the_setting_chooses_and_dispatchers_follow() -> None:
    f = corejax.jit(lambda x: x + 1)
    before = [f(X).devices() for _ in range(3)]
    with corejax.config.override(backend="numpy"):
        assert f(X).devices() == {*corejax.devices()} == {*corejax.devices("numpy")}
        assert corejax.device_put(X).devices() == {*corejax.devices("numpy")}
        assert f(f(X)).devices() == {*corejax.devices("numpy")}
    assert [f(X).devices() for _ in range(3)] == before
    with corejax.config.override(backend="numpy"):
        made_here = corejax.jit(lambda x: x + 1)
    assert made_here(X).devices() == before[0]


def test_static_arguments() -> None:
    power = numpy_jit(lambda x, n: x**n, static_argnums=1)
    np.testing.assert_allclose(power(X, 3), X**3, rtol=1e-6)
    with pytest.raises(TypeError, match="static argument 'n' has to be hashable"):
        power(X, [3])


def test_traces_are_kept_by_signature() -> None:
    traced = []
    f = numpy_jit(lambda x: traced.append(x.aval.str_short()) or x + 1)
    for x in (X, X, X[:2], 1.0, 2.0, X):
        f(x)
    assert traced == ["f32[3]", "f32[2]", "f32[]"]
    f.clear_cache()
    f(X)
    assert traced[3:] == ["f32[3]"]


def test_steps() -> None:
    lowered = numpy_jit(lambda x: corejax.jit(jnp.sin)(x) * 2).lower(X)
    compiled = lowered.compile()
    assert compiled.as_text().splitlines() == ["%1:f32[3] = sin %0", "%3:f32[3] = mul %1 %2", "return %3"]
    assert compiled.cost_analysis() == {"steps": 2}
    assert compiled.memory_analysis() == {"argument": 12, "output": 12}
    np.testing.assert_allclose(compiled(X), np.sin(X) * 2, rtol=1e-6)
    with pytest.raises(BackendError, match="'numpy' compiles programs without lowering them"):
        lowered.as_text()


def test_errors_name_the_rule() -> None:
    failing, untrue, missing = (Primitive(f"tests.{name}") for name in ("failing", "untrue", "missing"))

    def fail(x: Any) -> Any:
        raise ZeroDivisionError("no")

    for primitive, rule in ((failing, fail), (untrue, lambda x: x[:1]), (missing, None)):
        abstract_eval_rules.register(primitive, lambda aval: aval)
        if rule is not None:
            impl_rules.register(primitive, rule)
    with pytest.raises(ZeroDivisionError) as failed:
        numpy_jit(lambda x: failing.bind(x))(X)
    assert any("tests.failing" in note and "test_backend.py" in note for note in failed.value.__notes__)
    with pytest.raises(TypeError, match=r"tests\.untrue.*float32\[1\] where abstract evaluation promises f32\[3\]"):
        numpy_jit(lambda x: untrue.bind(x))(X)
    with pytest.raises(MissingRuleError, match=r"tests\.missing"):
        numpy_jit(lambda x: missing.bind(x))(X)


def test_a_platform_that_it_has_not() -> None:
    with pytest.raises(BackendError, match="'numpy' has no platform 'cuda'"):
        corejax.extend.backends.load("numpy").devices("cuda")


WITHOUT_JAXLIB = """
import sys
sys.modules["jaxlib"] = None
import numpy as np, corejax, corejax.numpy as jnp
f = corejax.jit(lambda x: jnp.sin(x).sum(), backend="numpy")
print(corejax.grad(f)(np.zeros(2)))
inner = corejax.jit(lambda c, a: (c + a, c))
print(corejax.jit(lambda x: corejax.lax.scan(inner, np.float64(0), x)[0], backend="numpy")(np.ones(3)))
try:
    corejax.jit(jnp.sin)(1.0)
except corejax.errors.PluginError as error:
    print("JaxlibError" in str(error))
corejax.config.update("backend", "numpy")
print(corejax.jit(jnp.cos)(0.0))
print(any(name.startswith("jaxlib.") for name in sys.modules))
"""


def test_without_jaxlib() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAXLIB], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == ["[1. 1.]", "3.0", "True", "1.0", "False"]


def test_programs_that_take_and_return_keys() -> None:
    def f(key: Any) -> Any:
        return lax.scan(lambda c, k: (random.split(c)[0], random.normal(k)), key, random.split(key, 3))

    key = random.key(0)
    last, drawn = numpy_jit(f)(key)
    want_last, want = f(key)
    np.testing.assert_array_equal(random.key_data(last), random.key_data(want_last))
    np.testing.assert_allclose(drawn, want, rtol=1e-6)
