"""What `corejax.numpy` tells about itself to code that is written against the Array API standard (2024.12)."""

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
    """The namespace's answers to the standard's questions."""

    def capabilities(self) -> dict[str, Any]:
        """What may be asked of arrays. Masks and shapes that depend on values are for values that are not traced."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None, which is the default device wherever a device is asked for."""
        return None

    def devices(self) -> list[Any]:
        """What the argument `device` takes."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of arrays made of Python's numbers."""
        self._check(device)
        return {
            "real floating": dtypes.default_float_dtype(),
            "complex floating": dtypes.default_complex_dtype(),
            "integral": dtypes.default_int_dtype(),
            "indexing": dtypes.default_int_dtype(),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes that arrays can have, by name.

        Args:
            device: a device; all have the same ones.
            kind: `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real floating"`,
                `"complex floating"`, `"numeric"`, or a tuple of these; None is all.

        Raises:
            ValueError: another kind.
        """
        self._check(device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for each in kinds:
            if each not in _KINDS:
                raise ValueError(f"dtypes: kind is one of {', '.join(map(repr, _KINDS))}, got {each!r}")
        found = {name: dtypes.dtype(name) for each in kinds for name in _KINDS[each]}
        return {name: d for name, d in found.items() if dtypes.canonicalize_dtype(d) == d}

    def _check(self, device: Any) -> None:
        if device is not None and device not in devices():
            raise ValueError(f"device is None or one of {devices()}, got {device!r}")


def namespace_info() -> ArrayNamespaceInfo:
    """`corejax.numpy.__array_namespace_info__()`: what the namespace can do."""
    return ArrayNamespaceInfo()
