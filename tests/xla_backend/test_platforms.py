"""Platforms: functions that differ between them; how the plugin of NVIDIA is found and started, with a fake one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, jit, lax, vmap
from corejax.errors import BackendError
from corejax.extend import Primitive, abstract_eval_rules
from corejax_xla_backend._jaxlib import _client

pytest.importorskip("jaxlib")

X = np.float32([1, 2, 3])


def sin_here(x: Any) -> Any:
    return lax.platform_dependent(x, cpu=lax.sin, default=lambda x: lax.mul(x, 2.0))


def test_the_platforms_own_function() -> None:
    for run in (sin_here, jit(sin_here), vmap(sin_here), jit(vmap(jit(sin_here)))):
        np.testing.assert_allclose(run(X), np.sin(X), rtol=1e-6)
    total = lambda x: lax.reduce_sum(sin_here(x), (0,))
    for run in (grad(total), jit(grad(total)), grad(jit(total)), jit(vmap(grad(sin_here)))):
        np.testing.assert_allclose(run(X), np.cos(X), rtol=1e-6)
    elsewhere = jit(sin_here).trace(X).lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.multiply" in elsewhere and "sine" not in elsewhere and "case" not in elsewhere
    assert "stablehlo.sine" in jit(sin_here).lower(X).as_text()


def test_one_branch_in_64_bit_mode() -> None:
    with corejax.config.override(default_dtype_bits=64):
        assert float(jit(lambda x: lax.platform_dependent(x, tpu=lax.sin, default=lax.cos))(0.0)) == 1.0
        program = jit(lambda x: lax.platform_dependent(x, tpu=lax.sin, default=lax.cos)).lower(0.0).as_text()
    assert "cosine" in program and "sine" not in program.replace("cosine", "")


def test_other_platforms_functions_need_no_translation() -> None:
    only = Primitive("only_on_cuda")
    abstract_eval_rules.register(only)(lambda x: x)
    f = jit(lambda x: lax.platform_dependent(x, gpu=only.bind, cpu=lax.cos))
    np.testing.assert_allclose(f(X), np.cos(X), rtol=1e-6)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="pass a function for a platform"):
        lax.platform_dependent(X)
    with pytest.raises(TypeError, match="cpu must be a function, got 3"):
        lax.platform_dependent(X, cpu=3)
    for run in (lambda f: f(X), lambda f: jit(f)(X)):
        with pytest.raises(NotImplementedError, match="a function for cuda, but none for platform 'cpu'"):
            run(lambda x: lax.platform_dependent(x, cuda=lax.sin))


# -- a plugin of NVIDIA's, of which nothing is real ----------------------------------------------------------------


@pytest.fixture
def fake_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package as the wheel's: importing it fails, as it does where jax is missing."""
    package = tmp_path / "jax_plugins" / "xla_cuda13"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('no jax here')\n")
    (package / _client.CUDA_LIBRARY).write_text("no library\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(_client, "_clients", {"cpu": _client.client("cpu")})
    _client.default_backend.cache_clear()
    _client._first_device.cache_clear()
    yield package
    _client.default_backend.cache_clear()
    _client._first_device.cache_clear()


def test_the_library_is_found_without_importing_the_package(fake_cuda: Path) -> None:
    assert _client.cuda_plugin_path() == fake_cuda / _client.CUDA_LIBRARY


def test_the_plugin_is_loaded_initialized_and_the_default(fake_cuda: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    client = _client.xla_client
    monkeypatch.setattr(client, "pjrt_plugin_loaded", lambda name: bool(called))
    monkeypatch.setattr(client, "load_pjrt_plugin_dynamically", lambda *args: called.append(("load", *args)))
    monkeypatch.setattr(client, "pjrt_plugin_initialized", lambda name: len(called) > 1)
    monkeypatch.setattr(client, "initialize_pjrt_plugin", lambda *args: called.append(("initialize", *args)))
    monkeypatch.setattr(client, "generate_pjrt_gpu_plugin_options", dict)
    monkeypatch.setattr(
        client, "make_c_api_client", lambda *args: called.append(("make", *args)) or _client._clients["cpu"]
    )
    assert _client.default_backend() == "cuda" and _client.devices("gpu") == _client.devices("cpu")
    assert called == [
        ("load", "cuda", str(fake_cuda / _client.CUDA_LIBRARY)),
        ("initialize", "cuda"),
        ("make", "cuda", {}),
    ]


def test_a_library_that_cannot_be_loaded(fake_cuda: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_client.xla_client, "pjrt_plugin_loaded", lambda name: False)
    with pytest.raises(BackendError, match="the cuda backend failed to start"):
        _client.client("cuda")
    assert _client.default_backend() == "cpu", "what does not start is not the default"
    assert float(jit(lambda x: x + 1)(1.0)) == 2.0


def test_the_setting_platforms() -> None:
    assert corejax.config.platforms == corejax.config.backend == ""
    with corejax.config.override(platforms="cpu"):
        assert float(jit(lambda x: x + 1)(1.0)) == 2.0
    with corejax.config.override(platforms="tpu"), pytest.raises(BackendError, match="Unknown backend 'tpu'"):
        jit(lambda x: x + 1)(1.0)
