"""`jit(f).trace(...)`, `.lower()`, `.compile()`: what each step knows, against what jax says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax import grad, jit, lax, stages, vmap

pytest.importorskip("jaxlib")

X = np.float32([1, 2, 3])
W = np.ones((3, 3), np.float32)


def f(params: Any, x: Any, *, scale: Any) -> Any:
    return {"y": lax.mul(lax.dot(params["w"], x), lax.full((3,), 1.0) * scale)}


def jax_stages() -> Any:
    jax = pytest.importorskip("jax")
    return jax.jit(lambda params, x, *, scale: {"y": params["w"] @ x * scale}, donate_argnums=1).trace(
        {"w": W}, X, scale=2.0
    )


def test_a_trace() -> None:
    traced = jit(f, donate_argnums=1).trace({"w": W}, X, scale=2.0)
    oracle = jax_stages()
    assert type(traced) is stages.Traced and traced.fun_name == "f"
    assert str(traced.in_tree) == str(oracle.in_tree)
    (params, x), kwargs = traced.args_info
    (o_params, o_x), o_kwargs = oracle.args_info
    for mine, theirs in ((params["w"], o_params["w"]), (x, o_x), (kwargs["scale"], o_kwargs["scale"])):
        assert (mine.shape, mine.dtype, mine.donated) == (theirs.shape, theirs.dtype, theirs.donated)
    assert (traced.out_info["y"].shape, traced.out_info["y"].dtype) == ((3,), np.float32)
    assert traced.in_avals[1]["scale"].weak_type and traced.out_avals["y"].shape == (3,)
    assert traced.donate_argnums == oracle.donate_argnums == (1,)
    outs = corejax.eval_jaxpr(traced.jaxpr.jaxpr, traced.jaxpr.consts, [W, X, 2.0])
    np.testing.assert_allclose(outs[0], 2 * W @ X, rtol=1e-6)


def test_a_lowered_program() -> None:
    lowered = jit(f).trace({"w": W}, X, scale=2.0).lower()
    assert type(lowered) is stages.Lowered
    assert lowered.as_text("stablehlo") == lowered.as_text() and lowered.as_text("hlo").startswith("HloModule jit_f")
    assert lowered.cost_analysis()["flops"] >= 18
    assert "stablehlo.dot" in str(lowered.compiler_ir()) and "dot" in lowered.compiler_ir("hlo").as_hlo_text()
    with pytest.raises(ValueError, match="the dialects are 'stablehlo' and 'hlo', got 'mhlo'"):
        lowered.as_text("mhlo")
    for_cuda = jit(lambda x: x + 1).trace(X).lower(lowering_platforms=("cuda",))
    assert "stablehlo.add" in for_cuda.as_text()
    with pytest.raises(ValueError, match="lowering_platforms must be a tuple of one platform"):
        jit(lambda x: x + 1).trace(X).lower(lowering_platforms=("cuda", "cpu"))


def test_a_compiled_program() -> None:
    compiled = jit(f).lower({"w": W}, X, scale=2.0).compile()
    for _ in range(3):  # the first call, and calls that go through the dispatcher
        np.testing.assert_allclose(compiled({"w": W}, X, scale=3.0)["y"], 3 * W @ X, rtol=1e-6)
        with pytest.raises(TypeError, match=r"compiled for f32\[3,3\] as argument params\['w'\], got f32\[2,3\]"):
            compiled({"w": W[:2]}, X, scale=3.0)
        with pytest.raises(TypeError, match="structure"):
            compiled({"w": W}, X)
    other = jit(lambda x: x * 2).lower(1.0).compile()
    for transformed, x in ((vmap(other), X), (jit(other), 1.0), (grad(other), 1.0)):
        with pytest.raises(TypeError, match="compiled for one signature, and cannot be transformed"):
            transformed(x)
    sizes = compiled.memory_analysis()
    assert sizes.argument_size_in_bytes == sizes["argument"] == 52 and sizes.output_size_in_bytes == 12
    with pytest.raises(AttributeError, match="temp_size_in_bytes"):
        _ = sizes.nothing


def test_debug_nans_in_every_call_of_a_compiled_program() -> None:
    compiled = jit(lambda x: lax.log(x)).lower(X).compile()
    for _ in range(3):
        assert np.isnan(np.asarray(compiled(-X))).all()
    with corejax.debug_nans():
        for _ in range(3):
            with pytest.raises(FloatingPointError, match="log"):
                compiled(-X)
    assert np.isnan(np.asarray(compiled(-X))).all()


def test_peak_memory_counts_temporaries() -> None:
    def g(x: Any) -> Any:
        return lax.dot(lax.dot(x, x), lax.dot(x, x))

    sizes = jit(g).lower(np.ones((128, 128), np.float32)).compile().memory_analysis()
    assert sizes["temp"] > 0
    assert sizes["peak"] == sizes.peak_memory_in_bytes >= sizes["argument"] + sizes["output"] + sizes["temp"]


def test_xla_computation() -> None:
    text = corejax.xla_computation(lambda x, n: lax.sin(x) * n, static_argnums=1)(X, 3).as_hlo_text()
    assert "sine" in text and "f32[3]" in text
