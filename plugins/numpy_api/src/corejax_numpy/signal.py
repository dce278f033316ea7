"""Convolution and correlation of sequences: `convolve` and `correlate`."""

from __future__ import annotations

from typing import Any

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_arguments, promote_dtypes

_MODES = ("full", "same", "valid")


def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute the discrete convolution of two sequences.

    Args:
        a: a non-empty vector.
        v: a non-empty vector.
        mode: "full", the default, for all shifts at which the sequences overlap; "same" for the middle of these, as
            many as the longer sequence has elements; "valid" for the shifts at which they overlap completely.
        precision: precision of the products, as for `lax.conv_general_dilated`.
        preferred_element_type: dtype of the sums and of the result; by default the operands' common floating dtype.

    Raises:
        ValueError: an array is empty or not a vector, or the mode is unknown.

    Source: `numpy.convolve`.
    """
    a, v = _sequences("convolve", a, v, mode, preferred_element_type)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _sliding(a, lax.rev(v, (0,)), mode, precision, preferred_element_type)


def correlate(a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Compute the cross-correlation of two sequences: sums of products with the conjugate of `v`, at each shift.

    The arguments are as for `convolve`, except that the default mode is "valid".

    Source: `numpy.correlate`.
    """
    a, v = _sequences("correlate", a, v, mode, preferred_element_type)
    if dtypes.is_complex(v.dtype):
        v = lax.conj(v)
    if a.shape[0] < v.shape[0]:
        return lax.rev(_sliding(v, a, mode, precision, preferred_element_type), (0,))
    return _sliding(a, v, mode, precision, preferred_element_type)


def _sequences(name: str, a: Any, v: Any, mode: str, preferred: Any) -> list[Any]:
    """Return both arguments in their common dtype, which is floating unless another dtype is preferred."""
    arrays = array_arguments(name, a, v)
    for x in arrays:
        if x.ndim != 1 or not x.shape[0]:
            raise ValueError(f"{name} takes arrays of one axis that are not empty, got {x.aval.str_short()}")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode is one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    return promote_dtypes(name, *arrays, inexact=preferred is None)


def _sliding(longer: Any, shorter: Any, mode: str, precision: Any, preferred: Any) -> Any:
    n, k = longer.shape[0], shorter.shape[0]
    low, high = {"full": (k - 1, k - 1), "same": (k // 2, k - k // 2 - 1), "valid": (0, 0)}[mode]
    out = lax.conv_general_dilated(
        lax.reshape(longer, (1, 1, n)),
        lax.reshape(shorter, (1, 1, k)),
        (1,),
        ((low, high),),
        precision=precision,
        preferred_element_type=preferred,
    )
    return lax.reshape(out, (out.shape[-1],))
