"""`corejax.ffi`: kernels in C++ called from compiled programs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as jnp
from corejax import ffi
from corejax.extend import Primitive, ShapedArray, defjvp, xla_translations
from tests import kernels

F32 = np.dtype(np.float32)


@pytest.fixture(scope="module")
def library(pytestconfig: pytest.Config) -> Any:
    """The kernels, compiled and registered."""
    loaded = kernels.load(pytestconfig)
    loaded.NumberOfCalls.restype = ctypes.c_int64
    for name in ("Scale", "Running", "Count"):
        ffi.register_ffi_target(f"test.{name}", getattr(loaded, name))
    return loaded


ATTRIBUTES: dict[str, Any] = {
    "factor": np.float32(1.5),
    "offset": 0.25,
    "repeat": 3,
    "negate": True,
    "label": 'a "quoted" label',
    "shifts": np.array([1, -4], np.int32),
}


def scale(x: Any, **changed: Any) -> Any:
    return ffi.ffi_call("test.Scale", x.aval)(x, **{**ATTRIBUTES, **changed})


def scaled(x: np.ndarray) -> np.ndarray:
    return -(1.5 * x + 0.75 - 3)


def test_attributes_of_every_kind_arrive(library: Any) -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    for call in (scale, corejax.jit(scale)):
        np.testing.assert_array_equal(call(x), scaled(np.asarray(x)))


def test_an_empty_array_and_no_elements(library: Any) -> None:
    x = jnp.zeros((0, 3))
    assert scale(x).shape == (0, 3)
    one = jnp.ones(1)
    np.testing.assert_array_equal(scale(one, shifts=np.array([], np.int32), negate=False), [2.25])


def test_an_error_of_the_kernel_reaches_the_caller(library: Any) -> None:
    with pytest.raises(Exception, match="label is not what was given"):
        corejax.jit(lambda x: scale(x, label="other"))(jnp.ones(2))


def running(x: Any, start: Any, vmap_method: str | None) -> Any:
    types = [ShapedArray(x.shape, F32), ShapedArray(x.shape[:-1], F32)]
    return ffi.ffi_call("test.Running", types, vmap_method=vmap_method)(x, start)


def expected(x: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sums = np.cumsum(x, -1) + np.asarray(start)[..., None]
    return sums, np.maximum(sums.max(-1), start)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_vmap(library: Any, method: str, axis: int, jit: bool) -> None:
    x, start = np.arange(12, dtype=F32).reshape(3, 4) - 6, np.array([1, 2, 3], F32)
    mapped: Callable[..., Any] = corejax.vmap(lambda x, s: running(x, s, method), in_axes=(axis, 0))
    found = (corejax.jit(mapped) if jit else mapped)(jnp.asarray(np.moveaxis(x, 0, axis)), jnp.asarray(start))
    sums, largest = expected(x, start)
    np.testing.assert_allclose(found[0], sums, rtol=1e-6)
    np.testing.assert_allclose(found[1], largest, rtol=1e-6)


def test_vmap_of_some_operands_and_nested(library: Any) -> None:
    x, start = jnp.arange(24.0).reshape(2, 3, 4) - 11, jnp.float32(2.0)
    inner = corejax.vmap(lambda x: running(x, start, "expand_dims"))
    # One call for each row: `start` has one element there, whatever axes it got.
    found = corejax.vmap(inner)(x)
    np.testing.assert_allclose(found[0], expected(np.asarray(x), np.float32(2.0))[0], rtol=1e-6)


def test_vmap_without_a_method_says_what_to_do(library: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"test\.Running.*vmap_method"):
        corejax.vmap(lambda x: running(x, 0.0, None))(jnp.ones((2, 3)))


@pytest.mark.parametrize("effect", [False, True])
def test_effectful_calls_are_kept(library: Any, effect: bool) -> None:
    def f(x: Any) -> Any:
        ffi.ffi_call("test.Count", ShapedArray(x.shape, F32), has_side_effect=effect)(x)
        return x + 1

    compiled = corejax.jit(f)
    before = library.NumberOfCalls()
    corejax.block_until_ready(compiled(jnp.ones(3)))
    assert library.NumberOfCalls() - before == int(effect)


def test_a_primitive_whose_translation_is_a_kernel(library: Any) -> None:
    double_p = Primitive("test_ffi.scale", abstract_eval=lambda x: x)
    defjvp(double_p, lambda t, x: t * -1.5)

    @xla_translations.register(double_p)
    def _(ctx: Any, in_avals: Any, in_vals: Any) -> Any:
        return ctx.custom_call("test.Scale", *in_vals, out=in_avals[0], attributes=ATTRIBUTES)

    x = jnp.arange(3.0)
    np.testing.assert_array_equal(double_p.bind(x), scaled(np.asarray(x)))
    slope = corejax.jit(corejax.grad(lambda x: jnp.sum(double_p.bind(x))))
    np.testing.assert_array_equal(slope(x), np.full(3, -1.5))


def test_differentiation_says_what_to_write(library: Any) -> None:
    with pytest.raises(NotImplementedError, match="ffi_call"):
        corejax.grad(lambda x: jnp.sum(scale(x)))(jnp.ones(2))


def test_the_jaxpr_is_readable_and_checked(library: Any) -> None:
    from corejax.ir import check_jaxpr

    program = corejax.make_jaxpr(scale)(jnp.ones(2))
    check_jaxpr(program)
    assert "ffi_call[" in str(program)
    assert "target='test.Scale'" in str(program)


def test_another_handler_of_that_name_is_refused(library: Any) -> None:
    ffi.register_ffi_target("test.Scale", library.Scale)
    with pytest.raises(ValueError, match=r"'test\.Scale' on platform 'cpu' is registered"):
        ffi.register_ffi_target("test.Scale", library.Running)


def test_a_target_that_nobody_registered() -> None:
    with pytest.raises(
        corejax.errors.BackendError, match=r"'nobody\.knows' on this platform, which primitive 'ffi_call' at"
    ):
        ffi.ffi_call("nobody.knows", ShapedArray((2,), F32))(jnp.ones(2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ffi.register_ffi_target("a", lambda: 0), TypeError, "PyCapsule or a function"),
        (lambda: ffi.ffi_call("a", 3), TypeError, "a result type must have a shape and a dtype, got 3"),
        (lambda: ffi.ffi_call("a", (), vmap_method="fast"), ValueError, "vmap_method must be one of"),
        (lambda: ffi.ffi_call("a", ())(n=jnp.ones(2)), TypeError, "attribute 'n' has to be a static"),
        (lambda: ffi.ffi_call("a", ())(n=np.ones((2, 2))), TypeError, "attribute 'n'"),
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("target", ["", "a\0b", "xla_ffi_python_cpu_callback", 3])
def test_names_that_are_no_kernels(target: Any) -> None:
    """The last but one is XLA's own, and would read a list that is not there."""
    with pytest.raises(ValueError, match="the target must be a name passed to register_ffi_target"):
        ffi.ffi_call(target, ShapedArray((3,), F32))


def test_kernels_that_refuse_a_call() -> None:
    from corejax_xla_backend import _jaxlib

    x = jnp.ones((3, 3))
    _jaxlib.register_lapack()
    for target, message in (("test.unknown", "No FFI handler registered"), ("lapack_spotrf_ffi", "Wrong number")):
        call = ffi.ffi_call(target, x.aval)
        for fun in (call, corejax.jit(call), corejax.jit(lambda x, call=call: call(x) + 1)):
            with pytest.raises((RuntimeError, ValueError), match=message):
                np.asarray(fun(x))


def test_lapack_without_the_package_around_it() -> None:
    program = (
        "import sys, corejax, corejax.numpy as jnp\n"
        "factor = corejax.jit(jnp.linalg.cholesky)(4 * jnp.eye(2))\n"
        "assert factor.tolist() == [[2, 0], [0, 2]] and 'scipy.linalg' not in sys.modules\n"
        "import scipy.linalg\n"
        "assert scipy.linalg.cython_lapack.__pyx_capi__ and scipy.linalg.cython_blas.__pyx_capi__\n"
        "assert scipy.linalg.cholesky(4 * jnp.eye(2)).tolist() == [[2, 0], [0, 2]]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("vmap_method", ["sequential", "expand_dims", "broadcast_all"])
def test_results_in_the_memory_of_operands(library: Any, vmap_method: str) -> None:
    def call(x: Any) -> Any:
        kernel = ffi.ffi_call("test.Scale", x.aval, vmap_method=vmap_method, input_output_aliases={0: 0})
        return kernel(x, **ATTRIBUTES)

    x = jnp.arange(6.0).reshape(2, 3)
    for f in (call, corejax.jit(call), corejax.vmap(call), corejax.jit(corejax.vmap(call))):
        np.testing.assert_array_equal(f(x), scaled(np.asarray(x)))
        np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))
    assert "output_operand_aliases" in corejax.jit(call).lower(x).as_text()
    both = corejax.jit(lambda x: (call(x), x + 1))(x)
    np.testing.assert_array_equal(both[1], x + 1)


def test_aliases_that_cannot_be(library: Any) -> None:
    x = jnp.arange(6.0)
    for bad in ({0: 1}, {0: 0, 1: 0}, {"x": 0}, {0: -1}):
        with pytest.raises(ValueError, match=r"input_output_aliases must map numbers of operands .* less than 1, got"):
            ffi.ffi_call("test.Scale", x.aval, input_output_aliases=bad)
    other = ShapedArray((3,), F32)
    with pytest.raises(ValueError, match=r"have result 0, f32\[3\], in the memory of operand 0, which is f32\[6\]"):
        ffi.ffi_call("test.Scale", other, input_output_aliases={0: 0})(x, **ATTRIBUTES)
    with pytest.raises(ValueError, match="of operand 4, which does not exist"):
        ffi.ffi_call("test.Scale", x.aval, input_output_aliases={4: 0})(x, **ATTRIBUTES)


def test_types_of_state() -> None:
    address = ctypes.create_string_buffer(8)
    capsule = ffi.pycapsule(ctypes.addressof(address))
    assert type(capsule).__name__ == "PyCapsule"
    with pytest.raises(ValueError, match="must have the key 'type_id', and may have 'type_info', got \\['id'\\]"):
        ffi.register_ffi_type("acme.state", {"id": capsule})
    with pytest.raises(TypeError, match="type_id must be a PyCapsule, got 3"):
        ffi.register_ffi_type("acme.state", {"type_id": 3})
    with pytest.raises(ValueError, match="expected a function of a library, or an address, got 0"):
        ffi.pycapsule(0)
    ffi.register_ffi_target_as_batch_partitionable("acme.scale")
