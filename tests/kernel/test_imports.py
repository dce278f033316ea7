"""What `import corejax` imports, and the kernel on its own with every plugin switched off."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import typing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {
    "click", "corejax_control_flow", "corejax_lax_basic", "corejax_numpy", "corejax_xla_backend", "hypothesis",
    "importlib_metadata", "jax", "jaxlib", "matplotlib", "opt_einsum", "packaging", "pluggy", "pytest", "rich", "scipy",
    "sklearn",
}  # fmt: skip


def run(code: str, *arguments: str, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COREJAX_")}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        env=env | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_small():
    modules = json.loads(
        run(
            "import sys, json; before = set(sys.modules); import corejax; "
            "print(json.dumps(sorted(set(sys.modules) - before)))"
        )
    )
    tops = {name.partition(".")[0] for name in modules}
    assert not tops & HEAVY
    third_party = tops - set(sys.stdlib_module_names) - {"corejax", "typing_extensions"}
    assert third_party <= {"numpy", "ml_dtypes", "optree"}, third_party
    ours = {name for name in modules if name.startswith("corejax")}
    # What only some need comes with its first use.
    for later in (
        "corejax.extend",
        "corejax.cli",
        "corejax.ir.printer",
        "corejax.plugins._plugin_manager",
    ):
        assert later not in ours, later
    assert len(ours) <= 82, sorted(ours)


def test_a_first_operation_is_small():
    """It needs neither pytrees nor jaxlib, random numbers or special functions."""
    modules = json.loads(
        run(
            "import json, sys; import numpy as np; import corejax.numpy as jnp; import corejax.random\n"
            "from corejax.scipy.stats import norm; x = jnp.asarray(np.ones(8, np.float32)); x + x\n"
            "print(json.dumps(sorted(sys.modules)))"
        )
    )
    tops = {name.partition(".")[0] for name in modules}
    assert not tops & {"jaxlib", "optree", "scipy"}
    packages = {name.rpartition(".")[0] for name in modules}
    assert not packages & {"corejax_random.distributions", "corejax_random.generators"}
    assert "corejax_scipy.special.gamma_functions" not in modules


def test_importing_does_not_look_for_plugins():
    run(
        "import sys, types\n"
        "sys.modules['importlib_metadata'] = types.ModuleType('importlib_metadata')  # it has nothing to read with\n"
        "import corejax\n"
        "corejax.vmap, corejax.Array, corejax.config, corejax.ShapeDtypeStruct\n"
        "assert 'corejax.plugins._plugin_manager' not in __import__('sys').modules\n"
    )


@pytest.mark.parametrize(
    "program",
    [
        "from corejax.extend.transforms import trace_stack; assert len(trace_stack()) == 1",
        "from corejax.extend import Primitive, vmap_rules; assert vmap_rules.derivations[-1].name == 'loop'",
        "from corejax.core import Tracer; from corejax.rules import jvp_rules; assert jvp_rules.adapt.value",
        "from corejax import eval_jaxpr; from corejax.ir.interpret import concrete_runner; concrete_runner.get()",
    ],
)
def test_the_first_name_that_needs_arrays_imports_the_whole_kernel(program):
    run(f"import sys, corejax; assert 'numpy' not in sys.modules; {program}", COREJAX_PLUGINS="")


def test_a_thread_that_imported_the_trace_stack_evaluates_by_what_another_one_imports():
    run(
        "import threading, corejax\n"
        "imported, evaluates = threading.Event(), threading.Event()\n"
        "def first():\n"
        "    global trace\n"
        "    import corejax.core.trace\n"
        "    imported.set(), evaluates.wait(30)\n"
        "    trace = corejax.core.trace.state.trace\n"
        "thread = threading.Thread(target=first)\n"
        "thread.start(), imported.wait(30)\n"
        "import corejax.interpreters.evaluation\n"
        "evaluates.set(), thread.join()\n"
        "assert trace is corejax.interpreters.evaluation.bottom\n"
    )


@pytest.mark.parametrize("module", ["corejax", "corejax.core", "corejax.extend", "corejax.tree", "corejax.tree_util"])
def test_a_module_lists_its_names_before_they_are_imported(module):
    run(f"import {module} as m; assert set(m.__all__) <= set(dir(m)); [getattr(m, name) for name in dir(m)]")


def test_a_check_is_turned_on_before_anything_else_is_imported():
    pytest.importorskip("corejax_explain")
    run(
        "import corejax\n"
        "corejax.config.update('debug_nans', True)\n"
        "from corejax.interpreters import checks\n"
        "assert checks.checks_values() and checks._checks is not None\n"
    )


ALONE = """
import sys
import typing
import numpy as np
import corejax as cj
from corejax.extend import Primitive, defjvp, defvectorized, transpose_rules
from corejax.extend.transforms import trace_stack
from corejax.errors import PluginMissingError

mul_p = Primitive("mul", impl=np.multiply, abstract_eval=lambda a, b: a if a.shape else b)
cos_p = Primitive("cos", impl=np.cos, abstract_eval=lambda a: a)
sin_p = Primitive("sin", impl=np.sin, abstract_eval=lambda a: a)
defvectorized(sin_p, cos_p)
cj.extend.vmap_rules.register(mul_p, lambda size, vals, dims: (mul_p.bind(*vals), 0))
defjvp(sin_p, lambda t, x: mul_p.bind(t, cos_p.bind(x)))
defjvp(cos_p, lambda t, x: mul_p.bind(t, sin_p.bind(x)))
defjvp(mul_p, lambda t, x, y: mul_p.bind(t, y), lambda t, x, y: mul_p.bind(x, t))
transpose_rules.register(mul_p, lambda ct, x, y: [mul_p.bind(ct, y), None])

X = np.array([0.5, 1.0], np.float32)
f = sin_p.bind
np.testing.assert_allclose(f(X), np.sin(X))
np.testing.assert_allclose(cj.jvp(f, (X,), (X,))[1], X * np.cos(X), rtol=1e-6)
np.testing.assert_allclose(cj.grad(f)(0.5), np.cos(np.float32(0.5)))
np.testing.assert_allclose(cj.vmap(cj.grad(f))(X), np.cos(X))
assert cj.vmap(lambda x: 2.0)(X).shape == (2,) and cj.vmap(f, out_axes=-1)(np.ones((2, 3))).shape == (3, 2)
gradient = cj.grad(lambda x: 2.0)(X[0])
assert float(gradient) == 0.0 and gradient.dtype == np.float32
assert str(cj.make_jaxpr(f)(X)).split() == "{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }".split()
two = lambda x: mul_p.bind(x, x)
for use, words in (
    (lambda: cj.Array(X) + 1, "corejax-lax-basic"),
    (lambda: cj.grad(two)(0.5) and cj.make_jaxpr(cj.grad(lambda x: mul_p.bind(f(x), cos_p.bind(x))))(0.5), "'add'"),
    (lambda: cj.jit, "corejax-xla-backend"),
    (lambda: cj.lax, "corejax-lax-basic"),
    (lambda: cj.jacfwd, "corejax-lax-basic"),
    (lambda: cj.dtypes.result_type, "corejax-lax-basic"),
):
    try:
        use()
    except PluginMissingError as error:
        assert words in str(error), error
    except ValueError as error:  # the toy's transpose rule is for one operand
        raise SystemExit(repr(error))
    else:
        raise SystemExit(f"no error that names {words}")
assert len(trace_stack()) == 1
assert not hasattr(cj.Array(X), "sum")
loaded = [m for m in sys.modules if m.partition(".")[0] in %r]
assert loaded == [], loaded
"""


def test_the_kernel_works_with_every_plugin_switched_off():
    plugins = {
        "corejax_control_flow",
        "corejax_lax_basic",
        "corejax_numpy",
        "corejax_testing",
        "corejax_xla_backend",
        "jaxlib",
        "jax",
    }
    run(ALONE % plugins, COREJAX_PLUGINS="")


def test_the_kernel_tests_pass_with_every_plugin_switched_off():
    """The toys are the only plugin that the tests of the interpreters use."""
    files = [
        "test_trace_stack.py",
        "interpreters/test_jvp.py",
        "interpreters/test_batching.py",
        "interpreters/test_linearize_transpose.py",
        "interpreters/test_decomposition.py",
    ]
    paths = [str(Path(__file__).parent / f) for f in files]
    code = (
        "import sys, pytest\n"
        f"status = pytest.main(['-q', '-p', 'no:cacheprovider', '-p', 'no:corejax_testing', *{paths!r}])\n"
        "loaded = [m for m in sys.modules if m.partition('.')[0].startswith(('corejax_', 'jaxlib'))]\n"
        "sys.exit(str(loaded) if loaded else int(status))\n"
    )
    run(code, COREJAX_PLUGINS="")


@pytest.mark.parametrize(
    "module", ["corejax.extend", "corejax.lax", "corejax.numpy", "corejax.errors", "corejax.tree_util"]
)
def test_nothing_is_searched_for_the_names_that_python_asks_for(module, monkeypatch):
    # `from module import name` asks for `__path__` each time.
    def refuse(*args):
        raise AssertionError(f"names like {args[0]!r} are searched")

    monkeypatch.setattr("difflib.get_close_matches", refuse)
    imported = importlib.import_module(module)
    getattr(imported, "__path__", None)
    assert not hasattr(imported, "__no_such_name__")


FIRST = """
import os, sys, traceback, warnings
import ml_dtypes, numpy as np, optree  # once, for all children

failed = []
for module in sys.argv[1:]:
    if (child := os.fork()) == 0:
        try:
            __import__(module)
            from corejax.core.primitive import Primitive
            from corejax.transforms.gradients import grad
            from corejax.transforms.vmapping import vmap

            warnings.simplefilter("ignore")  # the loop is slow
            transpose = lambda ct, x: [neg_p.bind(ct)]
            neg_p = Primitive("neg", impl=np.negative, abstract_eval=lambda a: a, transpose=transpose)
            same_p = Primitive("same", decomposition=lambda a: neg_p.bind(neg_p.bind(a)))
            copy_p = Primitive("copy", decomposition=lambda a: a, jvp=lambda x, t: (*x, same_p.bind(*t)))
            X = np.float32([1, 16])
            np.testing.assert_array_equal(vmap(same_p.bind)(X), X)
            np.testing.assert_array_equal(vmap(grad(copy_p.bind))(X), [1, 1])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(module)
sys.exit(f"first imports that fail: {failed}" if failed else 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_every_module_may_be_imported_first():
    """Derivations and slots are there, whether or not a module that lists names is used."""
    paths = (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "corejax").rglob("*.py"))
    modules = {".".join(path.parts).removesuffix(".__init__") for path in paths if path.name != "__main__"}
    run(FIRST, *sorted(modules), COREJAX_PLUGINS="")


@pytest.mark.parametrize("module", ["corejax.interpreters.jvp", "corejax.plugins._plugin_manager"])
def test_an_import_that_was_interrupted_is_made_again(module):
    """What was imported until then stays, and is no attribute of the new `corejax`."""
    out = run(
        "import importlib.abc, sys\n"
        "class Interrupt(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "try:\n"
        "    import corejax, corejax.extend\n"
        "    corejax.no_such_name\n"
        "except KeyboardInterrupt:\n"
        "    import corejax, corejax.extend\n"
        "    from corejax.core import array_methods\n"
        "    try:\n"
        "        corejax.no_such_name\n"
        "    except AttributeError:\n"
        "        print(len(corejax.extend.transforms.trace_stack()), corejax.core.array_methods is array_methods)\n",
    )
    assert out == "1 True\n"


@pytest.mark.parametrize(
    "module", ["corejax", "corejax.core", "corejax.extend", "corejax.tree", "corejax.random", "corejax.scipy.stats"]
)
def test_annotations_of_public_functions_can_be_evaluated(module):
    imported = importlib.import_module(module)
    for function in filter(inspect.isfunction, (getattr(imported, name) for name in imported.__all__)):
        assert isinstance(typing.get_type_hints(function), dict)
