"""Elementwise primitives, conversions and rearrangements in every dtype: run as compiled, at extreme values too.

Primitives, their params and numbers of operands come from their examples, so that a new row is among them. A program of
each dtype has the results: those of every second, third, fourth or sixth primitive, each dtype others.
`make test-slow` has the others, and HYPOTHESIS_PROFILE=explore more of them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax
from corejax import lax
from corejax.extend import Array, Primitive, ShapedArray, dtypes, load_everything, primitives
from corejax_testing import extremes as kit
from corejax_testing.contributions import examples_of
from corejax_testing.extremes import FLUSHED

load_everything()

EVERYTHING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
ELEMENTWISE = ("corejax_lax_basic.elementwise", "corejax_lax_basic.conversion")
SPECIAL = ("corejax_lax_basic.special",)  # long programs: a few of them, in float32
REARRANGING = ("corejax_lax_basic.shape",)
# XLA has no types for the others.
DTYPES = [d for name, d in dtypes.LONG_NAMES.items() if name not in ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn")]
PARTS = {"int2": 2, "int4": 2, "int32": 2, "float32": 2, "complex64": 3, "bfloat16": 3}

# Each kind of dtype; the others are `slow`.
QUICK = {
    "bool",
    "uint8",
    "int4",
    "int32",
    "float4_e2m1fn",
    "float8_e4m3fn",
    "float8_e8m0fnu",
    "bfloat16",
    "float32",
    "complex64",
}

ULPS = 8  # of results of the real and imaginary parts, relative to the modulus
LESS_ACCURATE = {"log1p": 128, "atanh": 128}  # XLA's in float64, where it changes from one formula to another
COMPLEX_ULPS = 64


def parts_of(dtype: Any) -> int:
    """In how many programs the cases of a dtype are; of each dtype another one is in the default run."""
    if EVERYTHING:
        return 1
    return PARTS.get(dtype.name, 6 if dtypes.is_float(dtype) and dtype.itemsize == 1 else 4)


def quick_and_slow(dtype: Any) -> Iterator[Any]:
    for part in range(count := parts_of(dtype)):
        quick = dtype.name in QUICK and part == DTYPES.index(dtype) % count
        yield pytest.param(dtype, part, marks=() if quick else pytest.mark.slow, id=f"{dtype.name}-{part}")


class Case(NamedTuple):
    """An application of a primitive."""

    primitive: Primitive
    params: dict[str, Any]
    operands: list[np.ndarray]

    def __call__(self, *operands: Any) -> list[Any]:
        out = self.primitive.bind(*operands, **self.params)
        return list(out) if self.primitive.multiple_results else [out]


def extremes(dtype: Any) -> np.ndarray:
    """Limits of a dtype, and numbers at which functions go wrong; of complex ones also infinite parts and NaN."""
    if dtypes.is_complex(dtype):
        parts = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan)
        return np.array([complex(*pair) for pair in itertools.product(parts, parts)], dtype)
    return kit.extremes(dtype)


def usual(dtype: Any) -> np.ndarray:
    """Numbers of many sizes."""
    rng = np.random.default_rng(0)
    if dtypes.is_complex(dtype):
        return (rng.normal(size=200) + 1j * rng.normal(size=200)).astype(dtype)
    if not dtypes.is_float(dtype) or dtype.itemsize == 1:
        return extremes(dtype)[:0]
    size = 3.0 if dtype.itemsize == 2 else 12.0
    return (rng.normal(size=300) * np.exp(rng.uniform(-size, size, 300))).astype(dtype)


def operands_of(types: list[Any]) -> list[np.ndarray]:
    """Extreme values in every combination; of one operand, also usual ones."""
    if len(types) == 1:
        return [np.concatenate([extremes(types[0]), usual(types[0])])]
    step = {1: 1, 2: 3 if dtypes.is_complex(types[-1]) else 1}.get(len(types), 3)
    values = [x[::step] if x.size > 6 else x for x in map(extremes, types)]
    chosen = np.meshgrid(*(np.arange(x.size) for x in values), indexing="ij")
    return [x[i.reshape(-1)] for x, i in zip(values, chosen, strict=True)]


def of_package(packages: tuple[str, ...]) -> Iterator[tuple[Primitive, Any]]:
    """Primitives, each with its examples of different params."""
    for name in sorted(primitives):
        primitive, seen = primitives[name], set()
        if primitive.provenance.module.startswith(packages):
            for example in examples_of(name):
                key = (len(example.operands), tuple(example.params.items()))
                if key not in seen:
                    seen.add(key)
                    yield primitive, example


def elementwise(dtype: Any, packages: tuple[str, ...]) -> Iterator[Case]:
    if dtype.name == "float8_e8m0fnu":  # scales, which no arithmetic is done with
        return
    for primitive, example in of_package(packages):
        types = [dtype] * len(example.operands)
        if primitive.name == "select_n":
            types[0] = np.dtype(bool if len(types) == 3 else np.int32)
        try:
            primitive.abstract(tuple(ShapedArray((5,), t) for t in types), dict(example.params))
        except (TypeError, ValueError):
            continue  # not for this dtype
        if primitive.name not in ("convert_element_type", "bitcast_convert_type"):
            yield Case(primitive, dict(example.params), operands_of(types))


def conversions(dtype: Any) -> Iterator[Case]:
    x = np.concatenate([extremes(dtype), usual(dtype)])
    for target in DTYPES if EVERYTHING else DTYPES[DTYPES.index(dtype) % 5 :: 5]:
        yield Case(lax.convert_element_type_p, {"new_dtype": target, "weak_type": False}, [x])


def rearrangements(dtype: Any) -> Iterator[Case]:
    """The operands of examples, filled with extreme values."""
    for primitive, example in of_package(REARRANGING):
        avals = [
            x if isinstance(x, ShapedArray) else ShapedArray(np.shape(x), np.asarray(x).dtype) for x in example.operands
        ]
        if all(dtypes.is_inexact(aval.dtype) for aval in avals):
            filled = [np.resize(extremes(dtype), aval.shape).astype(dtype) for aval in avals]
            yield Case(primitive, dict(example.params), filled)


def cases_of(dtype: Any, part: int) -> list[Case]:
    special = list(elementwise(dtype, SPECIAL)) if EVERYTHING or dtype == np.float32 else []
    found = [
        *elementwise(dtype, ELEMENTWISE),
        *special[:: 1 if EVERYTHING else 4],
        *rearrangements(dtype),
        *conversions(dtype),
    ]
    return found[part :: parts_of(dtype)]


def differences(case: Case, run: Any, compiled: Any) -> np.ndarray:
    """Where two results differ by more than rounding."""
    dtype = run.dtype
    if not dtypes.is_inexact(dtype):
        return run != compiled
    a, b = (x.astype(np.complex128 if dtypes.is_complex(dtype) else np.float64) for x in (run, compiled))
    info = dtypes.finfo(dtype)
    if dtypes.is_complex(dtype):  # up to signs of zeros
        size = np.where(np.isfinite(a), np.abs(a), 0)
        slack = COMPLEX_ULPS * float(info.eps) * size + 4 * float(info.eps)
        return ~(_close(a.real, b.real, slack) & _close(a.imag, b.imag, slack))
    slack = LESS_ACCURATE.get(case.primitive.name, ULPS) * np.maximum(
        float(info.eps) * np.abs(a), float(info.smallest_subnormal)
    )
    close = _close(a, b, slack)
    if dtype.name in FLUSHED:
        close |= (np.abs(a) <= 2 * float(info.tiny)) & (b == 0)
    signed = case.primitive.name not in ("max", "min", "clamp") and dtype.name != "float4_e2m1fn"
    zero = (a == 0) & (b == 0) & signed
    return ~close | (zero & (np.signbit(a) != np.signbit(b)))


def _close(a: Any, b: Any, slack: Any) -> Any:
    with np.errstate(all="ignore"):
        return (np.isnan(a) & np.isnan(b)) | (a == b) | (np.abs(a - b) <= slack)


@pytest.mark.parametrize(("dtype", "part"), [case for dtype in DTYPES for case in quick_and_slow(dtype)])
@np.errstate(all="ignore")
def test_run_as_compiled(dtype: Any, part: int) -> None:
    cases = cases_of(dtype, part)
    assert cases

    def every(operands: Any) -> list[Any]:
        return [case(*given) for case, given in zip(cases, operands, strict=True)]

    given = [case.operands for case in cases]
    wrong = []
    runs, programs = every([[*map(Array, x)] for x in given]), corejax.jit(every)(given)
    rearranging = {p.name for p, _ in of_package(REARRANGING)}
    for case, outs, compiled in zip(cases, runs, programs, strict=True):
        for run, out in zip(outs, compiled, strict=True):
            assert run.aval == out.aval, case
            a, b = np.asarray(run), np.asarray(out)
            at = np.argwhere(differences(case, a, b))[:3]
            if at.size and case.primitive.name in rearranging:
                wrong.append((case.primitive.name, case.params))
            elif at.size:
                shown = [([x[tuple(i)] for x in case.operands], a[tuple(i)], b[tuple(i)]) for i in at]
                wrong.append((case.primitive.name, case.params, "operands, run, compiled:", shown))
    assert not wrong
