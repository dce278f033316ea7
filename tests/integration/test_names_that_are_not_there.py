"""A misspelt name is an error that says what was meant, and what users call the namespace, in every namespace."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from types import ModuleType

import pytest

import corejax

OF_PLUGINS = [
    "ad_checkpoint",
    "checkify",
    "checkpoint_policies",
    "checkpoints",
    "compilation_cache",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "distributed",
    "dlpack",
    "example_libraries.optimizers",
    "example_libraries.stax",
    "experimental.jet",
    "experimental.ode",
    "export",
    "ffi",
    "flatten_util",
    "image",
    "lax",
    "lax.linalg",
    "nn",
    "nn.initializers",
    "numpy",
    "numpy.fft",
    "numpy.linalg",
    "ops",
    "profiler",
    "random",
    "scipy.fft",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
    "sharding",
    "stages",
]
OF_THE_KERNEL = ["dtypes", "errors", "extend", "ir", "tree", "tree_util", "typing"]


@pytest.mark.parametrize("name", [*OF_PLUGINS, *OF_THE_KERNEL])
@pytest.mark.engine
def test_a_misspelt_name(name: str) -> None:
    namespace = importlib.import_module(f"corejax.{name}")
    public = [n for n in dir(namespace) if not n.startswith("_")]
    right = max(public, key=len)
    with pytest.raises(AttributeError) as caught:
        getattr(namespace, right + "x")
    module, told = str(caught.value).split(" has no attribute ")
    # Of a module with two names the one that was imported first, by another test perhaps.
    last = name.rpartition(".")[2]
    assert module.startswith("module 'corejax.") and module.endswith(f".{last}'")
    assert told == f"'{right}x'; did you mean '{right}'?"
    assert not hasattr(namespace, "_private") and not hasattr(namespace, "__special__")


@pytest.mark.parametrize("name", OF_PLUGINS)
def test_a_misspelt_import(name: str) -> None:
    with pytest.raises(ImportError, match="has no attribute 'gibberish'"):
        exec(f"from corejax.{name} import gibberish")


@pytest.mark.parametrize("name", ["debug_nanss", "jax_debug_nanss"])
def test_a_misspelt_setting(name: str) -> None:
    for ask in (lambda: getattr(corejax.config, name), lambda: corejax.config.update(name, True)):
        with pytest.raises(AttributeError, match="no setting named 'debug_nanss'; did you mean 'debug_nans'"):
            ask()


@pytest.mark.parametrize("name", ["custom_batching", "stages", "ops"])
def test_dir_lists_no_imports(name: str) -> None:
    namespace = importlib.import_module(f"corejax.{name}")
    shown = [n for n in dir(namespace) if not n.startswith("_")]
    assert shown and "annotations" not in shown
    assert not any(isinstance(getattr(namespace, n), ModuleType) for n in shown)


def test_dir_of_the_facade_lists_nothing_of_the_kernels_own() -> None:
    shown = set(dir(corejax))
    assert {"jit", "numpy", "tree_util", "config", "Array", "extend", "errors"} <= shown
    assert not shown & {"annotations", "avals", "texts", "trace", "tables", "restoring"}
    assert all(hasattr(corejax, name) for name in shown)


def test_settings_by_jaxs_names() -> None:
    config = corejax.config
    with config.override(jax_enable_x64=True, jax_debug_nans=True):
        assert config.jax_enable_x64 is True and config.read("jax_debug_nans") is True
    assert config.read("enable_x64") is False and config.platform_name == config.backend == config.jax_platforms
    with corejax.check_tracer_leaks():
        assert config.jax_check_tracer_leaks is True
    assert config.check_tracer_leaks is False


@pytest.mark.parametrize(
    ("namespace", "name", "suggestion"),
    [
        ("numpy", "sine", "sin"),
        ("numpy.linalg", "slove", "solve"),
        ("", "gard", "grad"),
        ("", "array", "corejax.numpy.array"),
        ("numpy", "relu", "corejax.nn.relu"),
        ("lax", "jit", "corejax.jit"),
        ("numpy", "gibberish", None),
    ],
)
def test_the_suggestion_for_a_name(namespace: str, name: str, suggestion: str | None) -> None:
    module = importlib.import_module(f"corejax.{namespace}".rstrip("."))
    text = "" if suggestion is None else f"; did you mean {suggestion!r}?"
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert type(caught.value) is AttributeError and caught.value.name == name
    told = str(caught.value).partition(" (note: switched off by ")[0]  # as `--plain` does
    assert told.endswith(f" has no attribute {name!r}{text}")
    with pytest.raises(ImportError) as failed:
        exec(f"from {module.__name__ if namespace else 'corejax'} import {name}")
    assert type(failed.value) is ImportError and str(failed.value) == str(caught.value)


@pytest.mark.parametrize("program", ["import corejax; corejax.gard", "import corejax; corejax.errors.PluginErorr"])
def test_python_adds_no_second_suggestion(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.lower().count("did you mean") == 1


@pytest.mark.parametrize(
    "program", ["import corejax.numpy.linalg", "import corejax.lax.linalg", "from corejax.scipy.linalg import inv"]
)
def test_the_import_of_a_missing_namespace_names_the_plugin(program: str) -> None:
    absent = """
import importlib_metadata
every = importlib_metadata.distributions
importlib_metadata.distributions = lambda: (d for d in every() if d.name != "corejax-linalg")
"""
    for prepare, setting, text in (
        ("", "-linalg", "plugin 'linalg' .* is switched off by COREJAX_PLUGINS=-linalg"),
        (absent, "-", "the plugin distribution corejax-linalg"),
    ):
        command, environment = [sys.executable, "-c", prepare + program], {**os.environ, "COREJAX_PLUGINS": setting}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        last = done.stderr.splitlines()[-1]
        assert re.match(f"corejax.errors.PluginMissingImportError: .* has no attribute 'linalg'; .*{text}", last), last
