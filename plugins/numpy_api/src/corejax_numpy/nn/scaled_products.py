"""Products of matrices in narrow formats, a scale for each block (microscaling, https://arxiv.org/abs/2310.10537)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.extend import dtypes
from corejax_lax_basic import lax
from corejax_numpy.arguments import array_arguments, canonical_axis, canonical_dtype, like
from corejax_numpy.elementwise import clip, where


def scaled_matmul(
    lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any, preferred_element_type: Any = np.float32
) -> Any:
    """Multiply rows of `lhs` by rows of `rhs`, after multiplying each block of a row by its scale; computed in float32.

    Args:
        lhs: an array `[b, m, k]`.
        rhs: an array `[b, n, k]`.
        lhs_scales: an array `[b, m, j]`, a scale for each block of `k / j` elements of `lhs`.
        rhs_scales: an array `[b, n, j]`, a scale for each block of `rhs`.
        preferred_element_type: dtype of the result, float32 by default.

    Returns:
        An array `[b, m, n]`.

    Raises:
        TypeError: an operand is complex.
        ValueError: the shapes do not match.
    """
    a, b, a_scales, b_scales = _real("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    shown = ", ".join(x.aval.str_short() for x in (a, b, a_scales, b_scales))
    if {x.ndim for x in (a, b, a_scales, b_scales)} != {3}:
        raise ValueError(f"scaled_matmul: operands and scales must have 3 axes, got {shown}")
    same = a.shape[::2] == b.shape[::2] and a_scales.shape[::2] == b_scales.shape[::2]
    if not same or a_scales.shape[:2] != a.shape[:2] or b_scales.shape[:2] != b.shape[:2]:
        raise ValueError(
            f"scaled_matmul: lhs is [b, m, k], rhs [b, n, k], lhs_scales [b, m, j], rhs_scales [b, n, j], got {shown}"
        )
    if not a_scales.shape[2] or a.shape[2] % a_scales.shape[2]:
        raise ValueError(f"scaled_matmul: the length of a row must be a multiple of the number of scales, got {shown}")
    numbers = (((2,), (2,)), ((0,), (0,)))
    out = lax.dot_general(_scaled(a, a_scales), _scaled(b, b_scales), numbers, preferred_element_type=np.float32)
    return lax.convert_element_type(out, canonical_dtype(preferred_element_type))


def _real(name: str, *operands: Any) -> list[Any]:
    arrays = array_arguments(name, *operands)
    for x in arrays:
        if dtypes.is_complex(x.dtype):
            raise TypeError(f"{name} takes real numbers, got {x.aval.str_short()}")
    return arrays


def _scaled(x: Any, scales: Any) -> Any:
    """Multiply the blocks of rows by their scales, in float32."""
    x, scales = (lax.convert_element_type(v, np.float32) for v in (x, scales))
    blocks = lax.reshape(x, (*scales.shape, x.shape[-1] // scales.shape[-1]))
    return lax.reshape(blocks * lax.expand_dims(scales, (scales.ndim,)), x.shape)


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """The narrow format to which an operand of `scaled_dot_general` is rounded.

    Attributes:
        mode: `"nvfp4"` or `"mxfp8"`.
        block_size: number of elements that share a scale.
        data_type: dtype of the elements.
        scale_type: dtype of the scales.
        global_scale: a number by which all elements are divided first; None for 1.
        infer_only: accepted for compatibility with JAX and ignored.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """Return the standard configuration of a format.

    Args:
        mode: `"nvfp4"` or `"mxfp8"`.
        global_scale: a number by which all elements are divided first; for `"nvfp4"` only, 1 by default.

    Raises:
        ValueError: the mode is unknown.
    """
    if mode == "nvfp4":
        scale = np.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(
            mode, 16, dtypes.dtype("float4_e2m1fn"), dtypes.dtype("float8_e4m3fn"), scale, infer_only=False
        )
    if mode == "mxfp8":
        return BlockScaleConfig(
            mode, 32, dtypes.dtype("float8_e4m3fn"), dtypes.dtype("float8_e8m0fnu"), None, infer_only=False
        )
    raise ValueError(f"get_scaled_dot_general_config: mode is 'nvfp4' or 'mxfp8', got {mode!r}")


def scaled_dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Any = None,
    implementation: None = None,
) -> Any:
    """Compute `lax.dot_general` of operands rounded to a narrow format with a scale for each block.

    Derivatives are those of the product of the rounded operands, with rounding treated as the identity.

    Args:
        lhs: an array.
        rhs: an array of the same dtype.
        dimension_numbers: as for `lax.dot_general`; with `configs` exactly one axis is contracted, and its size must
            be a multiple of the block size.
        preferred_element_type: dtype of the result, float32 by default.
        configs: the formats of `lhs` and `rhs` (a third one is ignored); None, the default, does not round.
        implementation: ignored, as in JAX.

    Raises:
        ValueError: several axes are contracted, or the blocks do not divide the axis.
    """
    if implementation is not None:
        warnings.warn("scaled_dot_general: `implementation` is ignored", DeprecationWarning, stacklevel=2)
    lhs, rhs = array_arguments("scaled_dot_general", lhs, rhs)
    dtype = canonical_dtype(preferred_element_type) or lhs.dtype
    if configs is not None:
        lhs, rhs = _real("scaled_dot_general with configs", lhs, rhs)
        contracted, _ = lax.canonical_numbers("scaled_dot_general", dimension_numbers)
        if {len(axes) for axes in contracted} != {1}:
            raise ValueError(
                f"scaled_dot_general: with configs exactly one axis must be contracted, got {dimension_numbers[0]}"
            )
        lhs, rhs = (
            _round_to_format(x, axes[0], config)
            for x, axes, config in zip((lhs, rhs), contracted, _two_configs(configs), strict=True)
        )
    return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)


def _two_configs(configs: Any) -> list[BlockScaleConfig]:
    pair = list(configs[:2]) if isinstance(configs, list | tuple) else []
    if len(pair) != 2 or not all(isinstance(config, BlockScaleConfig) for config in pair):
        raise TypeError(
            "scaled_dot_general: configs must be two BlockScaleConfig, as get_scaled_dot_general_config returns, "
            f"got {configs!r}"
        )
    return pair


def _round_to_format(x: Any, axis: int, config: BlockScaleConfig) -> Any:
    """Round `x` to a narrow format, and return it in its own dtype; the derivative is that of the identity."""
    axis = canonical_axis(axis, x.ndim, "a contracted axis", "scaled_dot_general")
    size = x.shape[axis]
    if not size or size % config.block_size:
        raise ValueError(
            f"scaled_dot_general: axis {axis} of {x.aval.str_short()} is contracted, so its size must be a multiple of "
            f"{config.block_size} ({config.mode})"
        )
    blocks = (*x.shape[:axis], size // config.block_size, config.block_size, *x.shape[axis + 1 :])
    y = lax.reshape(lax.convert_element_type(lax.stop_gradient(x), np.float32), blocks)
    total = 1.0 if config.global_scale is None else lax.reshape(array_arguments("", config.global_scale)[0], ())
    y = y / total
    largest = float(dtypes.finfo(config.data_type).max)
    scales = lax.expand_dims(lax.reduce_max(lax.abs(y), (axis + 1,)), (axis + 1,)) / largest
    scales = _round_scales(scales, config)
    y = clip(y / scales, -largest, largest)
    y = lax.convert_element_type(lax.convert_element_type(y, config.data_type), np.float32)
    rounded = lax.convert_element_type(lax.reshape(y * scales * total, x.shape), x.dtype)
    return rounded + (x - lax.stop_gradient(x))


def _round_scales(scales: Any, config: BlockScaleConfig) -> Any:
    """Round scales to their dtype; powers of two are rounded up, and blocks of zeros get scale 1."""
    # The logarithm of a power of two is inexact; the tolerance keeps it from being rounded up to the next power.
    if config.mode == "mxfp8":
        exponents = clip(lax.ceil(lax.log(scales) / np.log(2.0) - 1e-5), -126.0, 127.0)
        scales = lax.exp(exponents * np.log(2.0))
    largest = float(dtypes.finfo(config.scale_type).max)
    rounded = lax.convert_element_type(clip(scales, 0.0, largest), config.scale_type)
    rounded = lax.convert_element_type(rounded, np.float32)
    return where(lax.gt(rounded, like(rounded, 0)), rounded, like(rounded, 1))
