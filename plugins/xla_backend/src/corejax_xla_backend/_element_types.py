"""MLIR's element types by the name of the NumPy dtype (StableHLO specification, "Types")."""

from __future__ import annotations

import numpy as np

ELEMENT_TYPES: dict[str, str] = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
}


def readable_as(dtype: np.dtype) -> tuple[str, np.dtype] | None:
    """Return an operation that converts `dtype` to a type that Python can read, and that type; None if it can read it.

    The conversion keeps the bits, as unsigned integers; for types narrower than a byte, which NumPy stores one element
    to a byte, it keeps the values.
    """
    if dtype.name == "bfloat16" or dtype.name.startswith("float8"):
        return "bitcast_convert", np.dtype(f"u{dtype.itemsize}")
    if dtype.name in ("int2", "int4"):
        return "convert", np.dtype(np.int8)
    if dtype.name in ("uint2", "uint4"):
        return "convert", np.dtype(np.uint8)
    if dtype.name.startswith(("float4_", "float6_")):
        return "convert", np.dtype(np.float32)
    return None
