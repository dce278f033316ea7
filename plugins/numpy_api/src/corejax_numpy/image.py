"""`corejax.image`: resize images, and scale and translate them.

Every method except nearest neighbour multiplies each axis by a matrix of weights: the weight of input pixel i in
output pixel o. Pixels are squares with their centres at half-integers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.extend import Tracer, as_array, dtypes, host_value, remembered
from corejax.extend.types import SymbolicDim
from corejax_lax_basic import lax
from corejax_numpy import numpy as jnp
from corejax_numpy.arguments import array_argument, canonical_axes, canonical_shape, promote_dtypes

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The method that computes output pixels from input pixels.

    NEAREST: the nearest pixel. LINEAR: linear interpolation. LANCZOS3, LANCZOS5: Lanczos kernels of radius 3 and 5.
    CUBIC: the cubic kernel of Keys with A = -0.5. CUBIC_PYTORCH: as CUBIC with antialiasing; without antialiasing, the
    kernel with A = -0.75, and the edge pixels extended. AREA: the mean over the area that an output pixel covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Return the method with a name.

        Raises:
            ValueError: the name is unknown; the message lists the known names.
        """
        if s not in _NAMES:
            raise ValueError(f"resize: unknown method {s!r}; the methods are {', '.join(map(repr, _NAMES))}")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}

# -- kernels: functions of the distance, with `xp`, NumPy or corejax.numpy -----------------------------------------


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(0, 1 - x)


def _lanczos(radius: int) -> Callable[[Any, Any], Any]:
    def kernel(xp: Any, x: Any) -> Any:
        waves = radius * xp.sin(np.pi * x) * xp.sin(np.pi * x / radius)
        out = xp.where(x > 1e-3, waves / xp.where(x != 0, np.pi**2 * x**2, 1), 1)
        return xp.where(x > radius, 0, out)

    return kernel


def _cubic(a: float) -> Callable[[Any, Any], Any]:
    """R. G. Keys, "Cubic convolution interpolation for digital image processing" (1981), equation 15."""

    def kernel(xp: Any, x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return xp.where(x >= 2, 0, xp.where(x >= 1, far, near))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any, Any], Any] | None] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
    ResizeMethod.AREA: None,
}
_EDGE = 2  # pixels beyond the edge that the kernel of CUBIC_PYTORCH reaches
_TINY = 1000 * float(np.finfo(np.float32).eps)  # a smaller sum of weights counts as zero


# -- weights -------------------------------------------------------------------------------------------------------


def _weights(
    xp: Any, m: int, n: int, scale: Any, translation: Any, dtype: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """Return the matrix `(m, n)` that resamples an axis from m to n pixels; a column has the weights of one output.

    Args:
        xp: NumPy for concrete numbers, corejax.numpy for traced ones.
        m: size of the input.
        n: size of the output.
        scale: factor by which input coordinates are multiplied.
        translation: offset that is added afterwards.
        dtype: dtype of the computation.
        method: the method, not NEAREST.
        antialias: whether the kernel is widened to the size of an output pixel if this is larger than an input pixel.
    """
    inverse = 1 / scale
    kernel = _KERNELS[method]
    centres = (xp.arange(n, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5
    extends_edge = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    edge = _EDGE if extends_edge else 0
    pixels = xp.arange(-edge, m + edge, dtype=dtype)[:, None]
    if kernel is None:
        left = xp.arange(n, dtype=dtype) * inverse - translation * inverse
        overlap = xp.minimum((left + inverse)[None, :], pixels + 1) - xp.maximum(left[None, :], pixels)
        weights = xp.maximum(0, overlap)
    else:
        width = xp.maximum(inverse, 1) if antialias else 1
        weights = kernel(xp, xp.abs(centres[None, :] - pixels) / width)
    if extends_edge:  # pixels beyond the edges are the first and the last pixel
        first, last = weights[: edge + 1], weights[m + edge - 1 :]
        ends = [xp.sum(part, axis=0, keepdims=True) for part in (first, last)]
        middle = weights[edge + 1 : m + edge - 1]
        weights = xp.concatenate([ends[0], middle, ends[1]]) if m > 1 else xp.sum(weights, axis=0, keepdims=True)
    total = xp.sum(weights, axis=0, keepdims=True)
    weights = xp.where(xp.abs(total) > _TINY, weights / xp.where(total != 0, total, 1), 0)
    if extends_edge:
        return weights
    inside = (centres >= -0.5) & (centres <= m - 0.5)
    return xp.where(inside[None, :], weights, 0)


def _resample(x: Any, shape: Sequence[int], axes: Sequence[int], weights: Sequence[Any], precision: Any) -> Any:
    """Multiply some axes by their matrices, axes that shrink most first."""
    labels = list(range(x.ndim))
    sizes = [(shape[axis], x.shape[axis]) for axis in axes]
    if any(isinstance(size, SymbolicDim) for pair in sizes for size in pair):
        order: Sequence[int] = range(len(axes))
    else:
        order = sorted(range(len(axes)), key=lambda i: sizes[i][0] / max(1, sizes[i][1]))
    for i in order:
        at = labels.index(axes[i])
        x = lax.dot_general(x, weights[i], (((at,), (0,)), ((), ())), precision)
        labels = [*labels[:at], *labels[at + 1 :], axes[i]]
    return lax.transpose(x, tuple(labels.index(axis) for axis in range(len(labels))))


# -- functions -----------------------------------------------------------------------------------------------------


def _method(name: str, method: Any, antialias: bool) -> ResizeMethod:
    resolved = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if not isinstance(resolved, ResizeMethod):
        raise TypeError(f"{name}: method is a ResizeMethod or its name, got {method!r}")
    return ResizeMethod.CUBIC if resolved is ResizeMethod.CUBIC_PYTORCH and antialias else resolved


def _image_and_shape(name: str, image: Any, shape: Any) -> tuple[Any, tuple[int, ...]]:
    image, sizes = array_argument(name, image), canonical_shape(shape)
    if len(sizes) != image.ndim or any(n < 0 for n in sizes):
        raise ValueError(f"{name}: shape {sizes} must have a non-negative size for each axis of {image.shape}")
    return image, sizes


@remembered
def resize(image: Any, shape: Any, method: Any, antialias: bool = True, precision: Any = "highest") -> Any:
    """Resize an image to a shape.

    Args:
        image: an array of any rank.
        shape: the size of each axis of the result; batch and channel axes keep their sizes.
        method: a `ResizeMethod` or its name: "nearest", "linear" (also "bilinear", "trilinear", "triangle"), "cubic"
            (also "bicubic", "tricubic"), "cubic-pytorch" (also "bicubic-pytorch"), "lanczos3", "lanczos5", "area".
        antialias: whether the kernel is widened when an axis shrinks; True by default. No effect on "nearest" and
            "area".
        precision: precision of the products, as for `lax.dot_general`.

    Returns:
        An array of that shape, of the image's dtype for "nearest", else of its floating dtype.

    Raises:
        ValueError: `shape` has another length, an axis without pixels is enlarged, or the method is unknown.
    """
    image, sizes = _image_and_shape("resize", image, shape)
    kind = _method("resize", method, antialias)
    axes = [i for i, (m, n) in enumerate(zip(image.shape, sizes, strict=True)) if m != n]
    if any(image.shape[i] == 0 for i in axes):
        raise ValueError(
            f"resize: an axis of image {image.aval.str_short()} has no pixels, so it cannot have shape {sizes}"
        )
    if kind is ResizeMethod.NEAREST:
        return _nearest(image, sizes, axes)
    (image,) = promote_dtypes("resize", image, inexact=True)
    weights = []
    for i in axes:
        m, n = image.shape[i], sizes[i]
        symbolic = isinstance(m, SymbolicDim) or isinstance(n, SymbolicDim)
        xp, dtype = (jnp, dtypes.default_float_dtype()) if symbolic else (np, np.float64)
        matrix = _weights(xp, m, n, 1.0 if n == 0 else n / m, 0.0, dtype, kind, antialias)
        weights.append(as_array((matrix if symbolic else np.asarray(matrix)).astype(image.dtype)))
    return _resample(image, sizes, axes, weights, precision)


def _nearest(image: Any, shape: tuple[int, ...], axes: Sequence[int]) -> Any:
    for i in axes:
        m, n = image.shape[i], shape[i]
        symbolic = isinstance(m, SymbolicDim) or isinstance(n, SymbolicDim)
        xp: Any = jnp if symbolic else np
        old, new = (lax.make_scalar(size, np.dtype(np.float32)) if symbolic else np.float32(size) for size in (m, n))
        places = xp.floor((xp.arange(n, dtype=np.float32) + np.float32(0.5)) * old / new)
        image = image[(slice(None),) * i + (places.astype(np.int32),)]
    return image


def scale_and_translate(
    image: Any,
    shape: Any,
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: Any,
    antialias: bool = True,
    precision: Any = "highest",
) -> Any:
    """Scale and translate an image: coordinate c maps to `c * scale + translation`, along each spatial axis.

    Args:
        image: an array of any rank.
        shape: the shape of the result.
        spatial_dims: the axes that are scaled and translated; the other axes keep their sizes.
        scale: an array with a factor for each spatial axis; may be traced.
        translation: an array with an offset for each spatial axis; may be traced.
        method: a `ResizeMethod` or its name, as for `resize`; not "nearest".
        antialias: whether the kernel is widened when an axis shrinks; True by default.
        precision: precision of the products, as for `lax.dot_general`.

    Returns:
        An array of that shape, of the image's floating dtype; 0 outside the image.

    Raises:
        ValueError: lengths do not match, a non-spatial axis changes its size, or the method is unknown.
    """
    image, sizes = _image_and_shape("scale_and_translate", image, shape)
    kind = _method("scale_and_translate", method, antialias)
    if kind is ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: method 'nearest' is supported by resize only")
    if not isinstance(spatial_dims, tuple | list | range):
        raise TypeError(f"scale_and_translate: spatial_dims is a sequence of axes, got {spatial_dims!r}")
    axes = canonical_axes(tuple(spatial_dims), image.ndim, "scale_and_translate: spatial_dims")
    for i, (m, n) in enumerate(zip(image.shape, sizes, strict=True)):
        if m != n and i not in axes:
            raise ValueError(
                f"scale_and_translate: axis {i} of size {m} is not in spatial_dims, but shape {sizes} changes it"
            )
    (image,) = promote_dtypes("scale_and_translate", image, inexact=True)
    numbers = promote_dtypes("scale_and_translate", jnp.asarray(scale), jnp.asarray(translation), inexact=True)
    if any(x.shape != (len(axes),) for x in numbers):
        shapes = ", ".join(str(x.shape) for x in numbers)
        raise ValueError(f"scale_and_translate: scale and translation have a number for each of {axes}, got {shapes}")
    known = not any(isinstance(x, Tracer) for x in numbers)
    xp: Any = np if known else jnp
    scales, offsets = (host_value(x).astype(np.float64) if known else x for x in numbers)
    dtype = np.float64 if known else numbers[0].dtype
    weights = []
    for k, i in enumerate(axes):
        matrix = _weights(xp, image.shape[i], sizes[i], scales[k], offsets[k], dtype, kind, antialias)
        weights.append(as_array(matrix.astype(image.dtype)))
    return _resample(image, sizes, axes, weights, precision)


def __dir__() -> list[str]:
    return sorted(__all__)
