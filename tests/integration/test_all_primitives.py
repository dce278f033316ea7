"""Every array primitive on its samples: eager, compiled, by StableHLO's reference, batched, differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.lax as lax
from corejax.extend import get_aval, primitives, registries
from corejax.ir import check_jaxpr, parse_jaxpr, same_jaxpr
from tests.integration.samples import TABLE

corejax.plugins.manager().load_primitives()
NAMES = sorted(TABLE)
HALF = ("float16", "bfloat16")


def close(got: Any, wanted: Any, name: str) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    tolerance = 4e-2 if got.dtype.name in HALF else 2e-5 if got.dtype.name in ("float32", "complex64") else 1e-9
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance, err_msg=name)


def test_every_primitive_of_lax_basic_has_samples_and_every_rule() -> None:
    owned = {name for name, p in primitives.items() if p.provenance.plugin == "lax_basic"}
    extra = {"real", "imag", "conj", "complex", "floor", "ceil", "is_finite", "square"}
    assert owned - extra <= set(TABLE), owned - extra - set(TABLE)
    assert set(TABLE) <= owned
    for name in sorted(owned):
        for kind in ("impl", "abstract_eval", "jvp", "vmap", "xla_translation"):
            found = registries[kind].find(primitives[name])
            assert found is not None, (name, kind)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_agrees_with_eager(name: str) -> None:
    for fun, args in TABLE[name](lax):
        eager = fun(*args)
        compiled = corejax.jit(fun)(*args)
        assert get_aval(eager) is compiled.aval
        close(compiled, eager, name)


def _aborts_the_interpreter(name: str, args: tuple[Any, ...]) -> bool:
    """Where StableHLO's interpreter ends the process instead of giving an answer (jaxlib 0.10 to 0.12)."""
    if name == "dot_general":  # an empty contraction
        return any(np.size(a) == 0 for a in args)
    if name in ("div", "rem"):  # integer division by zero
        return np.asarray(args[1]).dtype.kind in "iu" and not np.all(args[1])
    return False


@pytest.mark.parametrize("name", NAMES)
def test_stablehlo_reference_interpreter_agrees(name: str) -> None:
    adapter = pytest.importorskip("corejax_xla_backend._jaxlib")
    for fun, args in TABLE[name](lax):
        if _aborts_the_interpreter(name, args):
            continue
        lowered = corejax.jit(fun).lower(*args)
        used = [np.asarray(a) for a, keep in zip((*lowered.consts, *args), lowered.kept, strict=True) if keep]
        outs = adapter.reference_eval(lowered.as_text(), used)
        close(outs[0], fun(*args), name)


@pytest.mark.parametrize("name", NAMES)
def test_program_is_well_typed_and_round_trips(name: str) -> None:
    for fun, args in TABLE[name](lax):
        program = corejax.make_jaxpr(fun)(*args)
        check_jaxpr(program)
        if not program.consts:
            assert same_jaxpr(parse_jaxpr(str(program)), program)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_agrees_with_a_loop(name: str) -> None:
    for fun, args in TABLE[name](lax):
        arrays = [np.asarray(a) for a in args]
        for mapped in range(1, 2 ** len(arrays)):
            axes = [0 if mapped >> i & 1 else None for i in range(len(arrays))]
            batch = [
                a if ax is None else np.stack([a, a[..., ::-1] if a.ndim else a])
                for a, ax in zip(arrays, axes, strict=True)
            ]
            got = corejax.vmap(fun, in_axes=tuple(axes))(*batch)
            for k in range(2):
                element = [b if ax is None else b[k] for b, ax in zip(batch, axes, strict=True)]
                close(np.asarray(got)[k], fun(*element), f"{name} {axes}")


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_agree_with_finite_differences(name: str) -> None:
    for fun, args in TABLE[name](lax):
        arrays = [np.asarray(a) for a in args]
        if not arrays or any(a.dtype != np.float64 for a in arrays) or name in ("sign", "rem"):
            continue
        rng = np.random.default_rng(0)
        tangents = [rng.standard_normal(a.shape) for a in arrays]
        out, tangent = corejax.jvp(fun, arrays, tangents)
        if np.asarray(out).dtype != np.float64 or not np.all(np.isfinite(out)):
            continue
        eps = 1e-6
        plus, minus = (fun(*(a + s * eps * t for a, t in zip(arrays, tangents, strict=True))) for s in (1, -1))
        if name == "stop_gradient":
            assert not np.any(np.asarray(tangent))
            continue
        np.testing.assert_allclose(tangent, (np.asarray(plus) - np.asarray(minus)) / (2 * eps), rtol=1e-5, atol=1e-6)
        _, pullback = corejax.vjp(fun, *arrays)
        ct = rng.standard_normal(np.shape(out))
        cts = pullback(ct)
        forward = float(np.sum(np.asarray(tangent) * ct))
        backward = float(sum(np.sum(np.asarray(c) * t) for c, t in zip(cts, tangents, strict=True)))
        np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
