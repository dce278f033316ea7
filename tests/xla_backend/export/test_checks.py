"""What an artifact cannot hold is refused with the primitive, the user's line, and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import corejax
from corejax import export, ffi, lax
from corejax.export import DisabledSafetyCheck
from corejax.extend import Primitive, ShapedArray
from corejax_xla_backend.export import checks

X = np.arange(3, dtype=np.float32)
kernel = ffi.ffi_call("acme.scale", ShapedArray((3,), np.float32))
effectful = ffi.ffi_call("acme.log", ShapedArray((3,), np.float32), has_side_effect=True)


def test_kernels_are_refused_with_line_and_remedy() -> None:
    f = corejax.jit(lambda x: lax.map(kernel, x[None]) + 1)
    with pytest.raises(
        ValueError, match=r"primitive 'ffi_call' calls the kernel 'acme.scale' \(traced at .*test_checks.py:\d+"
    ) as raised:
        export.export(f)(X)
    assert "DisabledSafetyCheck.custom_call('acme.scale')" in str(raised.value)


def test_kernels_are_let_through_where_they_are_vouched_for() -> None:
    f = corejax.jit(lambda x: kernel(x) + 1)
    with pytest.raises(ValueError, match=r"acme\.scale"):
        export.export(f, disabled_checks=[DisabledSafetyCheck.custom_call("acme.other")])(X)
    allowed = [DisabledSafetyCheck.custom_call("acme.scale")]
    found = export.deserialize(export.export(f, disabled_checks=allowed)(X).serialize())
    assert found.disabled_safety_checks == tuple(allowed) and "@acme.scale" in found.mlir_module()
    with pytest.raises(ValueError, match=r"a function that was exported before calls the kernel 'acme.scale'"):
        export.export(corejax.jit(found.call))(X)
    export.export(corejax.jit(found.call), disabled_checks=allowed)(X)


def test_effects_are_kept() -> None:
    allowed = [DisabledSafetyCheck.custom_call("acme.log")]
    exported = export.export(corejax.jit(lambda x: (effectful(x), x)[1]), disabled_checks=allowed)(X)
    found = export.deserialize(exported.serialize())
    assert found.unordered_effects == ("ffi",)
    text = corejax.jit(lambda x: (found.call(x), x)[1]).lower(X).as_text()
    assert "has_side_effect = true" in text


def test_callbacks_are_refused() -> None:
    host_p = Primitive("test.host", impl=lambda x: 2 * x, abstract_eval=lambda x: ShapedArray(x.shape, x.dtype))
    vouched = [DisabledSafetyCheck.custom_call("xla_ffi_python_cpu_callback")]
    with (
        warnings.catch_warnings(),
        pytest.raises(
            NotImplementedError, match=r"export of f: primitive 'test.host' calls back into Python.*test_checks.py:\d+"
        ),
    ):
        warnings.simplefilter("ignore")

        @corejax.jit
        def f(x: Any) -> Any:
            return host_p.bind(x)

        export.export(f, disabled_checks=vouched)(X)


def test_ordered_effects_are_refused() -> None:
    said_p = Primitive("test.said", effects=("ordered:speech",), abstract_eval=lambda x: x, impl=lambda x: x)
    with pytest.raises(NotImplementedError, match=r"'test.said' has the ordered effect 'speech' \(traced at .*checks"):
        checks.check_effects("f", corejax.make_jaxpr(corejax.jit(said_p.bind))(X))


def test_state_is_clean_after_a_refusal() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"acme\.scale"):
            export.export(corejax.jit(kernel))(X)
    np.testing.assert_array_equal(export.export(corejax.jit(lambda x: x + 1))(X).call(X), X + 1)


def test_odd_names_in_texts() -> None:
    odd = ffi.ffi_call('acme "quoted" loc(#corejax0)', ShapedArray((3,), np.float32))
    with pytest.raises(ValueError, match=r"""calls the kernel 'acme "quoted" loc\(#corejax0\)' \(traced at .*\.py:"""):
        export.export(corejax.jit(odd))(X)
