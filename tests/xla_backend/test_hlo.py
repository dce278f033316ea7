"""`corejax_xla_backend.hlo`: what a translation means, by StableHLO's reference interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax
import corejax.numpy as cnp
from corejax.extend import Primitive, stage_closed
from corejax_xla_backend import hlo


def test_reference_eval_takes_constants_and_drops_unused_arguments() -> None:
    shift = np.arange(3, dtype=np.float32)
    lowered = corejax.jit(lambda x, unused: {"a": x * 2.0 + shift, "b": x}).lower(shift, np.float32(0))
    a, b = hlo.reference_eval(lowered, shift, np.float32(0))
    np.testing.assert_array_equal(a, 3 * shift)
    np.testing.assert_array_equal(b, shift)


def test_reference_eval_of_other_types_is_refused() -> None:
    lowered = corejax.jit(lambda x: x * 2.0).lower(np.float32(1))
    with pytest.raises(TypeError, match="main takes"):
        hlo.reference_eval(lowered, np.ones(3, np.float32))


def test_what_ends_the_interpreter_is_refused() -> None:
    primitive = Primitive("test_hlo.called_back", impl=np.sin, abstract_eval=lambda x: x)
    with pytest.warns(corejax.errors.DerivedRuleWarning):
        lowered = corejax.jit(primitive.bind).lower(np.float32(1))
    with pytest.raises(RuntimeError, match=r"ends the process on stablehlo\.custom_call"):
        hlo.reference_eval(lowered, np.float32(1))


class _Exporter:
    """An object that exports a capsule of DLPack."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_host_functions_run_programs_on_arrays_of_other_libraries() -> None:
    signatures = []

    def stage(avals: Any) -> Any:
        signatures.append(avals)
        return stage_closed(lambda x, unused: [cnp.sin(x), cnp.asarray(np.arange(3)) + x.shape[0]], avals)

    call = hlo.host_function(stage, "f", lambda capsule: np.from_dlpack(_Exporter(capsule)))
    for dtype in (np.float32, np.float64):
        x = np.linspace(0, 1, 5, dtype=dtype)
        for _ in range(2):
            sines, counted = call([x, x])
            np.testing.assert_allclose(sines, np.sin(x), rtol=1e-6)
            assert sines.dtype == dtype
            assert list(counted) == [5, 6, 7]
    assert len(signatures) == 2
