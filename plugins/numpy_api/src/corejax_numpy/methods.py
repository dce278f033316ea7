"""Methods of arrays and tracers that have other arguments than the functions of `corejax.numpy`.

Every other NumPy method is the function itself, with the array as the first argument (see `plugin`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corejax.extend import dtypes, remembered
from corejax_lax_basic import lax
from corejax_numpy import moments
from corejax_numpy import numpy as jnp
from corejax_numpy.arguments import Axis, refuse_out


def clip(self: Any, min: Any = None, max: Any = None, out: None = None) -> Any:
    """Limit the elements to an interval; see `corejax.numpy.clip`."""
    refuse_out("clip", out)
    return jnp.clip(self, min, max)


def compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """Take slices along an axis where `condition` is true; for axis None, elements of the flattened array."""
    return jnp.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """Return the indices of the nonzero elements, one array for each axis; under a trace, `size` gives their number."""
    return jnp.nonzero(self, size=size, fill_value=fill_value)


def _spread_method(function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return `var` or `std` as a method, without the function's argument for the mean."""

    def method(
        self: Any,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        correction: float | None = None,
    ) -> Any:
        return function(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)

    lax.named(method, function.__name__, doc)
    return remembered(method)


def round_(self: Any, decimals: int | None = None, out: None = None) -> Any:
    """Round to a number of decimals; see `corejax.numpy.round`.

    Raises:
        NotImplementedError: the dtype is bool, or integers are to be rounded to tens.
    """
    refuse_out("round", out)
    if dtypes.is_bool(self.dtype):
        raise NotImplementedError(f"round: booleans cannot be rounded, this array is {self.aval.str_short()}")
    return jnp.round(self, decimals or 0)


def round_to_integer(self: Any, ndigits: int | None = None) -> Any:
    """Round as Python's `round` does: to default integers, or to floating numbers if `ndigits` is given."""
    out = round_(self, ndigits)
    return out.astype(dtypes.default_int_dtype()) if ndigits is None and dtypes.is_float(out.dtype) else out


def array_namespace(self: Any, /, *, api_version: str | None = None) -> Any:
    """Return `corejax.numpy`, for code that is written against the Array API standard.

    Raises:
        ValueError: the version of the standard is not supported.
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", jnp.__array_api_version__):
        raise ValueError(
            f"__array_namespace__: api_version is {jnp.__array_api_version__!r} or an earlier one, got {api_version!r}"
        )
    return jnp


METHODS: Mapping[str, Any] = {
    **{f.__name__: f for f in (clip, compress, nonzero)},
    "__array_namespace__": array_namespace,
    "__round__": round_to_integer,
    "round": round_,
    "std": _spread_method(moments.std, "Return the standard deviation over axes; see `corejax.numpy.std`."),
    "var": _spread_method(moments.var, "Return the variance over axes; see `corejax.numpy.var`."),
}
