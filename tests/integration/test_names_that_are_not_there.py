"""A misspelt name is an error that says what was meant, and what users call the namespace, in every namespace."""

from __future__ import annotations

import importlib
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
