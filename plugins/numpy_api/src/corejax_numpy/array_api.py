"""The inspection API of the Array API standard (2024.12): what `corejax.numpy` supports."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_numpy.devices import devices

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class ArrayNamespaceInfo:
    """The inspection interface that the standard defines for namespaces."""

    def capabilities(self) -> dict[str, Any]:
        """Return the supported optional features, as a dict.

        Boolean masks and data-dependent shapes are supported for concrete values only, so both are reported as False.
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return None, which stands for the default device in every argument `device`."""
        return None

    def devices(self) -> list[Any]:
        """Return the values that arguments `device` accept."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtype of each kind."""
        self._check(device)
        return {
            "real floating": dtypes.default_float_dtype(),
            "complex floating": dtypes.default_complex_dtype(),
            "integral": dtypes.default_int_dtype(),
            "indexing": dtypes.default_int_dtype(),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """Return the supported dtypes of the standard, by name.

        Args:
            device: a device; all devices support the same dtypes.
            kind: `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real floating"`, `"complex
                floating"`, `"numeric"`, or a tuple of these; None, the default, returns all dtypes.

        Raises:
            ValueError: the kind is unknown.
        """
        self._check(device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for name in kinds:
            if name not in _KINDS:
                raise ValueError(f"dtypes: kind is one of {', '.join(map(repr, _KINDS))}, got {name!r}")
        by_name = {name: dtypes.dtype(name) for one in kinds for name in _KINDS[one]}
        return {name: d for name, d in by_name.items() if dtypes.canonicalize_dtype(d) == d}

    def _check(self, device: Any) -> None:
        if device is not None and device not in devices():
            raise ValueError(f"device is None or one of {devices()}, got {device!r}")


def namespace_info() -> ArrayNamespaceInfo:
    """Return the inspection interface: `corejax.numpy.__array_namespace_info__()`."""
    return ArrayNamespaceInfo()
