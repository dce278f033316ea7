"""`corejax_xla_backend.hlo`: what a translation means, by StableHLO's reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import corejax
from corejax.extend import Primitive
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
