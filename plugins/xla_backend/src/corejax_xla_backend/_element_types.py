"""MLIR's element types by the name of the NumPy dtype (StableHLO specification, "Types")."""

from __future__ import annotations

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
