"""corejax under the name jax, in processes of their own: the tests' own process has the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corejax_as_jax import scanning
from corejax_as_jax.version import JAX_VERSION, PATH

HERE = Path(__file__).parent
PROGRAM = str(HERE / "program_with_primitives.py")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


@pytest.mark.engine  # the program compares products bit for bit, which the engine compiles
def test_a_program_runs_by_the_module() -> None:
    result = run("-m", "corejax_as_jax", PROGRAM)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


@pytest.mark.engine  # the program compares products bit for bit, which the engine compiles
def test_a_program_and_its_subprocesses_run_by_the_command() -> None:
    result = run("-m", "corejax", "as-jax", "--", PROGRAM, "--subprocess")
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


WORKERS = """
import concurrent.futures, importlib.metadata, multiprocessing
import jax
import jax.numpy as jnp


def call(x):
    return float(jnp.sin(x) * 0), jax.__corejax__ != "", importlib.metadata.version("jax")


if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        print(pool.submit(call, 1.0).result())
"""


def test_workers_of_a_program_get_corejax(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WORKERS)
    result = run("-m", "corejax_as_jax", str(tmp_path / "program.py"))
    assert result.stdout == f"{(0.0, True, JAX_VERSION)}\n", result.stderr


THREADS = """
import faulthandler, importlib, threading
import jax
faulthandler.dump_traceback_later(50, exit=True)
NAMES = (
    "random.normal", "tree_util.tree_map", "numpy.sin", "scipy.stats.norm.pdf", "lax.scan",
    "interpreters.mlir.lower_fun", "nn.relu", "tree.map", "scipy.linalg.solve", "experimental.io_callback", "vmap",
)


def use(name):
    module, _, name = f"jax.{name}".rpartition(".")
    done.append(callable(getattr(importlib.import_module(module), name)))


done = []
threads = [threading.Thread(target=use, args=(name,)) for name in NAMES * 3]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(done) - 3 * len(NAMES))
"""


def test_threads_import_at_once(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(THREADS)
    result = run("-m", "corejax_as_jax", str(tmp_path / "program.py"))
    assert (result.stdout, result.returncode) == ("0\n", 0), result.stderr


def test_code_modules_and_settings_of_the_environment(tmp_path: Path) -> None:
    code = "import sys, jax.numpy as jnp; print(jnp.ones(1).dtype, sys.argv, __name__)"
    result = run("-m", "corejax_as_jax", "-c", code, "a", JAX_ENABLE_X64="1", JAX_NO_SUCH_SETTING="1")
    assert result.stdout == "float64 ['-c', 'a'] __main__\n", result.stderr
    (tmp_path / "test_it.py").write_text("import jax\ndef test_it(): assert jax.__corejax__\n")
    options = ("-q", "-p", "corejax_as_jax.pytest_plugin", "-p", "xdist", "-n", "1", "-c", os.devnull)
    result = run("-m", "pytest", *options, str(tmp_path))
    assert result.returncode == 0, result.stdout
    usage = run("-m", "corejax_as_jax", "-m")
    assert usage.returncode == 2 and "usage: python -m corejax_as_jax" in usage.stderr
    absent = run("-m", "corejax_as_jax", str(tmp_path / "absent.py"))
    assert absent.returncode == 1 and absent.stderr.startswith("python -m corejax_as_jax: no such file: ")


def test_programs_run_in_the_background_unless_the_environment_says_otherwise() -> None:
    code = "import jax; print(jax.config.jax_cpu_enable_async_dispatch)"
    assert run("-m", "corejax_as_jax", "-c", code).stdout == "True\n"
    for name in ("JAX_CPU_ENABLE_ASYNC_DISPATCH", "COREJAX_CPU_ENABLE_ASYNC_DISPATCH"):
        assert run("-m", "corejax_as_jax", "-c", code, **{name: "0"}).stdout == "False\n"
    without = run("-c", f"import corejax_as_jax; corejax_as_jax.install(); {code[:10]}", COREJAX_PLUGINS="-xla_backend")
    assert without.returncode == 0, without.stderr


def test_a_callback_that_raises_is_named_by_the_programs_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("JAX_")]:
        monkeypatch.delenv(name)  # settings that corejax lacks load all plugins, which declares their frames
    (tmp_path / "program.py").write_text("""import jax
from jax.experimental import io_callback
def fail(x): raise ValueError("in the callback")
def call(how): jax.block_until_ready(jax.jit(how)(1.0))
for how in (
    lambda x: jax.pure_callback(fail, jax.typeof(x), x),
    lambda x: io_callback(fail, jax.typeof(x), x),
):
    try: call(how)
    except jax.errors.JaxRuntimeError as error: print(error, *error.__notes__)
""")
    result = run("-m", "corejax_as_jax", str(tmp_path / "program.py"))
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result.stderr
    for number, line in enumerate(lines, 6):
        assert "in the callback" in line and f"program.py:{number}:" in line and "callbacks.py" not in line


def test_settings_without_effect_are_accepted_and_have_jaxs_defaults() -> None:
    code = """import jax, json
from corejax_as_jax.settings import WITHOUT_EFFECT
print(json.dumps({name: jax.config.read(f"jax_{name}") for name in WITHOUT_EFFECT}))
jax.config.update("jax_use_shardy_partitioner", False)
assert jax.config.jax_use_shardy_partitioner is False
try: jax.config.update("jax_dump_ir_to", "here")
except AttributeError as error: assert "dump_ir_to" in str(error)
else: raise AssertionError
"""
    result = run("-m", "corejax_as_jax", "-c", code)
    assert result.returncode == 0, result.stderr
    theirs = pytest.importorskip("jax").config.values
    ours = json.loads(result.stdout)
    assert ours == {name: theirs[f"jax_{name}"] for name in ours}


def test_libraries_ask_which_frames_are_the_programs() -> None:
    code = """import jax, sys
from jax._src.traceback_util import include_frame
def f(x):
    frame = sys._getframe()
    while frame is not None:
        if include_frame(frame):
            print(frame.f_code.co_name)
        frame = frame.f_back
    return x
jax.jit(f)(1.0)"""
    result = run("-m", "corejax_as_jax", "-c", code)
    assert result.stdout == "f\n<module>\n", result.stderr


def test_operands_and_results_of_equations_are_lists() -> None:
    code = """import jax, jax.extend
jaxpr = jax.make_jaxpr(lambda x: jax.jit(lambda x: x * x + 1)(x))(1.0).jaxpr
call, = jaxpr.eqns
assert call.outvars == jaxpr.outvars and [*jaxpr.constvars] + call.invars == jaxpr.invars
product = call.params["jaxpr"].eqns[0]
assert product.replace(invars=product.invars[:1] + [product.invars[1]]).primitive is product.primitive
call = jax.extend.core.jaxpr_as_fun(jax.extend.core.ClosedJaxpr(jaxpr, []))
print(*map(float, jax.core.eval_jaxpr(jaxpr, [], 3.0) + jax.jit(call)(3.0)))"""
    result = run("-m", "corejax_as_jax", "-c", code)
    assert result.stdout == "10.0 10.0\n", result.stderr


def test_reduce_axes_of_gradients_is_empty() -> None:
    code = """import jax
print(jax.grad(lambda x: x * x, reduce_axes=())(3.0), jax.value_and_grad(lambda x: x * x, 0, reduce_axes=())(3.0)[1])
try:
    jax.grad(lambda x: x, reduce_axes=("i",))
except NotImplementedError as error:
    print(error)"""
    result = run("-m", "corejax_as_jax", "-c", code)
    assert result.stdout.startswith("6.0 6.0\ngrad: reduce_axes must be empty, got ('i',)"), result.stderr


NAMES_OF_LIBRARIES = """
import sys
from typing import Optional
import corejax_as_jax; corejax_as_jax.install()
import jax, jax.random, jax.scipy.stats.norm
from jax.interpreters import ad, batching, mlir

def place(ctx: mlir.LoweringRuleContext, device: Optional[jax.Device]): ...
mlir.register_lowering(jax.extend.core.Primitive("mine"), mlir.lower_fun(lambda x: x))
loaded = {"jaxlib", "importlib.metadata", "corejax_random.distributions", "corejax_xla_backend._lowering"}
assert not loaded & set(sys.modules), loaded & set(sys.modules)
assert mlir.ir.Value is mlir.Value and mlir.flatten_ir_values([]) == []
"""


def test_what_libraries_name_when_they_are_imported_does_not_import_jaxlib() -> None:
    result = run("-c", NAMES_OF_LIBRARIES)
    assert result.returncode == 0, result.stderr


DEVICES = """
import corejax_as_jax; corejax_as_jax.install()
import jax
from unittest import mock

device = jax.devices()[0]
assert isinstance(device, jax.Device) and issubclass(type(device), jax.Device) and issubclass(jax.Device, jax.Device)
assert not isinstance(3, jax.Device) and not issubclass(int, jax.Device)
stand_in = mock.Mock(spec=jax.Device)  # as in the tests of MJX
stand_in.platform = "gpu"
assert isinstance(stand_in, jax.Device) and "memory_stats" in dir(jax.Device)
"""


def test_the_class_of_devices_stands_for_jaxlibs() -> None:
    result = run("-c", DEVICES)
    assert result.returncode == 0, result.stderr


def test_the_path_has_a_package_and_its_metadata() -> None:
    assert (PATH / "jax" / "__init__.py").is_file()
    assert f"Version: {JAX_VERSION}\n" in (PATH / f"jax-{JAX_VERSION}.dist-info" / "METADATA").read_text()
    assert run("-m", "corejax", "as-jax", "--path").stdout == f"{PATH}\n"


def test_a_scan_lists_the_names_that_are_missing(tmp_path: Path) -> None:
    (tmp_path / "a_library").mkdir()
    (tmp_path / "a_library" / "__init__.py").write_text(
        "import jax\nimport jax.numpy as jnp\nfrom jax._src import core, no_such\n"
        "from jax.extend.core import Primitive\n"
        "f = jax.jit(jnp.sin)\ng = core.no_such_name\nh = jnp.no_such_name.attribute\n"
    )
    result = run("-m", "corejax", "as-jax", "--scan", "a_library", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1, result.stderr
    *lines, note = result.stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["a_library:", *(f"jax.{n}" for n in ("_src.core.no_such_name", "_src.no_such")), *names[3:]]
    assert names[3:] == ["jax.numpy.no_such_name"] and "other versions of JAX" in note
    assert "no package 'no_such_library'" in run("-m", "corejax", "as-jax", "--scan", "no_such_library").stderr


def test_names_of_a_module() -> None:
    tree = scanning.ast.parse("from jax import numpy as jnp\nimport jax.scipy.special\njnp.linalg.norm(jax.x)")
    assert {"jax.numpy", "jax.scipy.special", "jax.numpy.linalg.norm"} <= set(scanning.names_in(tree))
