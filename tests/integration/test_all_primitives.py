"""Every array primitive on its samples: eager, compiled, by StableHLO's reference, batched, differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
from corejax.extend import ShapedArray, get_aval, primitives, registries
from corejax.ir import check_jaxpr, parse_jaxpr, same_jaxpr
from corejax_testing.calls import Call
from corejax_testing.checks.extremes import require_agreement
from corejax_testing.extremes import DTYPES, Filled, fills, variants
from corejax_testing.outcomes import NotApplicable
from tests.integration.samples import names_of, samples

NAMES = names_of("lax_basic")
HALF = ("float16", "bfloat16")
PART = 10  # one in ten
PARTS = 10  # of a primitive's samples; the default run takes one, of each primitive another
# Iterations in float64 for every dtype: of their own size and empty.
LONG_TO_COMPILE = (
    *("igamma", "igamma_grad_a", "igammac", "polygamma", "random_gamma_grad", "regularized_incomplete_beta", "zeta"),
)


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


@pytest.mark.parametrize("name", NAMES)
def test_it_has_samples_and_every_rule(name: str) -> None:
    assert list(samples(name))
    for kind in ("impl", "abstract_eval", "jvp", "vmap", "xla_translation"):
        assert registries[kind].find(primitives[name]) is not None, kind


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
def test_compiled_agrees_with_eager(name: str, part: int) -> None:
    first, *others = samples(name)
    calls = [first, *(others[-1:] if name in LONG_TO_COMPILE else others[part::PARTS])]
    together = corejax.jit(lambda operands: [call(*xs) for call, xs in zip(calls, operands, strict=True)])
    for call, outs in zip(calls, together([call.values for call in calls]), strict=True):
        for eager, compiled in zip(call(*call.values), outs, strict=True):
            assert get_aval(eager) is compiled.aval
            close(compiled, eager, str(call))


def _aborts_the_interpreter(call: Call) -> bool:
    """Where StableHLO's interpreter ends the process instead of giving an answer (jaxlib 0.10 to 0.12)."""
    if call.primitive.name in ("dot_general", "ragged_dot_general", "scaled_dot"):  # an empty contraction
        return any(x.size == 0 for x in call.values)
    if call.primitive.name in ("div", "rem"):  # integer division by zero
        return call.values[1].dtype.kind in "iu" and not np.all(call.values[1])
    return False


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
def test_stablehlo_reference_interpreter_agrees(name: str, part: int) -> None:
    adapter = pytest.importorskip("corejax_xla_backend._jaxlib")
    first, *others = samples(name)
    for call in (first, *others[part::PARTS]):
        if _aborts_the_interpreter(call):
            continue
        lowered = corejax.jit(call).lower(*call.values)
        operands = (*lowered.consts, *call.values)
        used = [np.asarray(x) for x, keep in zip(operands, lowered.lowering.kept, strict=True) if keep]
        for got, wanted in zip(adapter.reference_eval(lowered.as_text(), used), call(*call.values), strict=True):
            close(got, wanted, str(call))


def _in_dtype(name: str, dtype: Any) -> list[list[Filled]]:
    """The first example in a dtype, of its own size and empty, at the dtype's extremes."""
    call = next(samples(name))
    if "extremes" in call.example.skip:
        return []
    found = [list(fills(each)) for each in variants(call, [dtype])]
    return [case for case in found if case]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_compiled_agrees_with_eager_at_extremes(dtype: Any) -> None:
    """A part of what is not elementwise, each dtype another; `corejax verify --check extremes` takes everything."""
    arrays = [name for name in NAMES if not {"elementwise", "higher_order"} & set(primitives[name].tags)]
    part = arrays[DTYPES.index(dtype) % PART :: PART]
    with np.errstate(all="ignore"):
        require_agreement([case for name in part for case in _in_dtype(name, dtype)])


@pytest.mark.parametrize("name", NAMES)
def test_program_is_well_typed_and_round_trips(name: str) -> None:
    for call in samples(name):
        program = corejax.make_jaxpr(call)(*call.values)
        check_jaxpr(program)
        assert same_jaxpr(parse_jaxpr(program.pretty(consts=True)), program)


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", NAMES)
def test_vmap_agrees_with_a_loop(name: str, part: int) -> None:
    first, *others = samples(name)
    for call in (first, *others[part::PARTS]):
        count = len(call.values)
        for mapped in range(1, 2**count):
            axes = [0 if mapped >> i & 1 else None for i in range(count)]
            batch = [
                x if ax is None else np.stack([x, x[..., ::-1] if x.ndim and isinstance(given, ShapedArray) else x])
                for x, given, ax in zip(call.values, call.example.operands, axes, strict=True)
            ]
            outs = corejax.vmap(call, in_axes=tuple(axes))(*batch)
            for k in range(2):
                element = [b if ax is None else b[k] for b, ax in zip(batch, axes, strict=True)]
                for got, wanted in zip(outs, call(*element), strict=True):
                    close(np.asarray(got)[k], wanted, f"{call} {axes}")


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_agree_with_finite_differences(name: str) -> None:
    for call in samples(name):
        try:
            fun, arrays, _ = call.moving()
        except NotApplicable:
            continue
        wide = [*(x.dtype for x in arrays), *(a.dtype for a in call.avals_out)]
        if any(dtype != np.float64 for dtype in wide) or "jvp" in call.example.skip:
            continue
        rng = np.random.default_rng(0)
        tangents = [rng.standard_normal(x.shape) for x in arrays]
        outs, pushed = corejax.jvp(fun, arrays, tangents)
        eps = 1e-6
        plus, minus = (fun(*(x + s * eps * t for x, t in zip(arrays, tangents, strict=True))) for s in (1, -1))
        for tangent, after, before in zip(pushed, plus, minus, strict=True):
            same = np.asarray(after) == np.asarray(before)  # infinite ones, say
            with np.errstate(invalid="ignore"):
                slope = np.where(same, 0.0, (np.asarray(after) - np.asarray(before)) / (2 * eps))
            np.testing.assert_allclose(tangent, slope, rtol=1e-5, atol=1e-6)
        _, pullback = corejax.vjp(fun, *arrays)
        out_cts = [rng.standard_normal(np.shape(out)) for out in outs]
        cts = pullback(out_cts)
        forward = float(sum(np.sum(np.asarray(t) * ct) for t, ct in zip(pushed, out_cts, strict=True)))
        backward = float(sum(np.sum(np.asarray(c) * t) for c, t in zip(cts, tangents, strict=True)))
        np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
