"""Flags with which programs compile faster: of `disable_most_optimizations`, and of small programs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax
from corejax.extend.devices import CompileOptions
from corejax_xla_backend import _jaxlib
from corejax_xla_backend._xla import flags as flags_of_programs
from corejax_xla_backend._xla.compiling import lower
from corejax_xla_backend._xla.flags import FEWER_PASSES, depth_of, extent_of, kernels_of


def network(x: Any) -> Any:
    return jnp.tanh(x @ x.T).sum(0)


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """XLA's flags of the programs that are compiled."""
    seen = []
    of = _jaxlib.compile_module

    def compile_module(*args: Any, **options: Any) -> Any:
        seen.append(dict(options["overrides"]))
        return of(*args, **options)

    monkeypatch.setattr(_jaxlib, "compile_module", compile_module)
    return seen


def test_results_are_the_same(flags: list[dict[str, Any]]) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    gradient = lambda x: corejax.grad(lambda x: network(x).sum())(x)
    wanted = corejax.jit(gradient)(x)
    with corejax.config.override(disable_most_optimizations=True):
        got = corejax.jit(lambda x: gradient(x))(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    first, second = flags
    assert first == _jaxlib.PLAIN_FUSIONS
    assert second["xla_backend_optimization_level"] == 0
    assert second["xla_llvm_disable_expensive_passes"] is True


def test_programs_that_are_there_stay(flags: list[dict[str, Any]]) -> None:
    f, x = corejax.jit(lambda x: network(x)), np.ones((2, 3), np.float32)
    f(x)
    with corejax.config.override(disable_most_optimizations=True):
        f(x)
        assert len(flags) == 1
        f(np.ones((5, 3), np.float32))
    assert ["xla_backend_optimization_level" in given for given in flags] == [False, True]


def test_options_of_a_function_come_first(flags: list[dict[str, Any]]) -> None:
    with corejax.config.override(disable_most_optimizations=True):
        corejax.jit(network, compiler_options={"xla_backend_optimization_level": 2})(np.ones((2, 3), np.float32))
    assert flags[0]["xla_backend_optimization_level"] == 2


def test_it_is_on_or_off() -> None:
    with pytest.raises(ValueError, match="disable_most_optimizations is on or off, got 'some'"):
        corejax.config.update("disable_most_optimizations", "some")


def test_an_unknown_switch_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases differ in what they can switch off."""
    from corejax_xla_backend._jaxlib import _quick

    monkeypatch.setattr(_quick, "_ON_CPUS", {"xla_no_such_switch": True})
    found = dict(_quick.quick_flags.__wrapped__(_jaxlib.client("cpu")))
    assert found == _quick.QUICK


def newton(x: Any) -> Any:
    return lax.while_loop(lambda x: jnp.abs(x * x - 2).max() > 1e-6, lambda x: x / 2 + 1 / x, x)


def three_readers(x: Any, operations: int) -> Any:
    """Return three results of one chain of operations."""
    for _ in range(operations // 2):
        x = jnp.sin(x) * 0.9
    return x + 1, x - 1, x * 3


def is_plain(function: Any, *args: Any, donated: bool = False) -> bool:
    closed = corejax.make_jaxpr(function)(*args)
    options = CompileOptions(donated=(donated,) * len(args))
    return flags_of_programs.is_plain(closed.jaxpr, lower(closed, "f", "cpu", options)[0])


@pytest.mark.parametrize(
    ("function", "shape", "small"),
    [
        (jnp.sin, (32768,), True),
        (jnp.sin, (1 << 20,), True),
        (lambda x: jnp.where(x > 0, x, 1.0), (32769,), True),
        (corejax.nn.silu, (32769,), False),
        (jnp.sin, (0,), True),
        (jnp.sin, (), True),
        (lambda x: corejax.debug.callback(lambda: None), (3,), True),
        (corejax.nn.silu, (32768,), True),
        (lambda x: corejax.jit(lambda x: jnp.sin(x) * 2)(x), (32768,), True),
        (lambda x: corejax.jit(lambda x: jnp.sin(x[1:]))(x), (102,), False),
        (lambda x: x * jnp.float32(2) + x.sum(), (100,), True),
        (lambda x: x * jnp.float32(2) + x.sum(), (101,), False),
        (lambda x: x[:1] + 1, (101,), False),
        (jnp.cumsum, (101,), False),
        (lambda x: jnp.broadcast_to(x, (3, 34)), (34,), False),
        (corejax.grad(lambda x: network(x).sum()), (8, 8), True),
        (lambda x: corejax.jit(lambda x: (x @ x.T).sum())(x), (4, 4), True),
        (lambda x: corejax.jit(lambda x: (x[:, None] * x).sum(1))(x), (11,), False),
        # Kernels that write where they read are no vector instructions without emitters.
        (newton, (100,), True),
        (newton, (101,), False),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.tanh(x), x), (100,), True),
        (lambda x: lax.fori_loop(0, 9, lambda i, x: jnp.tanh(x), x), (101,), False),
        (lambda x: lax.scan(lambda c, _: (c + x @ x, ()), x, length=1000)[0], (8, 8), True),
        (lambda x: lax.scan(lambda c, x: (c + x, c), x[0], x)[1], (7, 16), False),
        (lambda x: lax.scan(lambda c, x: (c + x, c), jnp.float32(0), x)[1], (1000,), True),
        (lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.outer(x, x)[0], x), (11,), False),
        # A quotient that is read twice ends a kernel; what is made of it takes its memory.
        (lambda x: (lambda t: jnp.tanh(t) * t)(x / (1 + x)), (100,), True),
        (lambda x: (lambda t: jnp.tanh(t) * t)(x / (1 + x)), (101,), False),
        # A value that is stored ends a kernel, and others read it.
        (lambda x: three_readers(x, 60), (100,), True),
        (lambda x: three_readers(x, 10), (101,), True),
        (lambda x: three_readers(x, 60), (101,), False),
        (export.export(corejax.jit(lambda x: x.sum()))(np.ones(3, np.float32)).call, (3,), False),
    ],
)
def test_small_programs_and_single_kernels_are_plain(function: Any, shape: tuple[int, ...], small: bool) -> None:
    assert is_plain(function, np.ones(shape, np.float32)) is small


@pytest.mark.parametrize(("layers", "small"), [(1, True), (9, False)])
def test_equal_layers_are_compiled_once_with_emitters(layers: int, small: bool) -> None:
    def network(x: Any, w: Any) -> Any:
        for _ in range(layers):
            x = jnp.tanh(x @ w)
        return x.sum()

    x = np.ones((4, 4), np.float32)
    assert is_plain(corejax.grad(network), x, x) is small
    assert is_plain(lambda x: [x * 2 for _ in range(layers)], x) is small
    assert is_plain(lambda x: corejax.jit(lambda x: [x * 2 for _ in range(layers)])(x), x) is small
    assert is_plain(lambda x: chain(x, 9 * layers), x)


def test_a_program_with_few_equal_kernels_is_plain() -> None:
    def loss(x: Any) -> Any:
        a = np.arange(9, dtype=np.float32).reshape(3, 3)
        return jnp.linalg.norm(jnp.tanh(a @ x) @ a.T + jnp.concatenate([x[1:], x[:1]])) + (x @ x).sum()

    jaxpr = corejax.make_jaxpr(corejax.grad(loss))(np.eye(3, dtype=np.float32)).jaxpr
    kernels, repeats = kernels_of(jaxpr)
    assert 1 <= repeats < 0.8 * kernels
    assert is_plain(corejax.grad(loss), np.eye(3, dtype=np.float32))


@pytest.mark.parametrize(("dtype", "size"), [("float16", 100), ("int8", 100), ("complex64", 50), ("float32", 100)])
def test_elements_count_by_their_bytes(dtype: str, size: int) -> None:
    for more in (0, 1):
        assert is_plain(lambda x: x[:1] + 1, np.ones(size + more, dtype)) is (more == 0)


def test_each_device_has_a_part() -> None:
    shared_out = corejax.shard_map(
        lambda x: lax.psum(x, "x") * x,
        mesh=corejax.sharding.AbstractMesh((8,), ("x",)),
        in_specs=corejax.P("x"),
        out_specs=corejax.P("x"),
    )
    for size in (100, 101):
        jaxpr = corejax.make_jaxpr(shared_out)(np.ones(8 * size, np.float32)).jaxpr
        assert extent_of(jaxpr) == (size, False) and kernels_of(jaxpr)[1] == 0


def test_large_programs_that_are_given_memory_are_not_small() -> None:
    """They write where they read."""
    for size, small in ((100, True), (101, False)):
        assert is_plain(lambda x: x * 2, np.ones(size, np.float32), donated=True) is small


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "complex64", "int4", "bool", "float8_e5m2fnuz"])
def test_small_programs_have_no_floats_of_eight_bits(dtype: str) -> None:
    x = np.ones(3, corejax.dtypes.canonicalize_dtype(dtype))
    assert is_plain(lambda x: x.real.astype("int32") + 1, x) is (dtype != "float8_e5m2fnuz")


def test_what_is_not_there_without_them_is_compiled_with_them(flags: list[dict[str, Any]]) -> None:
    x = np.array([True, False])  # XLA clamps no truth values outside of a fusion's emitters
    assert corejax.jit(lambda x: lax.clamp(x, ~x, x))(x).tolist() == [True, False]
    assert flags[-1] == {}


def test_small_programs_compile_without_emitters_of_fusions(flags: list[dict[str, Any]]) -> None:
    function = corejax.jit(lambda x: jnp.tanh(x).sum())
    few, many = np.ones(60, np.float32), np.ones(120, np.float32)
    np.testing.assert_allclose(function(few), np.tanh(few).sum(), rtol=1e-6)
    np.testing.assert_allclose(function(many), np.tanh(many).sum(), rtol=1e-6)
    assert flags == [_jaxlib.PLAIN_FUSIONS, {}]
    assert bool(_jaxlib.PLAIN_FUSIONS) == (_jaxlib.FEATURES.version < (0, 11))


@pytest.mark.skipif(not _jaxlib.PLAIN_FUSIONS, reason="this release has no such option")
def test_options_of_a_small_program_come_first(flags: list[dict[str, Any]]) -> None:
    corejax.jit(jnp.sin, compiler_options={"xla_cpu_use_fusion_emitters": True})(np.ones(3, np.float32))
    assert flags == [{"xla_cpu_use_fusion_emitters": True}]


def layers(x: Any, w: Any) -> Any:
    for _ in range(9):
        x = jnp.tanh(x @ w) * 0.5
    return x


@pytest.mark.parametrize(
    ("function", "rows", "width", "few"),
    [
        (layers, None, 64, True),
        (lambda x, w: lax.fori_loop(0, 9, lambda i, x: layers(x, w), x), None, 64, True),
        (lambda x, w: layers(x, w) + x.max() + x.min(), None, 64, True),
        (lambda x, w: [layers(x, w), *(x + i for i in range(10))], None, 64, False),  # other kernels are the most
        (layers, None, 101, False),
        (layers, None, 10, False),  # without emitters of fusions, the passes vectorise the other kernels
        (lambda x, w: layers(x, w) + jnp.convolve(x, x[:5], mode="same"), None, 64, False),
        (lambda x, w: jnp.einsum("iab,i->ab", np.ones((64, 8, 8), np.float32), layers(x, w)), None, 64, False),
        (lambda x, w: layers(x.astype(jnp.bfloat16), np.eye(64, dtype=jnp.bfloat16)), None, 64, False),
        (lambda x, w: layers(x, w * 0.5), None, 64, False),  # the product with a number is another large kernel
        (layers, 2, 64, False),  # products of matrices are calls of a library
        (lambda x, w: corejax.vmap(layers, (None, 0))(x, w[None]), None, 8, False),
        (lambda x, w: jnp.tanh(x), None, 64, False),
    ],
)
def test_products_with_vectors_compile_with_fewer_passes(
    flags: list[dict[str, Any]], function: Any, rows: int | None, width: int, few: bool
) -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(width, width)).astype(np.float32) / np.float32(width**0.5)
    x = rng.normal(size=width if rows is None else (rows, width)).astype(np.float32)
    got = corejax.jit(function)(x, w)
    wanted = corejax.jit(function, compiler_options={"xla_backend_optimization_level": 3})(x, w)
    assert [given.get("xla_backend_optimization_level") for given in flags] == [1 if few else None, 3]
    assert (flags[0].items() >= FEWER_PASSES.items()) is few
    corejax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), got, wanted)


def chain(x: Any, length: int) -> Any:
    for i in range(length):
        x = jnp.sin(x) * x + i
    return x


@pytest.mark.parametrize("length", [300, 400])
def test_deep_programs_compile_with_emitters_of_fusions(flags: list[dict[str, Any]], length: int) -> None:
    corejax.jit(lambda x: chain(x, length))(np.float32(1))
    assert flags == [_jaxlib.PLAIN_FUSIONS if 3 * length <= 1000 else {}]


def test_operations_one_after_the_other() -> None:
    def depth(f: Any) -> int:
        return depth_of(corejax.make_jaxpr(f)(np.float32(1)).jaxpr)

    assert depth(lambda x: x) == 0
    assert depth(lambda x: [x + i for i in range(50)]) == 1
    assert depth(lambda x: chain(x, 5)) == 15
    assert depth(lambda x: corejax.jit(lambda x: chain(x, 5))(x) + 1) == 17
    assert depth(lambda x: lax.fori_loop(0, 100, lambda i, x: chain(x, 5), x)) < 30


@pytest.mark.slow
@pytest.mark.parametrize(("quick", "exported"), [(False, False), (True, False), (False, True)])
def test_a_program_of_thousands_of_operations_ends_no_process(quick: bool, exported: bool) -> None:
    program = """if True:
        import sys, corejax
        corejax.config.update("disable_most_optimizations", sys.argv[1] == "True")
        def f(x):
            for i in range(2500):
                x = corejax.numpy.sin(x) * x + i
            return x
        if sys.argv[2] == "True":
            from corejax import export
            f = export.deserialize(export.export(corejax.jit(f))(1.0).serialize()).call
        print(corejax.jit(f)(1.0).shape)
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(quick), str(exported)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "()\n"


def test_a_program_that_is_called_twice_at_each_level_is_looked_at_once() -> None:
    f = jnp.sin
    for _ in range(60):
        f = (lambda g: lambda x: g(g(x)))(corejax.jit(f))
    jaxpr = corejax.make_jaxpr(f)(np.float32(1)).jaxpr
    assert extent_of(jaxpr) == (1, True) and depth_of(jaxpr) > 1 << 60
