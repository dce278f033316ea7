"""What is exported comes back as it was: types, structures, values, in this process and in another."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import export, lax
from corejax.extend import Primitive, xla_translations
from corejax_xla_backend import _jaxlib

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def loaded(fun: Any, *args: Any, vjp_order: int = 0, **kwargs: Any) -> Any:
    """A function after a round trip through bytes."""
    return export.deserialize(export.export(corejax.jit(fun))(*args, **kwargs).serialize(vjp_order))


def same(got: Any, wanted: Any) -> None:
    """Equal structures, types and values."""
    assert corejax.tree_util.tree_structure(got) == corejax.tree_util.tree_structure(wanted)
    for a, b in zip(*map(corejax.tree_util.tree_leaves, (got, wanted)), strict=True):
        assert (a.dtype, a.shape, a.weak_type) == (b.dtype, b.shape, b.weak_type)
        np.testing.assert_array_equal(a, b)


# -- values and types ----------------------------------------------------------------------------------------------


def test_structures_types_and_values_come_back() -> None:
    def f(x: Any, tree: Any, *, n: Any) -> Any:
        return {"y": [x @ tree["w"], n + 1], "z": (None, jnp.tanh(x), 2.0)}, {3: (), -1: x}

    args, kwargs = (X, {"w": np.ones((3, 4), np.float32), "unused": ()}), {"n": np.int8(3)}
    same(loaded(f, *args, **kwargs).call(*args, **kwargs), corejax.jit(f)(*args, **kwargs))


def test_every_dtype_comes_back() -> None:
    values = [
        np.zeros((2, 1), dtype) for dtype in _jaxlib.DTYPES if dtype.name not in ("float6_e2m3fn", "float6_e3m2fn")
    ]
    same(loaded(lambda xs: [x[:1] for x in xs], values).call(values), [jnp.asarray(x[:1]) for x in values])


def test_64_bits_weak_types_and_no_elements() -> None:
    def f(x: Any, n: Any, empty: Any) -> Any:
        return x * 2, n + 1, empty, jnp.sum(empty), 1.5

    args = (np.float64(0.1), 3, np.zeros((0, 4), np.int64))
    same(loaded(f, *args).call(*args), corejax.jit(f)(*args))
    assert loaded(f, *args).out_avals[1].weak_type


def test_constants_travel_with_the_program() -> None:
    large = jnp.asarray(np.random.default_rng(0).normal(size=(40, 3)))
    few = np.array([True, False, True])

    def f(x: Any) -> Any:
        return large @ x.T, jnp.where(few, x, 0)

    found = loaded(f, X)
    same(found.call(X), corejax.jit(f)(X))
    assert found.module_kept_var_idx == (0,) and len(found.in_avals) == 1


def test_control_flow_comes_back_and_is_called_inside_of_it() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, r: (lax.cond(c[0] > 1, jnp.sin, jnp.cos, c) + r, r.sum()), x[0], x)

    call = loaded(f, X).call
    same(call(X), corejax.jit(f)(X))

    def looped(call: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: jnp.stack([call(c)[0]] * 2), X)

    np.testing.assert_allclose(looped(call), looped(f), rtol=1e-6)


def test_types_instead_of_values_and_static_arguments() -> None:
    jitted = corejax.jit(lambda x, n: x[:n], static_argnums=1)
    found = export.export(jitted)(corejax.ShapeDtypeStruct((5,), np.int16), 2)
    assert [a.str_short() for a in (*found.in_avals, *found.out_avals)] == ["i16[5]", "i16[2]"]
    same(found.call(np.arange(5, dtype=np.int16)), jnp.arange(2, dtype=np.int16))


def test_equal_functions_give_equal_bytes_without_lines() -> None:
    def f(x):
        return jnp.sin(x)

    first = export.export(corejax.jit(f))(X).serialize()

    def f(x):
        return jnp.sin(x)

    assert export.export(corejax.jit(f))(X).serialize() == first
    assert __file__.encode() not in first and type(first) is bytes


def test_functions_named_alike_do_not_meet() -> None:
    inner = loaded(lambda x: corejax.jit(jnp.sin)(x) + corejax.jit(jnp.cos)(x), X)

    def main(x: Any) -> Any:
        return inner.call(x) + corejax.jit(jnp.sin)(inner.call(2 * x))

    outer = loaded(main, X)
    np.testing.assert_allclose(outer.call(X), np.sin(np.sin(2 * X) + np.cos(2 * X)) + np.sin(X) + np.cos(X), rtol=1e-5)
    assert outer.mlir_module().count("stablehlo.cosine") == 1  # one function however often it is called


# -- platforms -----------------------------------------------------------------------------------------------------


def test_programs_for_several_platforms_are_in_one_artifact() -> None:
    scaled_p = Primitive("test.scaled", abstract_eval=lambda x: x)
    xla_translations.register(scaled_p, lambda ctx, avals, vals: ctx.op("add", vals[0], vals[0], out=avals[0]))
    xla_translations.register(
        scaled_p, lambda ctx, avals, vals: ctx.op("multiply", vals[0], vals[0], out=avals[0]), platform="cuda"
    )
    both = export.export(corejax.jit(scaled_p.bind), platforms=["cuda", "cpu"])(X)
    found = export.deserialize(both.serialize())
    assert found.platforms == ("cuda", "cpu")
    assert "stablehlo.multiply" in found.mlir_module() and "stablehlo.add" not in found.mlir_module()
    np.testing.assert_array_equal(found.call(X), 2 * X)


def test_a_platform_that_it_was_not_exported_for() -> None:
    f = corejax.jit(jnp.sin)
    with pytest.raises(ValueError, match=r"sin is for 'cuda' but was called on 'cpu'.*platforms=\['cuda', 'cpu'\]"):
        export.export(f, platforms=["gpu"])(X).call(X)
    anywhere = export.export(f, platforms=["cuda"], disabled_checks=[export.DisabledSafetyCheck.platform()])(X)
    np.testing.assert_array_equal(export.deserialize(anywhere.serialize()).call(X), corejax.jit(jnp.sin)(X))


def test_a_platform_that_is_only_lowered_for() -> None:
    ragged = corejax.jit(lambda a, b, sizes: lax.ragged_dot(jnp.sin(a), b, sizes))
    operands = np.ones((4, 3), np.float32), np.ones((2, 3, 5), np.float32), np.array([1, 3], np.int32)
    found = export.deserialize(export.export(ragged, platforms=["tpu", "cpu"])(*operands).serialize())
    assert found.platforms == ("tpu", "cpu")
    np.testing.assert_allclose(found.call(*operands), ragged(*operands), rtol=1e-5)
    assert "stablehlo" in export.export(ragged, platforms=["tpu"])(*operands).mlir_module()
    with pytest.raises(NotImplementedError, match="calls back into Python"):
        export.export(corejax.jit(lambda x: corejax.pure_callback(np.sin, x, x)), platforms=["tpu"])(X)


@pytest.mark.parametrize("platforms", [["acme"], "cpu", []])
def test_unknown_platforms(platforms: Any) -> None:
    with pytest.raises(ValueError, match="platforms"):
        export.export(corejax.jit(jnp.sin), platforms=platforms)


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fun", [jnp.sin, 3, corejax.jit(jnp.sin).lower(X)])
def test_only_jitted_functions_are_exported(fun: Any) -> None:
    with pytest.raises(ValueError, match=r"export\(jit\(f\)\)"):
        export.export(fun)(X)


def test_values_of_transformations_around_it_are_refused() -> None:
    def f(y: Any) -> Any:
        return export.export(corejax.jit(lambda x: x + y))(X).call(X)

    with pytest.raises(ValueError, match="closes over a value that an outer transformation traces"):
        corejax.jit(f)(X)


def test_copies_are_itself_and_bytes_are_pickled() -> None:
    exported = export.export(corejax.jit(jnp.sin))(X)
    assert copy.copy(exported) is exported and copy.deepcopy([exported])[0] is exported
    with pytest.raises(TypeError, match=r"function sin cannot be pickled: pickle exported.serialize"):
        pickle.dumps(exported)


def test_checks_are_made_by_their_class() -> None:
    with pytest.raises(TypeError, match="DisabledSafetyCheck objects, got 'platform'"):
        export.export(corejax.jit(jnp.sin), disabled_checks=["platform"])
    kernel = export.DisabledSafetyCheck.custom_call("acme:f")
    assert kernel.is_custom_call() == "acme:f" and export.DisabledSafetyCheck.platform().is_custom_call() is None
    assert {kernel: 1}[export.DisabledSafetyCheck.custom_call("acme:f")] and str(kernel) == "custom_call:acme:f"


@pytest.mark.parametrize("order", [-1, True, 1.0])
def test_orders_are_numbers(order: Any) -> None:
    with pytest.raises(ValueError, match="vjp_order must be an integer"):
        export.export(corejax.jit(jnp.sin))(X).serialize(vjp_order=order)


# -- other threads and processes -----------------------------------------------------------------------------------


def test_calls_from_threads() -> None:
    found = loaded(lambda x: (x * 2, x.sum()), X, vjp_order=1)
    results: list[Any] = []

    def work(i: int) -> None:
        results.append((i, found.call(X + i)[0], corejax.grad(lambda x: found.call(x)[1])(X)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for i, doubled, gradient in results:
        np.testing.assert_array_equal(doubled, 2 * (X + i))
        np.testing.assert_array_equal(gradient, np.ones_like(X))


class Point(NamedTuple):
    x: Any
    y: Any


OTHER_PROCESS = """
import sys
import numpy as np
import corejax
from typing import Any, NamedTuple
from corejax import export

class Point(NamedTuple):
    x: Any
    y: Any

blob = open(sys.argv[1], "rb").read()
try:
    export.deserialize(blob)
except ValueError as error:
    print("'test.Point'" in str(error))
export.register_namedtuple_serialization(Point, serialized_name="test.Point")
found = export.deserialize(blob)
point = Point(np.float32([1, 2]), np.float32(3))
print(found.fun_name, *found.call(point), found.call(point).__class__.__name__)
print(*corejax.jit(corejax.grad(lambda p: found.call(p).x.sum()))(point))
print(*corejax.vmap(found.call)(Point(np.float32([[1, 2], [3, 4]]), np.float32([3, 1]))).x.ravel())
print([name for name in corejax.extend.primitives if name.startswith("test.")] if hasattr(corejax, "extend") else [])
"""


def test_another_process_needs_neither_the_function_nor_its_primitives(tmp_path: Path) -> None:
    cube_p = Primitive("test.cube", decomposition=lambda x: x * x * x)
    export.register_namedtuple_serialization(Point, serialized_name="test.Point")

    def cubes(point: Point) -> Point:
        return Point(cube_p.bind(point.x) * point.y, point.y)

    exported = export.export(corejax.jit(cubes))(Point(np.float32([1, 2]), np.float32(3)))
    (tmp_path / "cubes.bin").write_bytes(exported.serialize(vjp_order=1))
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "cubes.bin")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True",
        "cubes [ 3. 24.] 3.0 Point",
        "[ 9. 36.] 9.0",
        "3.0 24.0 27.0 64.0",
        "[]",
    ]
