"""The one module that touches jaxlib, alone and beside jax in one process."""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
from collections import OrderedDict, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("jaxlib")
jl = pytest.importorskip("corejax_xla_backend._jaxlib")

SOURCE = Path(jl.__file__).parents[2]
HAS_JAX = importlib.util.find_spec("jax") is not None
Point = namedtuple("Point", "x y")


class Aval:
    """An abstract value, interned as corejax's are."""

    known: ClassVar[dict[Any, Aval]] = {}
    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool

    def __new__(cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False) -> Aval:
        key = (tuple(shape), np.dtype(dtype), weak_type)
        if key not in cls.known:
            self = cls.known[key] = object.__new__(cls)
            self.shape, self.dtype, self.weak_type = key
        return cls.known[key]


class Array:
    __slots__ = ("_buf", "aval")

    def __init__(self, _buf: Any, aval: Any = None) -> None:
        self._buf = _buf
        self.aval = _buf.aval if aval is None else aval

    def numpy(self) -> np.ndarray:
        return jl.to_numpy(self._buf)


SCALARS = {bool: np.bool_, int: np.int32, float: np.float32, complex: np.complex64}


def to_buffer(value: Any) -> Any:
    array = np.asarray(value, dtype=SCALARS.get(type(value)))
    return jl.put(array, Aval(array.shape, array.dtype, type(value) in SCALARS))


def tensor(shape: tuple[int, ...], dtype: Any) -> str:
    with jl.new_context():
        return f"tensor<{''.join(f'{size}x' for size in shape)}{jl.element_type(dtype)}>"


def elementwise(operation: str, aval: Any, count: int) -> Any:
    """``main`` that folds ``count`` arguments of one type with a binary operation."""
    kind = tensor(aval.shape, aval.dtype)
    arguments = ", ".join(f"%{i}: {kind}" for i in range(count))
    total, lines = "%0", []
    for i in range(1, count):
        lines.append(f"%t{i} = stablehlo.{operation} {total}, %{i} : {kind}\n")
        total = f"%t{i}"
    return jl.parse_module(
        f"func.func public @main({arguments}) -> {kind} {{\n{''.join(lines)}return {total} : {kind}\n}}"
    )


class Jit:
    """A tiny jit: sums all leaves, which have one shape; counts how often Python was needed."""

    def __init__(self, result: Any = lambda x: x, **options: Any) -> None:
        self.registry = jl.DispatchRegistry(Array, lambda _, children: Array(*children), to_buffer)
        self.registry.make_buffers()
        self.misses: list[Any] = []
        self.result = result
        self.call = jl.fast_dispatch("f", self.miss, self.registry, **options)

    def miss(self, *args: Any, **kwargs: Any) -> Any:
        self.misses.append((args, kwargs))
        buffers = self.registry.inputs(args, kwargs)
        if buffers is None:
            return "slow", None
        shape = np.broadcast_shapes(*(b.aval.shape for b in buffers))
        aval = Aval(shape, buffers[0].aval.dtype, all(b.aval.weak_type for b in buffers))
        executable = jl.compile_module(elementwise("add", aval, len(buffers)), [aval])
        result = self.result(Array(*executable(*buffers)))
        return result, jl.make_fastpath_data(executable, result, self.registry, num_args=len(buffers))


def array(*values: float, dtype: Any = np.float32) -> Array:
    host = np.array(values, dtype)
    return Array(jl.put(host, Aval(host.shape, host.dtype)))


# -- release ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0.10.2", "0.11.0", "0.12.0.1", "0.12.7.dev20260101"])
def test_supported_releases(text: str) -> None:
    assert jl.check_version(text) >= (0, 10, 2)


@pytest.mark.parametrize("text", ["0.10.1", "0.9.2", "0.13.0", "1.0", "unknown"])
def test_other_releases_are_refused_by_name(text: str) -> None:
    with pytest.raises(jl.JaxlibError, match=text):
        jl.check_version(text)


# -- types, constants, the reference interpreter ---------------------------------------------------


def sample(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "c":
        return np.array([[1 + 2j, -3.5j, 0], [4, 5 - 1j, 2]], dtype)
    low, high = (1, 2) if dtype.name == "float8_e8m0fnu" else (0, 1)  # which has no zero
    return np.array([[low, high, high], [high, low, high]]).astype(dtype)


@pytest.mark.parametrize("dtype", jl.DTYPES, ids=str)
def test_every_dtype_as_argument_of_the_reference_interpreter(dtype: np.dtype) -> None:
    kind = tensor((2, 3), dtype)
    text = f"func.func @main(%x: {kind}) -> ({kind}, {kind}) {{ return %x, %x : {kind}, {kind} }}"
    for got in jl.reference_eval(text, [sample(dtype)]):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, sample(dtype))


def test_reference_interpreter_lowers_chlo_and_checks_arguments() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    (got,) = jl.reference_eval(text, [np.array([0.5, 1], np.float32)])
    np.testing.assert_allclose(got, [0.5204999, 0.8427007], rtol=1e-6)
    with pytest.raises(TypeError, match=r"tensor<2xf32>.*tensor<2xf64>"):
        jl.reference_eval(text, [np.array([0.5, 1])])


def test_types_that_stablehlo_lacks() -> None:
    with jl.new_context(), pytest.raises(TypeError, match="datetime64"):
        jl.element_type(np.dtype("datetime64[s]"))


def test_private_functions_and_portable_bytes() -> None:
    module = jl.parse_module("""func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.add %x, %x : tensor<2xf32>
      return %0 : tensor<2xf32> }
    func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = func.call @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
      %1 = func.call @double(%0) : (tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32> }""")
    for each in (module, jl.from_portable(jl.to_portable(module))):
        np.testing.assert_array_equal(jl.reference_eval(each, [np.array([1, 2], np.float32)])[0], [4, 8])


# -- buffers and programs --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", jl.DTYPES, ids=str)
def test_buffers_keep_dtype_and_values(dtype: np.dtype) -> None:
    if dtype.name.startswith("float6") and jl.FEATURES.version < (0, 12):
        pytest.skip("0.10.2 has no 6-bit buffers")
    value = sample(dtype)
    buffer = jl.put(value, Aval(value.shape, dtype))
    back = jl.to_numpy(buffer)
    assert back.dtype == dtype and not back.flags.writeable and buffer.aval is Aval(value.shape, dtype)
    np.testing.assert_array_equal(back, value)


def aligned(count: int) -> np.ndarray:
    raw = np.zeros(count * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * 4].view(np.float32)


def test_only_immutable_arrays_are_shared() -> None:
    value = aligned(16)
    aval = Aval((16,), np.float32)
    assert jl.put(value, aval).unsafe_buffer_pointer() != value.ctypes.data
    assert jl.put(value, aval, alias=True).unsafe_buffer_pointer() == value.ctypes.data
    view = value.view()
    view.flags.writeable = False
    assert not jl.is_immutable(view)


def test_odd_layouts_and_byte_orders() -> None:
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    for value in (
        table,
        np.asfortranarray(table),
        table[:, ::-1],
        table.astype(">f4"),
        np.broadcast_to(table[0], (2, 3)),
    ):
        np.testing.assert_array_equal(jl.to_numpy(jl.put(value, Aval((2, 3), np.float32))), value)
    with pytest.raises(TypeError, match="<U1"):
        jl.put(np.array(["a"]), Aval((1,), np.dtype("<U1")))


def test_compiled_program() -> None:
    aval = Aval((3,), np.float64)
    executable = jl.compile_module(elementwise("multiply", aval, 2), [aval])
    x = jl.put(np.array([1.0, 2, 3]), aval)
    for run in (executable, executable, executable.execute_slowly):
        (out,) = run(x, x)
        assert out.aval is aval
        np.testing.assert_array_equal(jl.to_numpy(out), [1, 4, 9])
    jl.block_until_ready([out, x])
    assert executable.cost_analysis()["flops"] >= 3
    assert executable.memory_analysis()["argument"] == 48
    assert "multiply" in executable.optimized_hlo()
    (out,) = jl.load(executable.serialize(), [aval])(x, x)
    np.testing.assert_array_equal(jl.to_numpy(out), [1, 4, 9])


def test_program_without_arguments_and_without_results() -> None:
    aval = Aval((), np.int32)
    constant = """func.func public @main() -> tensor<i32> {
      %0 = stablehlo.constant dense<7> : tensor<i32>
      return %0 : tensor<i32> }"""
    (out,) = jl.compile_module(jl.parse_module(constant), [aval])()
    assert jl.to_numpy(out) == 7
    nothing = jl.parse_module("func.func public @main(%x: tensor<i32>) { return }")
    assert jl.compile_module(nothing, [])(out) == []


def test_a_view_outlives_its_buffer() -> None:
    x = jl.put(np.arange(4, dtype=np.float32), Aval((4,), np.float32))
    view = jl.to_numpy(x)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    x.delete()
    np.testing.assert_array_equal(view, [0, 1, 2, 3])


def test_deleted_buffers_are_refused() -> None:
    x = jl.put(np.zeros(3, np.float32), Aval((3,), np.float32))
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jl.to_numpy(x)


def test_host_callback() -> None:
    text = """func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x)
        {api_version = 4 : i32, has_side_effect = false, backend_config = {index = 0 : ui64}}
        : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> }"""
    aval = Aval((2,), np.float32)
    executable = jl.compile_module(jl.parse_module(text), [aval], callbacks=[lambda x: (np.asarray(x) * 3,)])
    (out,) = executable(jl.put(np.array([1, 2], np.float32), aval))
    np.testing.assert_array_equal(jl.to_numpy(out), [3, 6])


# -- the dispatcher --------------------------------------------------------------------------------


def test_second_call_skips_python() -> None:
    f = Jit()
    for _ in range(3):
        out = f.call(array(1, 2), array(3, 4))
        assert type(out) is Array and out.aval is Aval((2,), np.float32)
        np.testing.assert_array_equal(out.numpy(), [4, 6])
    assert len(f.misses) == 1
    f.call(array(1, 2, 3), array(3, 4, 5))
    assert len(f.misses) == 2


def test_numpy_arrays_and_scalars_are_put_on_the_device() -> None:
    f = Jit()
    for value in (array(2.5), np.array([2.5], np.float32), array(2.5)):
        assert f.call(value, np.float32(1)).numpy() == 3.5
    assert len(f.misses) == 2, "an Array and an ndarray are two signatures"


def test_weak_and_strong_scalars_differ() -> None:
    f = Jit()
    for _ in range(2):
        assert f.call(1.5).aval is Aval((), np.float32, True)
        assert f.call(np.float32(1.5)).aval is Aval((), np.float32)
        assert f.call(2).aval is Aval((), np.int32, True)
    assert len(f.misses) == 3


def test_wide_types_are_kept() -> None:
    f = Jit()
    narrow, wide = np.array([1, 2], np.float32), np.array([1e300, 2])
    for _ in range(2):
        assert f.call(narrow, narrow).aval.dtype == np.float32
        assert f.call(wide, wide).numpy()[0] == 2e300
    assert len(f.misses) == 2


def test_pytrees_and_keywords() -> None:
    f = Jit(lambda x: {"a": [x], "b": (None, Point(x=(), y={}))})
    args = {"b": (array(1), None), "a": Point(array(2), [array(3)])}
    for _ in range(2):
        out = f.call(args, OrderedDict(z=array(4)), y=array(5))
        assert out["a"][0].numpy() == 15 and out["b"] == (None, Point((), {}))
    assert len(f.misses) == 1


def test_registered_containers() -> None:
    class Pair:
        def __init__(self, *items: Any) -> None:
            self.items = items

    f = Jit(lambda x: Pair(x))
    assert f.call(Pair(array(1), array(2))) == "slow", "an unknown class is a leaf that Python must handle"
    f.registry.register_node(Pair, lambda p: (p.items, None), lambda _, items: Pair(*items))
    for _ in range(2):
        assert f.call(Pair(array(1), array(2))).items[0].numpy() == 3
    assert len(f.misses) == 2


def test_what_the_dispatcher_does_not_know_goes_to_python() -> None:
    class Tracer:
        pass

    f = Jit()
    for value in (Tracer(), "text", object):
        for _ in range(2):
            assert f.call(value) == "slow"


def test_dict_keys_that_do_not_sort_are_refused() -> None:
    with pytest.raises(ValueError, match="sorting pytree dictionary keys"):
        Jit().call({1: array(1), "a": array(2)})


def test_static_arguments() -> None:
    seen = []

    def miss(x: Any, n: int, *, mode: str = "a") -> tuple[Any, None]:
        seen.append((n, mode))
        return x, None

    f = jl.fast_dispatch("f", miss, Jit().registry, static_argnums=[1], static_argnames=["mode"])
    f(array(1), 3, mode="b")
    assert seen == [(3, "b")]


def test_errors_of_conversion_reach_the_caller() -> None:
    with pytest.raises(TypeError, match="object"):
        Jit().call(np.array([object()]))


def test_context_value_is_part_of_the_signature() -> None:
    f, context = Jit(), jl.dispatch_context()
    try:
        for value in (0, 1, 0, 1):
            context.set_local(value)
            f.call(array(1))
    finally:
        context.set_local(jl.NO_CONTEXT)
    assert len(f.misses) == 2 and context.value == 0


def test_a_result_that_is_not_the_outputs_has_no_fast_path() -> None:
    f = Jit(lambda x: (x, array(1)))
    f.call(array(1))
    f.call(array(1))
    assert len(f.misses) == 2


def test_many_threads() -> None:
    f = Jit()
    f.call(array(1), array(2))
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda n: float(f.call(array(n), array(2)).numpy()[0]), range(200)))
    assert sums == [n + 2 for n in range(200)] and len(f.misses) == 1


def test_donated_arguments_are_gone_after_the_call() -> None:
    aval = Aval((1024,), np.float32)
    text = """func.func public @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024xf32> {
      %0 = stablehlo.add %x, %x : tensor<1024xf32>
      return %0 : tensor<1024xf32> }"""
    executable = jl.compile_module(jl.parse_module(text), [aval])
    x = jl.put(np.ones(1024, np.float32), aval)
    for _ in range(3):
        before, (x,) = x, executable(x)
        assert before.is_deleted()
    assert jl.to_numpy(x)[0] == 8


def test_dispatcher_is_collected() -> None:
    import weakref

    f = Jit()
    f.call(array(1))
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


# -- processes -------------------------------------------------------------------------------------


def run(code: str, **environment: str) -> str:
    import os

    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SOURCE}:{Path(__file__).parent}", **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ALL = """
import test_jaxlib_adapter as t
for name in ("second_call_skips_python", "weak_and_strong_scalars_differ", "wide_types_are_kept",
             "pytrees_and_keywords", "numpy_arrays_and_scalars_are_put_on_the_device",
             "compiled_program", "host_callback"):
    getattr(t, "test_" + name)()
dtypes = ("float32", "bool", "complex64", *(("bfloat16", "int4") if t.jl.FEATURES.copies_to_numpy else ()))
for dtype in dtypes:
    t.test_buffers_keep_dtype_and_values(next(each for each in t.jl.DTYPES if each.name == dtype))
"""
JAX = """
import jax, jax.numpy as jnp, numpy as np
g = jax.jit(lambda x, y: x + y)
assert g(jnp.ones(3), 1.0).dtype == jnp.float32 and g(np.ones(3), 1).dtype == jnp.float32
with jax.enable_x64(True):
    assert g(np.ones(3), 1.0).dtype == jnp.float64
with jax.disable_jit():
    assert g(jnp.ones(3), 1.0).sum() == 6
assert jax.grad(lambda x: jnp.sin(x).sum())(jnp.zeros(3)).sum() == 3
"""


SETTINGS = "\n".join(
    [
        f"with jax.enable_x64(True):{ALL}".replace("\n", "\n    "),
        f"with jax.debug_nans(True):{ALL}".replace("\n", "\n    "),
        "f = t.Jit(); f.call(t.array(1))",
        "with jax.disable_jit():",
        "    assert f.call(t.array(1)).numpy() == 1",
    ]
)


def test_nothing_imports_jax_which_may_come_later() -> None:
    alone = f"{ALL}import sys; assert 'jax' not in sys.modules\n"
    run(alone + JAX + ALL + JAX if HAS_JAX else alone)


@pytest.mark.skipif(not HAS_JAX, reason="jax is not installed")
@pytest.mark.parametrize(
    "code",
    [JAX + ALL + JAX + SETTINGS, pytest.param("import jax\n" + ALL + JAX, marks=pytest.mark.slow)],
    ids=["used before, and its settings", "imported before"],
)
def test_jax_in_the_same_process(code: str) -> None:
    run(code)


def test_several_cpu_devices() -> None:
    out = run(
        """
import corejax, numpy as np, test_jaxlib_adapter as t
jl = t.jl
corejax.config.update("num_cpu_devices", 3)
a, b, c = jl.devices()
x = t.array(1, 2)
assert jl.device_of(x._buf) == a == jl.default_device()
y = jl.copy_to(x._buf, c)
assert jl.device_of(y) == c and y.aval is x._buf.aval
executable = jl.compile_module(t.elementwise("add", y.aval, 2), [y.aval], b)
for arguments in ((x._buf, y), (y, y), (x._buf, y)):
    (out,) = executable(*arguments)
    assert jl.device_of(out) == b and list(jl.to_numpy(out)) == [2, 4]
(out,) = executable.execute_slowly(x._buf, y)
assert jl.device_of(out) == b and list(jl.to_numpy(out)) == [2, 4]
try:
    jl.check_cpu_devices(4)
except jl.BackendError as error:
    print(error)
"""
    )
    assert "already in use with 3" in out


def test_missing_and_unsuitable_jaxlib(tmp_path: Path) -> None:
    package = tmp_path / "jaxlib"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text("__version__ = '0.4.30'")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
try:
    import corejax_xla_backend._jaxlib
except ImportError as error:
    print(error)
"""
    assert "jaxlib 0.4.30 is installed" in run(code)
    (package / "version.py").unlink()
    assert "pip install" in run(code)


def test_unknown_platform() -> None:
    with pytest.raises(jl.BackendError, match="tpu"):
        jl.devices("tpu")
    if jl.cuda_plugin_path() is None:
        with pytest.raises(jl.BackendError, match="jax-cuda13-pjrt"):
            jl.devices("gpu")
